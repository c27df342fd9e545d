# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Amaranth component -> clean Verilog-2001.

Amaranth writes RTLIL; this file rewrites that text (below), and one run of Yosys turns it into the Verilog of a
netlist, with a comment above each module; `readable` writes that as an engineer does. The hierarchy is kept and nothing
is optimised across modules.

What is rewritten, and why:
- Equal modules become one module; its name is the top's and the last part of the path in Amaranth (`core.row.digit_0`
  and `core.row.digit_1` become `core_digit` if they are equal), so that cores with different tops can be used in one
  design.
- Ports with numbers that Amaranth adds (`port$0$6`, `x$59`) get names that do not depend on the rest of the design.
- Ports come in the order of `PORTS`; the top has `clk` and `rst` even when it has no registers.
- Initial values of registers are dropped: a register that needs its value must be reset, and simulation starts
  registers from random values, which reveals a missing reset. Registers with the attribute `initial_value` keep theirs
  for simulation: counters without reset, which would stay x in four-state simulators. These values stand between
  `ifndef SYNTHESIS and `endif, a macro that synthesis tools define, so hardware starts from arbitrary values.
  Contents of memories are kept.
- Yosys prints a constant of 32 bits as a plain decimal number, negative if its highest bit is set. Verilog sign-extends
  that number in a wider expression. There it gets its width back: -1 becomes 32'd4294967295.
- An `Instance` of a multiplier tile (`tiles.py`), an adder with a choice (`adders.py`) or a block RAM (`memories.py`)
  gets its behavioural module, and keeps its parameter. They must be an `Instance`: in a plain submodule Amaranth drops
  a port whose operand is constant and renames shared ports.

