# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The quality of `check`: it runs on mutants of the core in a folder and must find each mutant that is not equivalent.

Digest, record and stored vectors are ignored: only simulation judges. All mutants are in one text (`mutants.mutate`)
that is compiled once. A mutant that passes the short check of `build` gets the full check; if it passes that too, it is
compared with the original by proof (`mutants.equivalence`). A mutant that is neither found nor proved equivalent is
simulated again, with many more products than a check has, and with every pair of operands if these are few. If there
are too many, its results are compared with the original's for all operands at once, in some schedules of pauses, stalls
and resets (`mutants.all_operands`). If all are right, no operands kill it (exhausted), or it has survived and is
reported with its place.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from modmill.contract import Binary, Contract, Digits, Ranges, UnsupportedError
from modmill.cores import pair_check
from modmill.cores.built import BuiltEngine, Message
from modmill.cores.ecc import check as ecc_check
from modmill.cores.ecc import machine as ecc
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.folder import load
from modmill.cores.multiplier.verify import FULL, SHORT, Report, exhaust, simulate
from modmill.cores.rsa import check as engine_check
from modmill.cores.rsa import machine as engine
from modmill.flow import tools
from modmill.flow.simulate import Simulator, widths
from modmill.flow.words import WordSimulator
from modmill.numbers.curves.affine import Weierstrass
from modmill.proofs.mutants.all_operands import AllOperands, Schedule, schedules
from modmill.proofs.mutants.equivalence import RANGED, REACHED, Operands, equivalent
from modmill.proofs.mutants.mutate import CLASSES, Mutant, chosen, mutate
from modmill.report.rows import Row
from modmill.version import __version__

VECTORS = 500
"""Number of random products for each mutant; corners, starts and chains are those of `check`."""
LONG = 20_000
"""Number of random products for a mutant without proof."""
EXHAUSTIVE = 500_000
"""Largest number of pairs of operands that are all simulated."""
RUNS = 20_000
"""Largest number of powers, or of multiples of points, that are all simulated in an engine."""
SHORTLY, WHOLLY, LENGTHILY = range(3)
"""Simulations of a mutant: as in `build`, as in `check`, and as in `check` with `LONG` random products and all pairs of
operands."""
SUBJECTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("channel-multiply", "29", "native", {}), ("channel-reduce", "29", "native", {}), ("wide", "29", "native", {}),
    ("orup", "29", "native", {"digit": 3, "delay": 1}), ("mcivor", "29", "native", {"word": 3}),
    ("iddmm", "29", "native", {"digit": 3}), ("multistep", "29", "native", {"s": 2, "word": 3}),
    ("tenca-koc", "29", "native", {"w": 3, "pes": 2}), ("solinas", "2^17-1", "native", {"interval": 5}),
    ("radix64k-mul", "29", "native", {"r": 4}), ("radix64k-ram", "29", "native", {"r": 8}),
    ("radix64k-table", "29", "native", {"r": 4}), ("radix64k-mul", "251", "native", {"r": 4, "feedback": True}),
    ("radix64k-ram", "65521", "native", {"r": 8, "feedback": True, "redundant": False, "tile": 10, "chain": 9}),
    ("mm-pa-n", "29", "native", {"n": 10}),
    ("mm-pa-p", "29", "native", {"n": 10}), ("mm-spa", "29", "native", {"n": 10}),
    ("sor-1m-n", "29", "plain", {"n": 12}), ("sor-1m-p", "29", "plain", {"n": 12}),
    ("sor-2m", "29", "plain", {"n": 12}), ("sor-nm", "29", "plain", {"n": 12}),
    ("sor-ring", "29", "plain", {"w": 12}), ("montgomery-array", "29", "montgomery", {"loadable": False}),
    ("parallel", "29", "native", {"digit": 4, "fold": "tables"}),
    ("pseudo-mersenne", "2^61-1", "native", {}), ("karatsuba", "2^85-19", "native", {}),
    ("karatsuba-solinas", "2^85-2^60-1", "native", {}), ("karatsuba-montgomery", "2^52-59", "native", {}),
    ("karatsuba-two-level", "2^61-1", "native", {}), ("karatsuba-two-level-solinas", "2^64-2^32+1", "native", {}),
    ("hbe", "29", "montgomery", {"n": 2, "w": 12}),
    ("kbe", "29", "montgomery", {"n": 1, "w": 12}), ("kbe-extension", "8191", "native", {"n": 6}),
    ("hbe-extension", "8191", "native", {"n": 6}), ("sq-rns", "29", "montgomery", {"n": 2, "w": 12}),
    ("dq-rns", "29", "montgomery", {"n": 2, "w": 12}),
    ("shenoy-kumaresan", "29", "montgomery", {"n": 1, "w": 12}),
    ("kbe-reduction", "29", "native", {"w": 12}), ("hbe-reduction", "29", "native", {"w": 12}),
)  # fmt: skip
"""The cores with rates in ``results``: every design at a small modulus, with words so short that it has several. Where
the proofs are too large, operands are binary: then all pairs of operands are simulated."""
PLAIN: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("iddmm", "29", "plain", {"digit": 3}),
    ("montgomery-array", "29", "plain", {}),
)
"""Plain forms with rates in ``results``: two products, with a constant and with a loaded square."""
ENGINES: dict[str, Callable[[], BuiltEngine]] = {
    "rsa": lambda: engine.engine("multistep", width=5, bits=4, threads=1, window=2),
    "ecc": lambda: ecc.ecc(Weierstrass(11, (2, 4), 13, a=1, b=6), "montgomery-array", {"loadable": False}, threads=1),
}
"""The engines with rates in ``results``, so small that all messages can be simulated: powers of 4-bit exponents modulo
all numbers of 5 bits; the 13 points of y^2 = x^3 + x + 6 over F_11."""
STATES = ("killed", "equivalent", "exhausted", "survived")

