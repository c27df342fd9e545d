# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the operations of an engine compute, proved for all inputs: the parts of the argument.

    rows        the program memory of the Verilog holds the rows of the programs, and nothing writes into them
    bounds      every slot is read after the write that it must see, and no number overflows
    the rest    what the rows compute is the operation (`engines.theorem`)
    data path   the hardware executes a row of each kind as the interpreter does (`data_path`)
    sequence    rows follow each other as the interpreter takes them (`sequence`)

The programs are made again from the record of the folder; the rows are read back from the Verilog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from modmill.contract import Binary
from modmill.cores.built import BuiltEngine
from modmill.cores.ecc.machine import EccCore
from modmill.cores.folder import KINDS
from modmill.cores.proofs import data_path
from modmill.cores.proofs.blinded_proof import is_blinded, machine_part
from modmill.cores.proofs.closed_machine import with_closed_core
from modmill.cores.proofs.sequence import induction
from modmill.cores.proofs.surroundings import Surroundings
from modmill.cores.rsa.circuit import CircuitCore, engine_class
from modmill.cores.rsa.machine import EngineCore
from modmill.engines.machine.layout import DOWN, OWN, OWN_ENTRY, SHARED, SHARED_ENTRY, UP, MicrocodeLayout
from modmill.engines.machine.program_memory import BANK, table_shapes
from modmill.engines.machine.timing import MachineTiming, unit
from modmill.engines.microcode.program import ENTRY, PAIR, OperandAddress, Program, Task
from modmill.engines.theorem.order_programs import bounds_part, order_part
from modmill.engines.theorem.parts import Part
from modmill.engines.theorem.point_programs import PointProof
from modmill.engines.theorem.power_programs import PowerProof
from modmill.interface import Multiplier
from modmill.proofs.netlist import Bit, Netlist

_BANKS = re.compile(r"(?:^|\.)sequencer\.table_?\.bank(\d+)\.")
"""Cells of the program memory, by the number of the bank."""
_ROWS = "the program memory holds the rows of the programs, and nothing writes into them"
_DATA_PATH, _SEQUENCE = ("data path", data_path.THEOREM), ("sequence", induction.THEOREM)


def class_of(folder: Path, kind: str) -> type[EccCore | EngineCore]:
    """The class of the engine in a folder; ``kind``: what the folder holds, of `KINDS`. Raises ValueError if the record
    is missing or malformed."""
    return EccCore if kind == KINDS["ecc.json"] else engine_class(folder)


def operations_of(engine: BuiltEngine, net: Netlist, verilog: str, top: str) -> tuple[Part, ...]:
    """All parts for an engine; ``net``: the machine ``top`` of the Verilog."""
    if not isinstance(engine, EccCore | EngineCore) or isinstance(engine, CircuitCore):
        return (Part("operations", "each operation computes the power", ("a circuit has no programs to prove",)),)
    layout = engine.layout

    def closed() -> Netlist:
        whole = with_closed_core(verilog, top)
        return machine_part(whole) if is_blinded(whole) else whole

    net_parts = machine_parts(closed, layout, engine.multiplier)
    return rows_part(net, layout), *parts(engine), *net_parts


def machine_parts(read: Callable[[], Netlist], layout: MicrocodeLayout, core: Multiplier) -> tuple[Part, Part]:
    """What the netlist of a machine does with rows. ``read``: returns it as `with_closed_core`, called if it is needed;
    ``core``: its multiplier."""
    timing = layout.timing
    if not isinstance(timing, MachineTiming) or not isinstance(timing.contract.operand, Binary):
        why = ("only machines with binary numbers are followed",)
        return Part(*_DATA_PATH, why), Part(*_SEQUENCE, why)
    try:
        around = Surroundings(read(), layout, core)
        in_order = list(induction.sequence_faults(around))
        of_rows = list(data_path.data_path_faults(around))
    except (ValueError, KeyError, IndexError, StopIteration) as error:
        in_order = of_rows = [f"not followed: {type(error).__name__} {error}"]
    return Part(*_DATA_PATH, tuple(of_rows[:5])), Part(*_SEQUENCE, tuple(in_order[:5]))