Amaranth's own search for combinational loops takes time quadratic in the width of adders (26 of 31 s for 1,600 tiles of
14 bits), so it is disabled and Yosys searches instead. Yosys needs 9 s for adders of 8,192 bits, and 1 s for the
1,600 tiles: beyond `_CHECKED_BITS` and `_CHECKED_SIZE` only synthesis searches.
"""

import gc
import hashlib
import inspect
import json
import re
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Value, _ir, _nir
from amaranth.lib.wiring import In

from modmill.contract import PORTS, Timing, UnsupportedError
from modmill.flow import adders, memories, tiles, tools
from modmill.flow.readable import readable
from modmill.numbers.shown import shortened

_MODULE = re.compile(r"^(?:attribute [^\n]*\n)*module \\(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"^  cell \\(\S+) (\S+)\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  cell \\(\S+) ", re.MULTILINE)
_PORT = re.compile(r"^  wire width (\d+) (input|output) (\d+)  \\(\S+)\n", re.MULTILINE)
_NAME = re.compile(r"\\\S+")
_WIRE = re.compile(r"^  (?:wire|memory) .*? \\(\S+)\n", re.MULTILINE)
_ATTRIBUTES = re.compile(r"(?:^ *attribute \\(?:init|initial_value) .*\n)+", re.MULTILINE)
_INITIAL = re.compile(r"^ *attribute \\initial_value .*\n", re.MULTILINE)
_INITIALISED = re.compile(r"^(  reg (?:\[\d+:\d+\] )?)(\w+) = (\d+'h[\da-f]+|-?\d+);", re.MULTILINE)
_VERILOG_MODULE = re.compile(r"^module .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_FOR_SIMULATION = re.compile(
    r"^`ifndef SYNTHESIS\n  initial begin\n(?:    \w+ = (?:\d+'h[\da-f]+|-?\d+);\n)+  end\n`endif\n", re.MULTILINE
)
_HEAD = re.compile(r"^(?:\(\*[^\n]*\*\)\n)*module (\w+)\(", re.MULTILINE)
_PARAMETER = re.compile(r"``(\w+)``(?!:)")
_LATENCY = re.compile(r"Latency: [^.]*\.")
_COMMENT = re.compile(r"^// .*\n", re.MULTILINE)
_LIBRARY = {
    "SyncFIFO": "A first-in first-out queue. Latency: 1 cycle from w_en to r_rdy.",
}
_BLOCK = "a block of Modmill"
_WORD = re.compile(r"^  (?:input |output |wire |reg )+\[31:0\] (\w+)", re.MULTILINE)
_NEGATIVE = re.compile(r"-(\d+)\b")
_NEGATIVE_IN = re.compile(r"^(  assign .* = )(.*-\d.*);$", re.MULTILINE)
_SAME_WIDTH = re.compile(r"-\d+|.* \? .*|(\w+) [!=]= -\d+|-\d+ [!=]= (\w+)")
_NUMBER_AT_END = re.compile(r"_?\d+$")
_CONTENTS = re.compile(r"^    parameter \\INIT .*\n", re.MULTILINE)
_WIDTH = re.compile(r"^  wire width (\d+) ", re.MULTILINE)
_CHECKED_BITS = 2048
_CHECKED_SIZE = 1_200_000  # characters of RTLIL without the contents of block RAMs
_LOOP = re.compile(r"found logic loop in module (.*?):.*?\n    wire \\?(.*?)\n", re.DOTALL)
_SCRIPT = (
    "read_verilog -lib tiles.v; read_rtlil core.il; proc; opt_expr; opt_dff -simple-dffe; opt_clean; "
    "{check} rename -unescape; write_verilog -noattr -decimal core.v"
)
_KEYWORDS = frozenset(
    """always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign default defparam
    design disable edge else end endcase endconfig endfunction endgenerate endmodule endprimitive endspecify endtable
    endtask event for force forever fork function generate genvar highz0 highz1 if ifnone incdir include initial inout
    input instance integer join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup
    pulsestyle_onevent pulsestyle_ondetect rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task time tran tranif0
    tranif1 tri tri0 tri1 triand trior trireg unsigned use vectored wait wand weak0 weak1 while wire wor xnor xor
    """.split()  # noqa: SIM905 - readable as it stands
)


def verilog(component: Elaboratable, top: str = "core") -> str:
    """Verilog-2001 text of an Amaranth component and all its submodules, as `readable` writes it; see `netlist`."""
    return readable(netlist(component, top))


def netlist(component: Elaboratable, top: str = "core", source: str = "") -> str:
    """Verilog-2001 text of an Amaranth component and all its submodules, an assignment for each operator; the
    component's module is named `top`. ``source``: the publication of the design, for the comments of its modules.

    The same component gives the same text in every process. The first module of the text is the top. Its digest names
    what is measured, so that rows do not depend on how the text is made readable.

    Raises ValueError for an `Instance` of an unknown module and for a combinational loop (see above), ToolError if
    Yosys refuses the design.
    """
    tools.step("emitting Verilog")
    with _quick():
        il_text, about = _converted(component, top, source)
        modules = _modules(il_text)
    tile_modules = "\n".join(_tile_modules(modules, top))
    merged = list(_merged(modules, top))
    il = "".join(text for _, _, text in merged)
    widest = max((int(bits) for module in modules.values() for bits in _WIDTH.findall(module.body)), default=0)
    checked = len(_CONTENTS.sub("", il)) <= _CHECKED_SIZE and widest <= _CHECKED_BITS
    script = _SCRIPT.format(check="check;" if checked else "")
    text = _initial_values_last(_unsigned(_without_escapes(_printed(il, tile_modules, script))))
    first = re.compile(rf"module {re.escape(top)}\b")
    text = "\n".join(sorted(_VERILOG_MODULE.findall(text), key=lambda module: not first.match(module)))
    text = _kept(text, top, getattr(component, "kept", ()))
    text = _commented(text, {name: about[path] for path, name, _ in merged})
    return "\n".join(filter(None, [text, tile_modules]))


def _printed(il: str, tile_modules: str, script: str) -> str:
    """The Verilog that Yosys prints for RTLIL; it is kept in the cache folder under a digest of all that Yosys reads.
    Raises ValueError for a combinational loop, ToolError if Yosys refuses the design."""
    parts = [tools.version("yosys"), script, tile_modules, il]
    kept = tools.cache_dir() / "netlists" / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.v"
    if kept.exists():
        return kept.read_text()
    with tempfile.TemporaryDirectory(prefix="modmill-emit-") as name:
        folder = Path(name)
        (folder / "tiles.v").write_text(tile_modules)
        (folder / "core.il").write_text(il)
        printed = tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        if loop := _LOOP.search(printed):
            raise ValueError(f"combinational loop in module {loop.group(1)} through {loop.group(2)}")
        made = folder / "core.v"
        tools.keep(made, kept)
        return made.read_text()


def _converted(component: Elaboratable, top: str, source: str) -> tuple[str, dict[str, str]]:
    """RTLIL of a component, and the comment of each module by its path."""
    ports = {
        "__".join(map(str, path)): (
            Value.cast(value), _ir.PortDirection.Input if member.flow == In else _ir.PortDirection.Output
        )
        for path, member, value in component.signature.flatten(component)
    }  # fmt: skip
    design = _ir.Fragment.get(component, "verilog").prepare(ports=ports, hierarchy=(top,))
    about = {
        ".".join(info.name): _about(fragment.origins or (), source, info.name == (top,))
        for fragment, info in design.fragments.items()
    }
    return rtlil.convert_fragment(design, ports, top, emit_src=False)[0], about


def _about(origins: Iterable[object], source: str, top: bool) -> str:
    """The comment of a module, from the object that made it: the first paragraph on its class, its latency, and its
    ``source`` if it is the ``top`` of a core or a part of a design. Empty for a module that nothing describes."""
    for origin in origins:
        kind = type(origin)
        if kind.__module__.startswith("modmill."):
            text, *more = (" ".join(part.split()) for part in (inspect.getdoc(kind) or "").split("\n\n"))
            text = _with_numbers(text, origin)
            room = kind.__module__.split(".")[1]
            paper = source if room == "designs" or (top and room != "engines") else ""
            where = f"Source: {paper or _BLOCK} ({kind.__module__}.{kind.__qualname__})"
            return f"{text}{_latency(origin, ' '.join(more))}\n{where}"
        if kind.__name__ in _LIBRARY:
            return f"{_LIBRARY[kind.__name__]}\nSource: the library of Amaranth"
    return ""


def _latency(origin: object, about: str) -> str:
    """The sentence on the latency: of a core from its ``timing``, of a block from ``latency`` or ``registers``, with
    what their docstring says after "Cycles", or else the one in ``about``, the rest of the docstring."""
    if isinstance(timing := getattr(origin, "timing", None), Timing):
        return f" Latency: {_cycles(timing.latency)}, interval: {_cycles(timing.interval)}."
    for name in ("latency", "registers"):
        if isinstance(cycles := getattr(origin, name, None), int):
            of = (inspect.getdoc(getattr(type(origin), name, "")) or "") if hasattr(type(origin), name) else ""
            of = of.removeprefix("Cycles").rstrip(".").replace("`", "")
            return f" Latency: {_cycles(cycles)}{of}." if cycles else " Latency: 0 cycles, without a register."
    stated = _LATENCY.search(about)
    return f" {_with_numbers(stated[0], origin)}" if stated else ""


def _cycles(count: int) -> str:
    return f"{count} cycle{'s' * (count != 1)}"


def _with_numbers(text: str, origin: object) -> str:
    """A sentence of a docstring with the values of parameters."""
    return _PARAMETER.sub(partial(_number, origin), text).replace("`", "")


def _number(origin: object, parameter: re.Match[str]) -> str:
    """The value of a parameter if it is a small number, else its name."""
    name = parameter[1]
    value = getattr(origin, name, getattr(origin, f"_{name}", None))
    return str(value) if type(value) is int and abs(value) < 100_000 else name


def _commented(text: str, about: Mapping[str, str]) -> str:
    """The modules with what they do above them."""

    def above(module: re.Match[str]) -> str:
        return _comment(about.get(module[1], "")) + module[0]

    return _HEAD.sub(above, text)


def _comment(text: str) -> str:
    """Lines of comment, of at most 113 characters."""
    return "".join(f"// {line}\n" for part in text.splitlines() for line in textwrap.wrap(part, 110))


def without_initial_values(verilog: str) -> str:
    """Emitted Verilog without the initial values of registers; contents of memories stay.

    A simulator with random initial values then applies them to all registers, as in hardware.
    """
    return _FOR_SIMULATION.sub("", verilog)


@contextmanager
def _quick() -> Iterator[None]:
    """Disable Amaranth's search for loops, and Python's cyclic garbage collector, which takes two fifths of the time of
    a large design and frees nothing."""
    enabled, search = gc.isenabled(), _nir.Netlist.check_comb_cycles
    gc.disable()
    _nir.Netlist.check_comb_cycles = lambda self: None
    try:
        yield
    finally:
        _nir.Netlist.check_comb_cycles = search
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class _Module:
    body: str  # RTLIL between `module` and `end`
    children: tuple[str, ...]  # types of the cells that are modules, in order, with repeats


def _modules(text: str) -> dict[str, _Module]:
    """Modules of RTLIL text by Amaranth's path (core.row.digit_0)."""
    return {
        path: _Module(_ATTRIBUTES.sub(_initial_value, body), tuple(kind for kind, _, _ in _CELL.findall(body)))
        for path, body in _MODULE.findall(text)
    }


