# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One flipped bit in a table, a control word, a constant or an operand of any design is found by the check.

The faults are planted in the emitted Verilog, all of one core in one text. The simulation of `check` must find each:

    memory      one bit of a word of a ROM, or of the contents of a block RAM
    selection   one bit of a constant word among the inputs of a multiplexer
    constant    one bit of a constant operand of an adder, a subtracter or a multiplier
    control     a bit of a control word that is 1 in one cycle is 0: the decoder of the cycle counter misses that cycle
    operand     one bit of an operand
"""

import re
from collections import defaultdict
from functools import cache

import pytest

from marks import long
from modmill.cores.multiplier import operands
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import FULL, SHORT, Report, simulate
from modmill.designs.cox_rower.kbe import RnsMontgomery
from modmill.designs.cox_rower.operations import Kind as Operations
from modmill.designs.cox_rower.shenoy_kumaresan import ShenoyKumaresan
from modmill.designs.extension import Extension
from modmill.designs.parallel.design import Parallel
from modmill.designs.radix64k.design import Radix64K
from modmill.designs.reduction import Reduction
from modmill.designs.sor.ring import SorRing
from modmill.designs.sor.ring_schedule import Kind
from modmill.flow.simulate import Simulator, widths
from modmill.proofs.mutants.mutate import Places, chosen, planted
from modmill.proofs.netlist import REGISTERS, Netlist
from modmill.studies.mutate import SUBJECTS

VECTORS = 40
"""Random products, beside corners and starts."""
OTHERS = {
    "mm-pa-n": ("97", {}), "mm-pa-p": ("97", {}), "mm-spa": ("97", {}),
    "kbe": ("29", {"n": 2}), "shenoy-kumaresan": ("29", {"n": 2}),
    "kbe-extension": ("8191", {"w": 12}), "hbe-extension": ("8191", {"w": 12}), "karatsuba": ("2^187-85", {}),
    "karatsuba-solinas": ("2^188-2^60-1", {}), "karatsuba-montgomery": ("2^187-85", {}),
}  # fmt: skip
"""Cores unlike those of SUBJECTS. 29 divides a modulus of the base of mm-*, and the other channels count nothing. With
one channel in each base of kbe the operands are below both moduli: the residues are equal, whichever is taken. With
five digits, karatsuba and karatsuba-solinas use every second of the strobes that repeat."""
AGAIN = {"sor-1m-p", "sor-nm", "mm-pa-p", "dq-rns", "hbe-reduction", "kbe-extension"}
"""Designs that here have the tables of others (sor-1m-n, sor-2m, mm-pa-n) or their machine (sq-rns, kbe-reduction,
hbe-extension)."""
UNREAD = {
    # The gammas are taken from the product into their own registers; no operation reads what the multiplier keeps.
    "sor-2m": {"connection: bit 1 of A is stuck at 0 (reduce_or of -> in_1_3_5)"},
    "sor-nm": {"connection: bit 1 of A is stuck at 0 (reduce_or of -> in_1_3_5)"},
    # The first term of the second extension takes zeta from the ring. The memory still shows the same word, because its
    # port writes in every cycle since zeta was read for the ring.
    "kbe": {"connection: bit 2 of A is stuck at 0 (reduce_or of branch0.-> i[23])"},
    "shenoy-kumaresan": {"connection: bit 3 of A is stuck at 0 (reduce_or of branch0.-> i[23])"},
    # The highest column of the low half counts modulo 2^17.
    "karatsuba-montgomery": {
        "constant: constant bit 197 of B is 0 (pmux of constants.pairs2.block.-> b[0])",
        "constant: constant bit 17 of B is 0 (pmux of constants.pairs3.block.-> b[0])",
    },
    # The highest digits of T are 3, 4 or 5, whatever the operands are.
    "parallel": {f"constant: bit 4 of word {k} of the ROM is 1 (mem_v2 of w24[0])" for k in (0, 7)},
}
"""Bits of control words that the schedule makes superfluous, and words that no operand reaches."""
DATA = ("i_a", "i_b", "k_m")


def some(items):
    """The first, the middle and the last item: the faults of one table."""
    return [items[k] for k in sorted({0, len(items) // 2, len(items) - 1})] if items else []


class Faults:
    """The places of a netlist for the faults above, each with its class."""

    def __init__(self, net):
        self.net, self.places, self.live = net, Places(net), net.live()
        self.found = defaultdict(list)
        self._feeds = defaultdict(set)
        for name, cell in net.cells.items():
            for port, nets in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    for bit in nets:
                        self._feeds[bit].add(name)
        self._data = self._after(bit for port in DATA for bit in net.module["ports"].get(port, {"bits": []})["bits"])
        self._data_bits = {bit for name in self._data for bit in net.outputs(net.cells[name])}

    def _after(self, bits):
        """Cells that depend on these nets, through any number of registers."""
        seen, todo = set(), [bit for bit in bits if isinstance(bit, int)]
        while todo:
            new = self._feeds[todo.pop()] - seen
            seen |= new
            todo += [bit for name in new for bit in self.net.outputs(self.net.cells[name])]
        return seen

    def constant(self, name, port, low, width):
        """The place of the highest bit in use of a constant word, or None where the word is none or no bit is used."""
        bits = self.net.cells[name]["connections"][port][low : low + width]
        used = [k for k in range(low, low + width) if (name, port, k) in self.live]
        return used[-1] if used and set(bits) <= {"0", "1"} else None

    def memory(self, used):
        """``used(name)``: the addresses that are read in the memory with this name, each with the highest bit that
        counts; without one it is the word's highest."""
        for name, cell in sorted(self.net.cells.items()):
            if cell["type"] != "$mem_v2" or "1" not in cell["parameters"]["INIT"]:
                continue
            width, memory = int(cell["parameters"]["WIDTH"], 2), cell["parameters"]["MEMID"].removeprefix("\\")
            words = used(memory)
            for k in some(sorted(words)):
                bit = words[k] if isinstance(words, dict) else width - 1
                self.found["memory"].append(self.places.flipped_word(name, k, bit))

    def _counts(self, name):
        """Whether a cell is part of a counter: it depends on itself and on no operand."""
        return name not in self._data and name in self._after(self.net.outputs(self.net.cells[name]))

    def selection(self):
        """Words of 2 bits or more, and a constant of which a shift takes a word. Left out are zeros and the default
        beside several cases, which stand where no case assigns a word, masks of a memory's write port, and what a fold
        adds for one carry: the last carry of a fold comes with few operands, for some moduli with none."""
        cells = sorted(self.net.cells.items())
        masks = {bit for _, cell in cells for bit in cell["connections"].get("WR_EN", ())}
        for name, cell in cells:
            pins, width = cell["connections"], len(cell["connections"].get("A", ()))
            if cell["type"] == "$shr" and (k := self.constant(name, "A", 0, width)) is not None:
                self.found["selection"].append(self.places.changed_input(name, "A", k))
            if cell["type"] not in ("$mux", "$pmux") or width == 1 or self._counts(name) or masks & set(pins["Y"]):
                continue
            if cell["type"] == "$mux" and pins["S"][0] in self._data_bits:
                continue
            words = [("A", 0)] * (cell["type"] == "$mux") + [("B", low) for low in range(0, len(pins["B"]), width)]
            words = [(port, low) for port, low in words if "1" in pins[port][low : low + width]]
            places = [(port, self.constant(name, port, low, width)) for port, low in words]
            for port, k in some([place for place in places if place[1] is not None]):
                self.found["selection"].append(self.places.changed_input(name, port, k))

    def arithmetic(self):
        """Constant operands of arithmetic on what came in; a counter's step is none."""
        for name, cell in sorted(self.net.cells.items()):
            for port in "AB" if cell["type"] in ("$add", "$sub", "$mul") and name in self._data else "":
                k = self.constant(name, port, 0, len(cell["connections"][port]))
                if k is not None:
                    self.found["constant"].append(self.places.changed_input(name, port, k))

    def control(self, interval):
        """A decoder compares a number that no operand changes with a constant; a register takes what it, or one of
        several, says. A counter whose period is a power of two needs no decoder to begin again."""
        decoders = {
            cell["connections"]["Y"][0]
            for name, cell in self.net.cells.items()
            if cell["type"] in ("$eq", "$logic_not") and name not in self._data and len(cell["connections"]["A"]) > 1
            if cell["type"] == "$logic_not" or set(cell["connections"]["B"]) <= {"0", "1"}
        }
        tables = defaultdict(list)
        for name, port, k in sorted(self.live):
            cell = self.net.cells[name]
            strobe = (cell["type"] == "$reduce_or" and port == "A") or (cell["type"] in REGISTERS and port == "D")
            if strobe and cell["connections"][port][k] in decoders:
                tables[name].append((port, k))
        for name, bits in sorted(tables.items()):
            if self.net.source(name)[1] == "wrap" and interval & (interval - 1) == 0:
                continue
            for port, k in some(bits):
                self.found["control"].append(self.places.changed_input(name, port, k, "stuck at 0"))

    def operand(self):
        """The lowest bit of each operand that the core reads, for one of its readers."""
        readers = defaultdict(list)
        for name, port, k in sorted(self.live):
            readers[self.net.cells[name]["connections"][port][k]].append((name, port, k))
        for port in DATA[:2]:
            bits = self.net.module["ports"].get(port, {"bits": []})["bits"]
            for bit in [bit for bit in bits if bit in readers][:1]:
                self.found["operand"].append(self.places.changed_input(*readers[bit][0]))


