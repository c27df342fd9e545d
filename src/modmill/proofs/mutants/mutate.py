# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Mutants of a netlist: small faults, all in one Verilog text; a run selects one.

Yosys flattens a Verilog text to word-level cells. A mutant changes one place; the five classes are

    cell         another operation: add for subtract, and for or, the inputs of a multiplexer swapped, a comparison
    constant     one bit of a constant flipped, one bit of a ROM flipped
    connection   one input bit stuck at 0 or 1, inverted, or taken from its neighbour
    reset        the reset of a register dropped, one bit of its reset value flipped
    initial      one bit of the initial contents of a register or a written memory flipped

Every mutant has an enable; with all enables low the text behaves like the original. In simulation the environment
variable `CHOICE` selects the mutant at power-up (0: none), so that one compiled library serves all mutants. Places
without a path to an output (a cone of influence bit by bit) are not drawn.
"""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from modmill.flow import tools
from modmill.proofs.netlist import REGISTERS, Bit, Cell, Netlist

CLASSES = ("cell", "constant", "connection", "reset", "initial")
"""Classes of mutants: equal numbers are drawn, if there are enough places, except of the last."""
INITIAL_SHARE = 20
"""At most one mutant in this number is of initial contents: most such places are in memories written before read."""
CHOICE = "MODMILL_MUTANT"
"""Environment variable with the number of the mutant that a simulation runs."""
DROPPED = "the reset is dropped"
"""Description of a mutant that drops a register's reset."""
ENABLES = "modmill_mutants"
"""Input of the mutated module: bit k enables mutant k; bit 0 enables none."""

_PARALLEL = re.compile(r"\(\* parallel_case \*\)|// synopsys parallel_case")
"""A mutant may violate this attribute; then the first of several selected inputs counts."""
_WRITE = "read_json mutants.json; check -assert; write_verilog -noattr mutants.v"
_RESOLVE = "read_json mutants.json; opt_expr; opt_clean; check -assert; write_json mutant.json"
_OTHER = {
    "$add": ("$sub",), "$sub": ("$add",), "$and": ("$or", "$xor"), "$or": ("$and", "$xor"), "$xor": ("$or", "$xnor"),
    "$xnor": ("$xor",), "$eq": ("$ne",), "$ne": ("$eq",), "$lt": ("$le", "$ge"), "$le": ("$lt", "$gt"),
    "$gt": ("$ge", "$le"), "$ge": ("$gt", "$lt"), "$mul": ("$add",), "$reduce_or": ("$reduce_and",),
    "$reduce_and": ("$reduce_or",), "$reduce_bool": ("$reduce_and",), "$reduce_xor": ("$reduce_or",),
    "$logic_not": ("$reduce_bool",), "$logic_and": ("$logic_or",), "$logic_or": ("$logic_and",), "$not": ("$pos",),
    "$shl": ("$shr",), "$shr": ("$shl",),
}  # fmt: skip
_FIXED = {"CLK", "RD_CLK", "WR_CLK", "ARST", "RD_ARST", "RD_SRST", "RD_EN"}


@dataclass(frozen=True)
class Mutant:
    """One change. ``kind``: its class. ``what``: the change in words. ``cell``: type of the cell. ``name``: the wire or
    register that the cell drives, or the nearest named one after it. ``path``: the instances that contain it."""

    kind: str
    what: str
    cell: str
    name: str
    path: str

    @property
    def line(self) -> str:
        """The mutant in one line."""
        return f"{self.kind}: {self.what} ({self.cell[1:]} of {'.'.join(filter(None, (self.path, self.name)))})"


@dataclass(frozen=True)
class Site:
    """A place for a mutant. ``place``: the cell. ``apply(netlist)(enable)`` changes it while ``enable`` is high."""

    mutant: Mutant
    place: str
    apply: Callable[[Netlist], Callable[[Bit], None]]


@dataclass(frozen=True)
class Mutated:
    """Mutants in one text. ``mutants[k - 1]`` is enabled by bit k of `ENABLES`, an input of the module `module` of
    ``netlist`` (Yosys's JSON). ``verilog``: the text whose module `top` runs the mutant chosen by `CHOICE`.
    ``places``: for each mutant the changed cell. ``resets``: registers that `rst` sets."""

    top: str
    mutants: tuple[Mutant, ...]
    netlist: dict[str, Any]
    verilog: str
    places: tuple[str, ...]
    resets: frozenset[str]

    @property
    def module(self) -> dict[str, Any]:
        """Ports, cells and net names of the mutated module."""
        found: dict[str, Any] = self.netlist["modules"][_inner(self.top)]
        return found

    def resolved(self, number: int) -> Netlist:
        """The netlist with mutant ``number`` (0: none) in place of what enables choose, as Yosys reads a core with this
        fault. Raises ToolError if Yosys cannot read it."""
        module = json.loads(json.dumps(self.module))
        enables = module["ports"].pop(ENABLES)["bits"]
        del module["netnames"][ENABLES]
        values = {bit: str(int(k == number != 0)) for k, bit in enumerate(enables)}
        for cell in module["cells"].values():
            cell["connections"] = {p: [values.get(b, b) for b in bits] for p, bits in cell["connections"].items()}
        whole = {"creator": "modmill", "modules": {self.top: module}}
        with tempfile.TemporaryDirectory(prefix="modmill-mutate-") as name:
            folder = Path(name)
            (folder / "mutants.json").write_text(json.dumps(whole))
            tools.run(tools.yosys("-q", "-p", _RESOLVE), name="yosys", cwd=folder)
            return Netlist(json.loads((folder / "mutant.json").read_text())["modules"][self.top])