def _initial_value(attributes: re.Match[str]) -> str:
    """The initial value among a wire's attributes, if it is to be emitted."""
    found, count = _INITIAL.subn("", attributes.group())
    return found if count else ""


def _merged(modules: dict[str, _Module], top: str) -> Iterable[tuple[str, str, str]]:
    """Path, name and RTLIL of modules: equal ones merged, readable names, the top's ports ordered."""
    renamed_ports = {path: _port_names(module.body) for path, module in modules.items()}
    representative: dict[str, str] = {}
    by_body: dict[str, str] = {}

    def rewritten(path: str) -> str:
        own, body = renamed_ports[path], modules[path].body

        def nets(text: str) -> str:
            return _NAME.sub(lambda m: own.get(m.group(), m.group()), text) if own else text

        parts, start = [], 0
        for match in _CELL.finditer(body):
            kind, instance, connections = match.groups()
            ports = renamed_ports.get(kind, {})
            parts.append(nets(body[start : match.start()]))
            parts.append(f"  cell \\{representative.get(kind, kind)} {instance}\n")
            for line in connections.splitlines(keepends=True):
                keyword, port, connected = line.split(maxsplit=2)
                parts.append(f"    {keyword} {ports.get(port, port)} {nets(connected)}")
            parts.append("  end\n")
            start = match.end()
        return "".join([*parts, nets(body[start:])])

    for path in _children_first(modules, top):
        representative[path] = by_body.setdefault(rewritten(path), path)
    names = _names(modules, representative, top)
    for body, path in by_body.items():
        body = _INSTANCE.sub(lambda m: f"  cell \\{names.get(m.group(1), m.group(1))} ", body)
        body = _ordered_ports(body, complete=path == top)
        attribute = "attribute \\top 1\n" if path == top else ""
        yield path, names[path], f"{attribute}module \\{names[path]}\n{body}end\n"