def read_addresses(fitted, memory):
    """The addresses that the schedule of a design reads in a memory with contents; the other words are padding."""
    match fitted:
        case Radix64K():
            return range(1 << fitted.shape.table_bits)
        case ShenoyKumaresan():
            return redundant_words(fitted.params.shape, memory)
        case RnsMontgomery():
            return range(fitted.params.shape.constants)
        case SorRing():
            rower = int(re.fullmatch(r"rower(\d+)\.constants", memory)[1])
            multiplied = (step for step in fitted.schedule.on("mul") if step.does.kind is not Kind.PRODUCT)
            return {(step.start + rower - 1) % fitted.schedule.interval for step in multiplied}
        case Reduction():
            return fitted.shape.read_words
        case Parallel():  # the smallest of its tables; the last words of others may be padding
            return range(min(len(op.table) for op in fitted.shape.network.operations if op.table))
        case Extension():
            return extension_addresses(fitted.params.shape)
    raise ValueError(f"{memory} of {type(fitted).__name__} is in no table of this test")


def redundant_words(shape, memory):
    """In the last rower v is h, of which all but a few bits are 0, and no operation reads what it makes of |-B| h."""
    words = dict.fromkeys(range(shape.constants), shape.w - 1)
    if memory.startswith(f"row{shape.rowers - 1}."):
        (v,) = (op for op in shape.of(Operations.TERMS) if op.extension == 2)
        words |= {shape.address(v, step): shape.h_max.bit_length() - 1 for step in range(shape.steps)}
        del words[next(shape.address(op) for op in shape.of(Operations.TERM) if op.table == "h")]
    return words