Check = Callable[[int, int], str]
"""Simulates a mutant, in the way of the second argument, and returns the first fault, or an empty text."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mutant. ``state``: one of `STATES`. ``why``: the fault that was found, or the proof of
    equivalence, or the number of operand pairs that were all simulated."""

    mutant: Mutant
    number: int
    state: str
    why: str

    @property
    def line(self) -> str:
        """The outcome in one line."""
        return f"{self.number} {self.mutant.line}: {self.state}{f', {self.why}' if self.why else ''}"


@dataclass
class MutantReport:
    """The result of a check on mutants. ``about``: the mutated core in words. ``proof_seconds``: time for a proof."""

    name: str
    digest: str
    seed: int
    about: dict[str, Any]
    proof_seconds: float
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def counts(self) -> Counter[str]:
        """Mutants by state."""
        return Counter(outcome.state for outcome in self.outcomes)

    @property
    def survivors(self) -> list[Outcome]:
        """Mutants that were neither found nor proved equivalent."""
        return [outcome for outcome in self.outcomes if outcome.state == "survived"]

    def classes(self) -> dict[str, dict[str, int]]:
        """Number of mutants of each class, and of those killed, equivalent and survived."""
        found = {}
        for kind in CLASSES:
            states = Counter(o.state for o in self.outcomes if o.mutant.kind == kind)
            if states:
                found[kind] = {"mutants": states.total(), **{state: states[state] for state in STATES}}
        return found

    @property
    def lines(self) -> Iterator[str]:
        """The report for a terminal."""
        counts = self.counts
        found = ", ".join(f"{counts[state]} {state}" for state in STATES)
        yield f"{self.name}: {len(self.outcomes)} mutants: {found}; {self.seconds:.0f} s"
        for kind, row in self.classes().items():
            yield f"  {kind:<11} {row['mutants']:>4} " + ", ".join(f"{row[state]} {state}" for state in STATES)
        yield from (f"  {outcome.line}" for outcome in self.outcomes if outcome.state != "killed")

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "name": self.name, "digest": self.digest, "seed": self.seed, **self.values(),
            "outcomes": [
                {"number": o.number, "class": o.mutant.kind, "what": o.mutant.what, "cell": o.mutant.cell,
                 "name": o.mutant.name, "path": o.mutant.path, "state": o.state, "why": o.why} for o in self.outcomes
            ],
        }  # fmt: skip

    def values(self) -> dict[str, Any]:
        """The numbers of a row."""
        proved = Counter(o.why for o in self.outcomes if o.state == "equivalent")
        return {
            "mutants": len(self.outcomes), **{state: self.counts[state] for state in STATES},
            "classes": self.classes(), "proved": dict(sorted(proved.items())),
            "survivors": [o.line for o in self.survivors], "seconds": round(self.seconds, 1),
        }  # fmt: skip

    def row(self) -> Row:
        """The row for ``results``."""
        by = ", ".join(f"{tool} {tools.version(tool)}" for tool in ("yosys", "verilator"))
        about = {**self.about, "proof_seconds": self.proof_seconds, "modmill": __version__, "tools": by}
        return Row("mutate", self.digest, f"modmill {__version__}", "", self.seed, self.values(), about)