def _port_names(body: str) -> dict[str, str]:
    """New names of ports whose names are not plain identifiers; both names with their backslash."""
    used = set(_WIRE.findall(body))
    names = {}
    for _, _, _, port in _PORT.findall(body):
        if not re.fullmatch(r"\w+", port):
            names[f"\\{port}"] = "\\" + _unused(re.sub(r"\W", "_", port.split("$")[0]) or "port", used)
    return names


def _children_first(modules: dict[str, _Module], top: str) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    stack: list[tuple[str, bool]] = [(top, False)]
    while stack:
        path, expanded = stack.pop()
        if expanded:
            order.append(path)
        elif path not in seen and path in modules:
            seen.add(path)
            stack.append((path, True))
            stack.extend((child, False) for child in reversed(modules[path].children))
    return order


def _names(modules: dict[str, _Module], representative: dict[str, str], top: str) -> dict[str, str]:
    members: dict[str, list[str]] = {}
    for path in modules:  # Amaranth's order, parents first, so that names do not depend on merging
        if path in representative:
            members.setdefault(representative[path], []).append(path)
    names = {top: top} | {kind: f"{top}_{kind}" for m in modules.values() for kind in m.children if kind not in modules}
    used = {*PORTS, *names.values()}
    for path, paths in members.items():
        if path == top:
            continue
        parts = list(dict.fromkeys(p.rsplit(".", 1)[-1] for p in paths))
        stems = list(dict.fromkeys(_NUMBER_AT_END.sub("", part) for part in parts))
        name = stems[0] if len(parts) > 1 and len(stems) == 1 and stems[0] else parts[0]
        names[path] = _unused(f"{top}_" + re.sub(r"\W", "_", name), used)
    return names


def _unused(name: str, used: set[str]) -> str:
    """``name``, or with the first number that makes it unused; it is added to ``used``."""
    free, k = name, 0
    while free in used:
        k += 1
        free = f"{name}_{k}"
    used.add(free)
    return free


def _ordered_ports(body: str, *, complete: bool) -> str:
    ports = {name: (width, way) for width, way, _, name in _PORT.findall(body)}
    if complete and "i_valid" in ports:
        ports = {"clk": ("1", "input"), "rst": ("1", "input")} | ports
    rank = {name: k for k, name in enumerate(PORTS)}
    ordered = sorted(ports, key=lambda name: rank.get(name, len(rank)))  # stable: other ports keep Amaranth's order
    declared = "".join(
        f"  wire width {ports[name][0]} {ports[name][1]} {k}  \\{name}\n" for k, name in enumerate(ordered, 1)
    )
    return declared + _PORT.sub("", body)