def _inner(top: str) -> str:
    return f"{top}_with_mutants"


@contextmanager
def chosen(number: int) -> Iterator[None]:
    """Simulations that start in this context run mutant ``number``; 0: the original."""
    before = os.environ.get(CHOICE)
    os.environ[CHOICE] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ[CHOICE]
        else:
            os.environ[CHOICE] = before


def mutate(verilog: str, top: str, count: int, seed: int = 1) -> Mutated:
    """Draw ``count`` mutants (fewer if there are fewer places) and put them into one text.

    The same text, count and seed give the same mutants. Raises ValueError for a count below 1, ToolError if Yosys
    cannot read the text.
    """
    if count < 1:
        raise ValueError(f"the number of mutants must be at least 1, not {count}")
    netlist = Netlist.read(verilog, top)
    return planted(netlist, top, _drawn(netlist, count, random.Random(seed)))


def planted(netlist: Netlist, top: str, sites: Sequence[Site]) -> Mutated:
    """The mutants at these places of a netlist in one text; the netlist is changed. ``top``: its module."""
    sites = sorted(sites, key=_order)
    resets = frozenset(netlist.reset_registers())
    enables = netlist.add_input(ENABLES, len(sites) + 1)
    for site, enable in zip(sites, enables[1:], strict=True):
        site.apply(netlist)(enable)
    netlist.legalise()
    whole = {"creator": "modmill", "modules": {_inner(top): netlist.module}}
    with tempfile.TemporaryDirectory(prefix="modmill-mutate-") as name:
        folder = Path(name)
        (folder / "mutants.json").write_text(json.dumps(whole))
        tools.run(tools.yosys("-q", "-p", _WRITE), name="yosys", cwd=folder)
        text = _PARALLEL.sub("", (folder / "mutants.v").read_text())
    mutants, places = tuple(site.mutant for site in sites), tuple(site.place for site in sites)
    return Mutated(top, mutants, whole, _shell(netlist.module, top) + text, places, resets)


def _order(site: Site) -> int:
    """Sort key: changes that split a register come after changes that need the whole register."""
    if site.mutant.kind == "reset":
        return 1 if site.mutant.what == DROPPED else 2
    return 3 * (site.mutant.kind == "initial")