@dataclass(frozen=True)
class Subject:
    """The core or engine to be mutated. ``check``: makes a simulation from a mutated text. ``power_up``: cycles of the
    reset after power-up. ``operands``: the range of numbers at its ports, unless they are residues. ``pairs``: number
    of all pairs of operands, or of all runs of an engine, if they are simulated, else 0. ``ranges``: for
    proofs. ``schedules``: in which a mutant is compared for all operands, if not all pairs are simulated."""

    name: str
    digest: str
    verilog: str
    top: str
    about: dict[str, Any]
    check: Callable[[str], Check]
    power_up: int = 1
    operands: Operands | None = None
    pairs: int = 0
    ranges: Ranges = field(default_factory=dict)
    schedules: tuple[Schedule, ...] = ()

    @classmethod
    def read(cls, path: str | Path, vectors: int = VECTORS) -> Subject:
        """The core or engine in a folder. Raises ValueError if there is none, or its digest differs from the record."""
        folder = Path(path)
        for name, make in (("contract.json", _core), ("engine.json", _engine), ("ecc.json", _ecc)):
            if (folder / name).exists():
                return make(folder, vectors)
        raise UnsupportedError(f"{folder} holds no core: contract.json, engine.json or ecc.json is needed")


def _core(folder: Path, vectors: int) -> Subject:
    core = load(folder)
    contract = core.contract
    pairs = (contract.largest_operand + 1) ** contract.operands
    pairs = pairs if pairs <= EXHAUSTIVE else 0

    def check(verilog: str) -> Check:
        simulator = Simulator(verilog, top=core.top, widths=widths(contract), instances=2, power_up=contract.power_up)

        def run(number: int, how: int) -> str:
            report = Report(core.name)
            effort, count = (SHORT if how == SHORTLY else FULL), (LONG if how == LENGTHILY else vectors)
            with chosen(number):
                simulate(core, simulator, report, vectors=count, seed=1 + how // LENGTHILY, effort=effort)
                if how == LENGTHILY and pairs and report.passed:
                    exhaust(core, simulator, report)
            return next(iter(report.failures), "")

        return run

    about = {
        "design": core.design.name, "modulus": hex(core.modulus.value), "io": core.io,
        "parameters": dict(core.fitted.settings),
    }  # fmt: skip
    at, loaded = contract.timing, contract.load is not None
    return Subject(
        core.name, core.digest, core.verilog, core.top, about, check, contract.power_up, _operands(contract), pairs,
        core.fitted.core(core.io).ranges,
        () if pairs or loaded else tuple(schedules(at.latency, at.interval, at.in_flight, contract.power_up)),
    )  # fmt: skip


def _operands(contract: Contract) -> Operands | None:
    match contract.operand:
        case Binary():
            return Operands(contract.largest_operand)
        case Digits() as form:
            return Operands(contract.largest_operand, form.r + 2, form.r)
    return None


def named_cores() -> dict[str, tuple[str, str, str, dict[str, Any]]]:
    """`SUBJECTS` and `PLAIN` by name: that of the design; of its second core with `-2` behind it."""
    cores: dict[str, tuple[str, str, str, dict[str, Any]]] = {}
    for case in (*SUBJECTS, *PLAIN):
        cores[case[0] if case[0] not in cores else f"{case[0]}-2"] = case
    return cores


def write(name: str, folder: Path) -> Path:
    """Write one of `named_cores`, or an engine of `ENGINES`, without a check. Raises KeyError for another name."""
    if name in ENGINES:
        return ENGINES[name]().write(folder, f"modmill mutate --subject {name}")
    design, modulus, io, settings = named_cores()[name]
    return build(design, modulus, io, **settings).write(folder, check=False)


def _engine(folder: Path, _: int) -> Subject:
    core = engine.read(folder)
    what = {"engine": "rsa", **core.about()}
    runs = sum(engine_check.moduli(core)) * ((1 << core.layout.powers[0].bits) + 1) if core.fitted.load else RUNS + 1
    every = partial(engine_check.every, core)
    return _machine(folder, core, what, lambda: engine_check.messages(core), "powers", every, runs)


def _ecc(folder: Path, _: int) -> Subject:
    core = ecc.read(folder)
    what, curve = {"engine": "ecc", **core.about()}, core.curve
    runs = (
        (curve.n - 1) * (curve.p - 1) << core.scalar_bits
        if core.jobs == ("multiply",) and core.cores == 1
        else RUNS + 1
    )
    every = partial(ecc_check.every, core)
    return _machine(folder, core, what, lambda: ecc_check.messages(core), "results", every, runs)


def _machine(
    folder: Path, core: Any, about: dict[str, Any], messages: Callable[[], pair_check.Messages], kind: str,
    every: Callable[[], Iterator[Message]], runs: int,
) -> Subject:  # fmt: skip
    name, given = folder.resolve().name, messages()
    whole = pair_check.Stream(core, every()) if runs <= RUNS else None

    def check(verilog: str) -> Check:
        simulator = WordSimulator(verilog, core.word, top=core.top, instances=2, power_up=core.power_up)

        def run(number: int, how: int) -> str:
            report = pair_check.PairReport(name, kind)
            found: Iterator[str] = iter(())
            with chosen(number):
                if how != LENGTHILY:
                    found = pair_check.simulated(core, given, simulator, report, short=how == SHORTLY)
                elif whole:
                    found = pair_check.exhaust(core, whole, simulator, report)
                return next(found, "")

        return run

    return Subject(name, core.digest, core.verilog, core.top, about, check, core.power_up, pairs=runs if whole else 0)


def check_mutants(
    subject: Subject, count: int, seed: int = 1, *, progress: Callable[[str, int, int], None] | None = None,
    proof_seconds: float = 20,
) -> MutantReport:  # fmt: skip
    """Draw mutants, simulate each, and try to prove equivalent those that pass, for ``proof_seconds`` each; mutants
    without proof are simulated at length.

    Raises ValueError if the original fails its check, ToolError if a tool cannot be run.
    """
    start = time.monotonic()
    report = MutantReport(subject.name, subject.digest, seed, subject.about, proof_seconds)
    mutated = mutate(subject.verilog, subject.top, count, seed)
    check = subject.check(mutated.verilog)
    if fault := check(0, SHORTLY) or check(0, WHOLLY):
        raise ValueError(f"{subject.name} fails its check without any mutation: {fault}")
    total = len(mutated.mutants)
    tell = progress or (lambda *_: None)
    found = dict[int, str]()
    for number, mutant in enumerate(mutated.mutants, 1):
        tell(mutant.line, number - 1, total)
        found[number] = check(number, SHORTLY) or check(number, WHOLLY)
    left = [number for number, why in found.items() if not why]
    tell("proofs that mutants are equivalent", 0, len(left))
    equal = equivalent(mutated, left, proof_seconds, power_up=subject.power_up, operands=subject.operands)
    proved = dict.fromkeys(equal, REACHED)
    if subject.ranges and (open_ := [number for number in left if number not in equal]):
        equal = equivalent(mutated, open_, proof_seconds, power_up=subject.power_up, ranges=subject.ranges)
        proved |= dict.fromkeys(equal, RANGED)
    unproved = [number for number in left if number not in proved]
    for done, number in enumerate(unproved):
        tell(f"without proof, {LONG:,} products: {mutated.mutants[number - 1].line}", done, len(unproved))
        found[number] = check(number, LENGTHILY)
    open_ = [number for number in unproved if not found[number]] if subject.schedules else []
    runs = AllOperands(mutated, subject.operands) if open_ else None
    same = set[int]()
    for done, number in enumerate(open_):
        tell(f"all operands at once: {mutated.mutants[number - 1].line}", done, len(open_))
        if runs and all(runs.alike(number, run) for run in subject.schedules):
            same.add(number)
    for number, mutant in enumerate(mutated.mutants, 1):
        if why := found[number]:
            state = "killed"
        elif why := proved.get(number, ""):
            state = "equivalent"
        elif subject.pairs:
            state, why = "exhausted", f"right for all {subject.pairs:,} operands"
        elif number in same:
            state, why = "exhausted", f"same results for all operands in {len(subject.schedules)} schedules"
        else:
            state = "survived"
        report.outcomes.append(Outcome(mutant, number, state, why))
    report.seconds = time.monotonic() - start
    return report