def _tile_modules(modules: dict[str, _Module], top: str) -> Iterable[str]:
    outside = dict.fromkeys(kind for m in modules.values() for kind in m.children if kind not in modules)
    for kind in sorted(outside):
        if tile := tiles.parse_name(kind):
            about, registers, module = (
                f"One DSP block: p = a * b, {'signed' if tile.signed else 'unsigned'}",
                tile.stages,
                tiles.behavioural(tile, f"{top}_{kind}"),
            )
        elif adder := adders.parse_name(kind):
            about, registers, module = (
                f"total = a + ({adder.chosen} if choose else c)",
                0,
                adders.behavioural(adder, f"{top}_{kind}"),
            )
        elif ram := memories.parse_name(kind):
            about, registers, module = (
                "A block RAM: port A reads, port B reads or writes",
                ram.registers,
                memories.behavioural(ram, f"{top}_{kind}"),
            )
        else:
            may = "only multiplier tiles, adders with a choice and block RAMs may be an Instance"
            raise ValueError(f"{kind} is an Instance of an undefined module; {may}")
        yield _comment(f"{about}. Latency: {_cycles(registers)}.\nSource: {_BLOCK}") + module


def _kept(text: str, top: str, stems: Iterable[str]) -> str:
    """``text`` with keep_hierarchy on the modules of submodules with these names, apart from a final number: registers
    of such a module are not merged with equal registers of its neighbours."""
    if names := "|".join(map(re.escape, stems)):
        module = re.compile(rf"^(?=module {top}_(?:{names})\d*(?:_\d+)?\()", re.MULTILINE)
        return module.sub("(* keep_hierarchy *)\n", text)
    return text


def _initial_values_last(text: str) -> str:
    """Move initial values from the declarations, where Yosys puts them, to the end of each module, only for
    simulation."""

    def rewritten(module: re.Match[str]) -> str:
        values = [f"    {name} = {value};\n" for _, name, value in _INITIALISED.findall(module.group())]
        if not values:
            return module.group()
        body = _INITIALISED.sub(r"\1\2;", module.group()).removesuffix("endmodule\n")
        return f"{body}`ifndef SYNTHESIS\n  initial begin\n{''.join(values)}  end\n`endif\nendmodule\n"

    return _VERILOG_MODULE.sub(rewritten, text)


def _unsigned(text: str) -> str:
    """Give negative numbers their width where an expression could be wider.

    These are operands of an operator; a choice, an assignment, a memory's contents, and a comparison for equality with
    a whole signal of 32 bits have that width anyway.
    """

    def with_widths(module: re.Match[str]) -> str:
        words = set(_WORD.findall(module.group()))

        def expression(found: re.Match[str]) -> str:
            same = _SAME_WIDTH.fullmatch(found[2])
            if same and (same[1] or same[2]) in {None, *words}:
                return found.group()
            return found[1] + _NEGATIVE.sub(lambda number: f"32'd{(1 << 32) - int(number[1])}", found[2]) + ";"

        return _NEGATIVE_IN.sub(expression, module.group())

    return _VERILOG_MODULE.sub(with_widths, text)


def _without_escapes(text: str) -> str:
    """Replace the backslash of names that are keywords (a memory called `table`) by an underscore."""
    taken = set(re.findall(r"\w+", text))
    for escaped in dict.fromkeys(re.findall(r"\\(\S+)\s", text)):
        name = re.sub(r"\W", "_", escaped) + "_"
        while name in taken:
            name += "_"
        taken.add(name)
        text = re.sub(rf"\\{re.escape(escaped)}\s", f"{name} ", text)
    return text


def digest(verilog: str) -> str:
    """``sha256:`` and the hexadecimal digest of a Verilog text."""
    return "sha256:" + hashlib.sha256(verilog.encode()).hexdigest()


def netlist_digest(netlist: str) -> str:
    """The digest of a `netlist` without the comments before its modules and without attributes for other tools."""
    for attributes in (tiles.ATTRIBUTES, memories.ATTRIBUTES):
        netlist = netlist.replace(attributes, "")
    netlist = netlist.replace("(* no_rw_check *)\n ", "(* no_rw_check *)")
    return digest(_COMMENT.sub("", netlist))


def require_name(top: str) -> None:
    """Raise UnsupportedError unless ``top`` is a valid name of a Verilog module of at most 64 characters."""
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", top):
        raise UnsupportedError(
            f"the module's name must be at most 64 letters, digits and underscores, not {shortened(top)}"
        )
    if top in _KEYWORDS:
        raise UnsupportedError(f"the module's name must not be a keyword of Verilog: {shortened(top)}")