def _shell(module: dict[str, Any], top: str) -> str:
    """The module that reads `CHOICE` at power-up. ``$c`` is Verilator's call of C."""
    ports = {name: port for name, port in module["ports"].items() if name != ENABLES}
    bits = len(module["ports"][ENABLES]["bits"])
    lines = [f"module {top}({', '.join(ports)});"]
    lines += [f"  {port['direction']} [{len(port['bits']) - 1}:0] {name};" for name, port in ports.items()]
    lines += [
        "  reg [31:0] chosen;",
        f'  initial chosen = $c32("(std::getenv(\\"{CHOICE}\\") ? std::atoi(std::getenv(\\"{CHOICE}\\")) : 0)");',
        f"  wire [{bits - 1}:0] enables = {bits}'d1 << chosen;",
        f"  {_inner(top)} with_mutants({', '.join(f'.{name}({name})' for name in ports)}, .{ENABLES}(enables));",
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def _drawn(netlist: Netlist, count: int, rnd: random.Random) -> list[Site]:
    """Equal numbers of each class, if there are enough places (see `INITIAL_SHARE`); in a class uniform over cells,
    then over places."""
    kinds: dict[str, list[list[Site]]] = {kind: [] for kind in CLASSES}
    for group in Places(netlist).groups():
        kinds[group[0].mutant.kind].append(group)
    for groups in kinds.values():
        for group in groups:
            rnd.shuffle(group)
        rnd.shuffle(groups)
    queues = {kind: _in_turn(groups) for kind, groups in kinds.items()}
    taken: dict[str, list[Site]] = {kind: [] for kind in CLASSES}
    while queues and sum(map(len, taken.values())) < count:
        for kind in list(queues):
            if sum(map(len, taken.values())) == count:
                break
            site = next(queues[kind], None)
            if site is None or (kind == "initial" and len(taken[kind]) >= count / INITIAL_SHARE):
                del queues[kind]
            else:
                taken[kind].append(site)
    return [site for kind in CLASSES for site in taken[kind]]


def _in_turn(groups: Sequence[list[Site]]) -> Iterator[Site]:
    """The first of each group, then the second of each, and so on."""
    for k in range(max(map(len, groups), default=0)):
        yield from (group[k] for group in groups if k < len(group))


class Places:
    """The places of a netlist that mutants may change."""

    def __init__(self, netlist: Netlist) -> None:
        self._net = netlist
        self._resets = set(netlist.module["ports"].get("rst", {"bits": []})["bits"])
        self._sources: dict[str, tuple[str, str]] = {}

    def groups(self) -> Iterator[list[Site]]:
        """Groups of places for mutants, each of one class and one cell."""
        places = defaultdict(list)
        for name, port, k in sorted(self._net.live()):
            places[name].append((port, k))
        for name in sorted(places):
            cell = self._net.cells[name]
            groups: dict[str, list[Site]] = {kind: [] for kind in CLASSES}
            here = (partial(self._site, name, cell["type"]), groups)
            self._operation_sites(cell, *here)
            for port, k in places[name]:
                if port not in _FIXED:
                    self._input_sites(name, port, k, groups)
            if cell["type"] in REGISTERS:
                self._register_sites(cell, [k for port, k in places[name] if port == "D"], *here)
            if cell["type"] == "$mem_v2":
                self._memory_sites(name, groups)
            yield from (group for group in groups.values() if group)

    def _site(self, name: str, type_: str, kind: str, what: str, apply: Callable[[Netlist, str, Bit], None]) -> Site:
        if name not in self._sources:
            self._sources[name] = self._net.source(name)
        path, wire = self._sources[name]
        return Site(Mutant(kind, what, type_, wire, path), name, lambda net: partial(apply, net, name))

    def changed_input(self, name: str, port: str, k: int, change: str = "inverted") -> Site:
        """Bit ``k`` of an input of a cell "inverted", "stuck at 0", "stuck at 1", or taken from "bit j" of that input:
        of a constant, or of a net as this cell reads it."""
        cell = self._net.cells[name]
        bit = cell["connections"][port][k]
        kind, what = "connection", f"bit {k} of {port} is {'taken from ' * change.startswith('bit')}{change}"
        if bit in ("0", "1"):
            kind, what = "constant", f"constant bit {k} of {port} is {1 - int(bit)}"
        return self._site(name, cell["type"], kind, what, partial(_apply_input, port, k, change))

    def flipped_word(self, name: str, word: int, k: int) -> Site:
        """Bit ``k`` of a word of a memory's contents inverted, until it is written."""
        parameters = self._net.cells[name]["parameters"]
        value = parameters["INIT"][-1 - word * int(parameters["WIDTH"], 2) - k]
        kind, memory = ("initial", "memory") if int(parameters["WR_PORTS"], 2) else ("constant", "ROM")
        what = f"bit {k} of word {word} of the {memory} is {1 - int(value)}"
        return self._site(name, "$mem_v2", kind, what, partial(_apply_memory, word, k))

    def _operation_sites(self, cell: Cell, site: Callable[..., Site], groups: dict[str, list[Site]]) -> None:
        for other in _OTHER.get(cell["type"], ()):
            if len(cell["connections"]["A"]) > 1 or not cell["type"].startswith("$reduce"):
                what = f"{cell['type'][1:]} becomes {other[1:]}"
                groups["cell"].append(site("cell", what, partial(_apply_operation, other)))
        if cell["type"] == "$mux" and cell["connections"]["A"] != cell["connections"]["B"]:
            groups["cell"].append(site("cell", "the inputs of the multiplexer are swapped", _apply_swap))

    def _input_sites(self, name: str, port: str, k: int, groups: dict[str, list[Site]]) -> None:
        bits = self._net.cells[name]["connections"][port]
        if bits[k] in ("0", "1"):
            groups["constant"].append(self.changed_input(name, port, k))
        elif isinstance(bits[k], int) and bits[k] not in self._resets:
            near = [j for j in (k - 1, k + 1) if 0 <= j < len(bits) and bits[j] != bits[k] and isinstance(bits[j], int)]
            for change in ("stuck at 0", "stuck at 1", "inverted", *(f"bit {j}" for j in near)):
                groups["connection"].append(self.changed_input(name, port, k, change))

    def _register_sites(
        self, cell: Cell, bits: list[int], site: Callable[..., Site], groups: dict[str, list[Site]]
    ) -> None:
        active = int(cell["parameters"].get("SRST_POLARITY", "0"), 2)
        if (
            "SRST" in cell["connections"]
            and active
            and self._net.of_reset(cell["connections"]["SRST"][0], self._resets)
        ):
            groups["reset"].append(site("reset", DROPPED, _apply_dropped))
            for k in bits:
                value = cell["parameters"]["SRST_VALUE"][-1 - k]
                what = f"bit {k} of the reset value is {1 - int(value, 2) if value in '01' else 1}"
                if value in "01":
                    groups["reset"].append(site("reset", what, partial(_apply_register, "reset", k)))
        for k in bits:
            if (value := self._net.initial.get(cell["connections"]["Q"][k])) is not None:
                what = f"bit {k} of the initial value is {1 - int(value)}"
                groups["initial"].append(site("initial", what, partial(_apply_register, "initial", k)))

    def _memory_sites(self, name: str, groups: dict[str, list[Site]]) -> None:
        parameters = self._net.cells[name]["parameters"]
        width = int(parameters["WIDTH"], 2)
        for at, value in enumerate(reversed(parameters["INIT"])):
            if value in "01" and at < width * int(parameters["SIZE"], 2):
                site = self.flipped_word(name, *divmod(at, width))
                groups[site.mutant.kind].append(site)


def _apply_operation(other: str, net: Netlist, name: str, enable: Bit) -> None:
    _choose(net, net.cells[name], net.copy(net.cells[name], other), enable)


def _choose(net: Netlist, cell: Cell, other: list[Bit], enable: Bit) -> None:
    """Drive the output of a cell from elsewhere while enabled."""
    out = cell["connections"]["Y"]
    own = cell["connections"]["Y"] = net.fresh(len(out))
    net.add("$mux", out, A=own, B=other, S=[enable])


def _apply_swap(net: Netlist, name: str, enable: Bit) -> None:
    pins = net.cells[name]["connections"]
    pins["S"] = net.add("$xor", A=pins["S"], B=[enable])


def _apply_input(port: str, k: int, change: str, net: Netlist, name: str, enable: Bit) -> None:
    bits = net.cells[name]["connections"][port] = list(net.cells[name]["connections"][port])
    if change.startswith("bit"):
        bits[k] = net.add("$mux", net.fresh(1), A=[bits[k]], B=[bits[int(change[4:])]], S=[enable])[0]
    elif change == "stuck at 0":
        bits[k] = net.add("$and", A=[bits[k]], B=net.add("$not", A=[enable]))[0]
    else:
        bits[k] = net.add("$or" if change == "stuck at 1" else "$xor", A=[bits[k]], B=[enable])[0]


def _apply_dropped(net: Netlist, name: str, enable: Bit) -> None:
    cell, rst = net.cells[name], net.module["ports"]["rst"]["bits"]
    pins = cell["connections"]
    kept = net.add("$not", A=net.add("$and", A=[enable], B=list(rst)))
    pins["SRST"] = net.add("$and", A=pins["SRST"], B=kept)


def _apply_register(which: str, k: int, net: Netlist, name: str, enable: Bit) -> None:
    """Flip a bit of the reset value, or store a bit inverted in the register, which flips only the initial value."""
    if which == "reset":
        net.plain(name, k, enable)
        return
    pins = net.plain(name)["connections"]
    pins["D"], out = list(pins["D"]), pins["Q"][k]
    pins["D"][k] = net.add("$xor", A=[pins["D"][k]], B=[enable])[0]
    inside = net.fresh(1)
    pins["Q"] = [*pins["Q"][:k], *inside, *pins["Q"][k + 1 :]]
    net.move_initial(out, inside[0])
    net.add("$xor", [out], A=inside, B=[enable])


def _apply_memory(word: int, k: int, net: Netlist, name: str, enable: Bit) -> None:
    """Invert a bit of a word when it is read, until it is written."""
    cell = net.cells[name]
    kept = net.add("$and", A=[enable], B=net.unwritten(name, word, k))
    pins, parameters = cell["connections"], cell["parameters"]
    width, bits = int(parameters["WIDTH"], 2), int(parameters["ABITS"], 2)
    at = [str(word >> j & 1) for j in range(bits)]
    for port in range(int(parameters["RD_PORTS"], 2)):
        if int(parameters["RD_CLK_ENABLE"][-1 - port]):
            raise tools.ToolError(f"yosys: a memory of {name} has a registered read port")
        place = port * width + k
        out = pins["RD_DATA"][place]
        inside = net.fresh(1)
        pins["RD_DATA"] = [*pins["RD_DATA"][:place], *inside, *pins["RD_DATA"][place + 1 :]]
        here = net.add("$eq", A=pins["RD_ADDR"][port * bits : (port + 1) * bits], B=list(at))
        net.add("$xor", [out], A=inside, B=net.add("$and", A=here, B=kept))