def parts(engine: EccCore | EngineCore) -> Iterator[Part]:
    """What the programs of an engine compute."""
    if isinstance(engine, EccCore):
        for image in engine.held:
            of_order = image.operation in engine.modulo_order
            contract = engine.contract_at(engine.fitted.at(image.modulus) if of_order else engine.fitted)
            yield bounds_part(image.operation, image.instructions.program, contract, image.instructions.unit)
            if of_order:
                yield order_part(image.operation, image.instructions, contract)
            else:
                yield from PointProof(engine.curve, image.made, image.instructions, contract).parts()
        return
    layout = engine.layout
    for power, program in zip(layout.powers, layout.programs, strict=True):
        yield bounds_part(power.program.name, program, power.contract, unit(layout.timing, layout.threads))
        yield from PowerProof(power, program).parts()


def rows_part(net: Netlist, layout: MicrocodeLayout) -> Part:
    """The contents of the program memory, decoded, against the programs."""
    words = dict[int, int]()
    remains = list[str]()
    for name, cell in net.cells.items():
        if cell["type"] == "$mem_v2" and (found := _BANKS.search(name)):
            numbers = {key: int(cell["parameters"][key], 2) for key in ("WIDTH", "SIZE", "OFFSET")}
            text, bank = cell["parameters"]["INIT"], int(found[1])
            here = {}
            for k in range(min(BANK, numbers["SIZE"])):
                bits = text[len(text) - (k + 1) * numbers["WIDTH"] : len(text) - k * numbers["WIDTH"]]
                if set(bits) <= {"0", "1"} and bits:
                    here[k + numbers["OFFSET"]] = int(bits, 2)
            last = len(layout.table[0]) - bank * BANK
            remains += _written(net, cell, [k for k in here if k < last])
            words |= {bank * BANK + k: word for k, word in here.items() if k < last}
    try:
        for program, rows in zip(layout.programs, _decoded(words, layout), strict=True):
            remains += _row_differences(program, layout, rows)
    except (ValueError, KeyError, IndexError) as error:
        remains.append(f"the table of programs is not readable: {error}")
    return Part("rows", _ROWS, tuple(remains[:5]))


def _written(net: Netlist, cell: dict[str, Any], rows: list[int]) -> list[str]:
    """Write ports of a memory that may reach one of its rows: no bit of their address, always 1, tells them apart."""
    pins, n = cell["connections"], {k: int(cell["parameters"][k], 2) for k in ("WR_PORTS", "ABITS", "WIDTH", "OFFSET")}
    found = []
    for port in range(n["WR_PORTS"]):
        if all(bit == "0" for bit in pins["WR_EN"][port * n["WIDTH"] : (port + 1) * n["WIDTH"]]):
            continue
        address = pins["WR_ADDR"][port * n["ABITS"] : (port + 1) * n["ABITS"]]
        ones = sum(1 << k for k, bit in enumerate(address) if _always_one(net, bit))
        if reached := [k for k in rows if ones & ~k == 0]:
            found.append(f"row {reached[0]} of a bank of the program memory may be written")
    return found


def _always_one(net: Netlist, bit: Bit) -> bool:
    """Whether a net is 1 whenever it is known: constant, a gate OR with such a net, or a choice among such nets."""
    if bit not in net.drivers:
        return bit in ("1", "x")
    name, _, k = net.drivers[bit]
    cell = net.cells[name]
    found = [_always_one(net, cell["connections"][x][k]) for x in "AB" if k < len(cell["connections"].get(x, ()))]
    return {"$or": any, "$mux": all, "$pos": any}.get(cell["type"], lambda _: False)(found)