def extension_addresses(s):
    """The words h of each target's table of -h A, then a word for each slot with a multiplication."""
    starts = [0] if s.columns == 1 else [0, s.hats]
    slots = [*(start + k for start in starts for k in range(s.m)), *range(s.sums, s.slots)]
    tables = [(target << s.h_bits) + h for target in range(s.targets) for h in range(s.h_max + 1)]
    return [*tables, *(s.tables + slot for slot in slots)]


def fault_of(core, simulator, number):
    """The first fault that the simulation of `build`, or else that of `check`, finds with this planted fault."""
    report = Report(core.name)
    with chosen(number):
        simulate(core, simulator, report, vectors=VECTORS, effort=SHORT)
        if number and report.passed:
            simulate(core, simulator, report, vectors=10 * VECTORS, effort=FULL)
    return next(iter(report.failures), "")


def planted_sites(core):
    """The netlist of a core, before it is made readable, and the places of all faults."""
    faults = Faults(Netlist.read(core._netlist, core.top))
    faults.memory(lambda memory: read_addresses(core.fitted, memory))
    faults.selection()
    faults.arithmetic()
    faults.control(core.fitted.schedule.interval)
    faults.operand()
    found = faults.found
    assert len(found["operand"]) == core.contract.operands
    assert found["memory"] or found["selection"] or found["constant"] or core.fitted.cost.memory_bits == 0
    sites = [site for sites in found.values() for site in sites]
    unread = UNREAD.get(core.design.name, set())
    assert unread <= {site.mutant.line for site in sites}
    return faults.net, [site for site in sites if site.mutant.line not in unread]


@pytest.mark.parametrize(
    ("name", "modulus", "settings"),
    [(long if name in AGAIN else pytest.param)(name, modulus, settings) for name, modulus, _, settings in SUBJECTS],
    ids=[name for name, *_ in SUBJECTS],
)
def test_every_broken_table_constant_and_control_word_is_found(name, modulus, settings, monkeypatch):
    monkeypatch.setattr(operands, "corners", cache(operands.corners))
    modulus, more = OTHERS.get(name, (modulus, {}))
    core = build(name, modulus, "native", **settings | more)
    contract = core.contract
    net, sites = planted_sites(core)
    mutated = planted(net, core.top, sites)
    simulator = Simulator(
        mutated.verilog, top=core.top, widths=widths(contract), instances=2, power_up=contract.power_up
    )
    assert fault_of(core, simulator, 0) == "", "the original must pass"
    numbered = enumerate(mutated.mutants, 1)
    assert [mutant.line for number, mutant in numbered if not fault_of(core, simulator, number)] == []