_Row = tuple[list[dict[str, int]], dict[str, int]]
"""Fields of each entry of a row, and those of its first entry."""


def _decoded(words: dict[int, int], layout: MicrocodeLayout) -> Iterator[list[_Row]]:
    """The rows of each program, as fields. Raises KeyError if a word is missing."""
    shapes = list(table_shapes(layout).values())
    at = 0
    for program in layout.programs:
        rows: list[_Row] = []
        for _ in program.written:
            first = _fields(shapes[0], words[at])
            entries = [first, *(_fields(shapes[1], words[at + k]) for k in range(1, first["count"]))]
            rows.append((entries, first))
            at += len(entries)
        yield rows


def _fields(shape: Any, word: int) -> dict[str, int]:
    """The fields of a word, by name."""
    return {
        name: word >> shape[name].offset & ((1 << shape[name].width) - 1) for name, _ in shape
    }  # fmt: skip


def _row_differences(program: Program, layout: MicrocodeLayout, rows: list[_Row]) -> Iterator[str]:
    offset = layout.offsets[layout.programs.index(program)]
    first, end = len(program.before), len(program.before) + len(program.loop)
    for k, (instruction, (entries, flags)) in enumerate(zip(program.written, rows, strict=True)):
        row = f"{program.name}, row {k}"
        wanted = (instruction.advance, first <= k == end - 1, k == len(rows) - 1, instruction.product is not None)
        if tuple(bool(flags[name]) for name in ("advance", "again", "last", "active")) != wanted:
            yield f"{row}: another flag"
        tasks = [instruction.product, *instruction.sums]
        if flags["count"] != len(tasks):
            yield f"{row}: {flags['count']} entries, not {len(tasks)}"
            continue
        for task, fields in zip(tasks, entries, strict=True):
            if task is None and any(fields[name] for name in layout.fields):
                yield f"{row}: an entry without a product has the address of a slot"
            if task is not None and (differs := _task_difference(task, fields, layout, offset)):
                yield f"{row}: {differs}"


def _task_difference(task: Task, fields: dict[str, int], layout: MicrocodeLayout, offset: int) -> str:
    """What is other in an entry than in its task; empty if nothing is."""
    for name in layout.fields:
        wanted: OperandAddress = getattr(task, name) or task.a
        how = layout.bases(name)[fields[f"{name}_add"]]
        number = fields[name] - (offset if how in (SHARED, SHARED_ENTRY) else 0)
        pick = {OWN_ENTRY: ENTRY, SHARED_ENTRY: ENTRY, UP: PAIR, DOWN: PAIR}.get(how, wanted.pick)
        slots = (wanted.pick, wanted.shared, wanted.number)
        if (pick, how in (SHARED, SHARED_ENTRY), number) != slots or (how in (OWN, SHARED)) != (wanted.pick not in (
            ENTRY, PAIR)):  # fmt: skip
            return f"operand {name} is slot {fields[name]} with base {how}, not slot {wanted.number}"
        if how in (UP, DOWN) and (how == DOWN) != bool(wanted.number % 2):
            return f"operand {name} is the other slot of its pair"
    if task.kind == "mul":
        return "" if bool(fields.get("two", 0)) == (task.c is not None) else "a sum of two products, or none"
    if fields.get("select", 0) != (1 + task.bit if task.kind == "select" else 0):
        return "a selection by another bit, or none"
    if bool(fields["invert"]) != (task.kind == "sub"):
        return "a sum for a difference, or a difference for a sum"
    offset_multiple = layout.offset_multiples[fields["lift"]] if layout.timing.adders else 0
    if offset_multiple != task.offset_multiple:
        return f"{offset_multiple} p is added, not {task.offset_multiple} p"
    subtract = layout.conditional_subtracts[fields["trim"] - 1] if fields["trim"] else 0
    if subtract != task.conditional_subtract:
        return f"{subtract} p is subtracted, not {task.conditional_subtract} p"
    return ""
