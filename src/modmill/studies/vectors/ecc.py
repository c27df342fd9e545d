# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Published vectors through the protocols on a coprocessor: by its design's bit-exact algorithm, or by its RTL.

First a probe engine, which answers G to every run, records the runs that each vector needs. The real engine then does
these runs in full jobs, each run once even if several vectors need it, and the vectors are judged by its answers. With
``order`` the engine also does the arithmetic modulo n of signatures; runs that depend on its own points follow while
a vector is judged.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from modmill.contract import UnsupportedError
from modmill.cores.ecc.engine import ExactPointEngine, RtlPointEngine
from modmill.cores.ecc.machine import ecc, takes_order
from modmill.engines.ecc.blinding import NUMBERS, Ecc, HostOrder, OrderArithmetic, PointEngine, Run
from modmill.engines.ecc.point_engine import OPERATIONS
from modmill.flow import tools
from modmill.numbers.curves.affine import Curve, Montgomery
from modmill.numbers.curves.named import CURVES
from modmill.numbers.shown import shortened
from modmill.studies.vectors import ecc_files as read
from modmill.studies.vectors.ecc_cases import Case, distinct, faults, sample
from modmill.studies.vectors.ecc_edges import exceptional
from modmill.studies.vectors.runner import Outcome, Progress, Vectors, kept, outcome
from modmill.version import __version__

ENGINES = ("exact", "rtl")
Asked = tuple[str, int, tuple[int, ...], tuple[tuple[str, int], ...]]
"""A run that an engine is asked for: operation, bits, scalars, numbers with their names."""


def files() -> dict[str, Callable[[], list[Case]]]:
    """Name of every file of published vectors -> its reader. Raises UnsupportedError if the packages are missing."""
    return {
        **{f"wycheproof/{name}": partial(read.wycheproof, name) for name in read.wycheproof_files()},
        "nist/cdh and RFC 7027": read.nist_cdh,
        "nist/186-2 SigVer": partial(read.nist_signatures, "FIPS_186-2/SigVer.rsp"),
        "nist/186-3 SigVer": partial(read.nist_signatures, "FIPS_186-3/SigVer.rsp"),
        "secp256k1/SigGen": partial(read.nist_signatures, "SECP256K1/SigGen.txt"),
        "RFC 6979": read.rfc6979,
        "RFC 7748": read.rfc7748,
        "RFC 8032": read.rfc8032,
    }


@dataclass(frozen=True)
class CurveVectors(Vectors):
    """The cases of one file on one curve."""

    curve: Curve

    @property
    def text(self) -> str:
        """A line for each case."""
        return "\n".join(map(_text, self.cases))


def _text(case: Case) -> str:
    """The text of a case; in hexadecimal if a number has more than 4300 digits, Python's limit for decimal."""
    try:
        return repr(case)
    except ValueError:
        return repr(replace(case, item=_hexadecimal(case.item)))


def _hexadecimal(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(map(_hexadecimal, item))
    return hex(item) if isinstance(item, int) else item


def select(curves: Sequence[Curve] = (), count: int = 0, names: Sequence[str] = ()) -> list[CurveVectors]:
    """Return the vectors on these curves (default: all named ones), the exceptional multiples of each curve last.

    ``count``: maximum number for each curve and operation of a protocol, all different and all needing an engine;
    `sample` picks them from all files; 0 for all. ``names``: only files whose names contain one of these.
    Raises UnsupportedError if the packages are missing, and if no vectors remain.
    """
    wanted = [curve.name for curve in curves] or [curve.name for curve in CURVES]
    by_name = {curve.name: curve for curve in (*CURVES, *curves)}
    chosen: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    for file, load in files().items():
        if not names or any(name in file for name in names):
            for case in load():
                chosen[case.curve].append((file, case))
    if not names or any(name in "exceptional" for name in names):
        for name in wanted:
            if curves or name in chosen:
                chosen[name] += (("exceptional", case) for case in exceptional(by_name[name]))
    out = []
    for name in wanted:
        kept = _sampled(by_name[name], chosen[name], count) if count else chosen[name]
        by_file: dict[str, list[Case]] = defaultdict(list)
        for file, case in kept:
            by_file[file].append(case)
        out += [CurveVectors(file, tuple(cases), by_name[name]) for file, cases in by_file.items()]
    if not out:
        raise UnsupportedError(
            f"there are no published vectors for {', '.join(wanted)} in {' or '.join(names) or 'any file'}"
        )
    return out


def _sampled(curve: Curve, pairs: Sequence[tuple[str, Case]], count: int) -> list[tuple[str, Case]]:
    """Sample with the file as an additional flag, so that each file is in the sample."""
    by_operation: dict[str, list[Case]] = defaultdict(list)
    file_of = {id(case): file for file, case in pairs}
    for case in distinct(case for _, case in pairs):
        if asked(curve, case):
            by_operation[case.operation].append(replace(case, flags=(file_of[id(case)], *case.flags)))
    return [(case.flags[0], case) for cases in by_operation.values() for case in sample(cases, count)]


@dataclass(frozen=True)
class ProbeEngine(PointEngine):
    """A `PointEngine` that computes nothing: every point is G, every u that of G."""

    curve: Curve

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """G for each run."""
        return [self.curve.base[: 1 if operation == "ladder" else 2]] * len(runs)


def asked(curve: Curve, *cases: Case, order: bool = False) -> list[Asked]:
    """Return the runs that the cases need, each once. Some need none, such as a malformed signature.

    With ``order`` also runs modulo n, except those that depend on points computed by the engine.
    """
    probe = CachingEngine(ProbeEngine(curve), HostOrder() if order else None)
    faults(lambda _: probe.protocols, cases)
    return [run for run in probe.known if run[0] not in _AFTER_POINTS]


_AFTER_POINTS = ("signature", "multiply-add")
"""Operations modulo n on the point of a nonce."""


@dataclass(frozen=True)
class CachingEngine(PointEngine):
    """A `PointEngine` that asks ``engine``, and ``order`` if it is given, for each run once. ``known``: run -> results,
    in the order of the runs; ``seconds``: run -> its time."""

    engine: PointEngine
    order: OrderArithmetic | None = None
    known: dict[Asked, tuple[int, ...]] = field(default_factory=dict)
    seconds: dict[Asked, float] = field(default_factory=dict)

    @property
    def curve(self) -> Curve:
        """The curve of ``engine``."""
        return self.engine.curve

    @property
    def protocols(self) -> Ecc:
        """The protocols on this engine, without checks; arithmetic modulo n on the host unless ``order`` is given."""
        return Ecc(self, check=False, order=_CachingOrder(self) if self.order else HostOrder())

    def results(self, operation: str, bits: int, runs: Sequence[Run]) -> list[tuple[int, ...]]:
        """Results of each run."""
        return self.answers([(operation, bits, scalars, tuple(given.items())) for scalars, given in runs])

    def answers(self, runs: Sequence[Asked]) -> list[tuple[int, ...]]:
        """Results of runs of one operation with scalars of one length; unknown ones are asked for in one call."""
        if missing := [run for run in dict.fromkeys(runs) if run not in self.known]:
            start = time.monotonic()
            found = self._ask(missing)
            each = (time.monotonic() - start) / len(missing)
            self.known.update(zip(missing, found, strict=True))
            self.seconds.update(dict.fromkeys(missing, each))
        return [self.known[run] for run in runs]

    def _ask(self, runs: Sequence[Asked]) -> list[tuple[int, ...]]:
        operation, bits, *_ = runs[0]
        given = [(scalars, dict(numbers)) for _, _, scalars, numbers in runs]
        if operation not in NUMBERS:
            return self.engine.results(operation, bits, given)
        assert self.order is not None
        return self.order.results(self.curve.n, operation, [numbers for _, numbers in given])


@dataclass(frozen=True)
class _CachingOrder(OrderArithmetic):
    """An `OrderArithmetic` whose runs are kept in ``engine``."""

    engine: CachingEngine
    where: str = "engine"

    def results(self, n: int, operation: str, runs: Sequence[Mapping[str, int]]) -> list[tuple[int, ...]]:
        """Results of each run."""
        return self.engine.results(operation, 0, [((), given) for given in runs])


@dataclass(frozen=True)
class Machine:
    """An engine for a curve. ``batch``: runs that fill it. ``tool``, ``about``: tool and description for rows.
    ``order``: arithmetic modulo n, None for the host's."""

    engine: PointEngine
    batch: int
    tool: str
    about: Mapping[str, Any]
    order: OrderArithmetic | None = None


def machine(
    curve: Curve, kind: str, design: str, settings: Mapping[str, Any] | None = None, order: bool = False, **options: Any
) -> Machine:
    """Make a coprocessor for all operations of a curve around ``design``: its algorithm (exact) or its RTL (rtl).

    ``order``: also arithmetic modulo n, if its multiplier can load n; ``options`` as in `EccCore`. Both kinds run the
    same rows. Raises UnsupportedError if the design does not support the curve.
    """
    if kind not in ENGINES:
        raise UnsupportedError(f"the engine must be {' or '.join(ENGINES)}, not {shortened(kind)}")
    operations = OPERATIONS[3:] if isinstance(curve, Montgomery) else OPERATIONS[:3]
    order = order and takes_order(curve, design, settings or {}, operations)
    core = ecc(curve, design, settings, operations=operations, order=order, **options)
    about = {"engine": design, "by": kind, **core.about()}
    if kind == "rtl":
        about["rtl"] = core.digest
        engine = RtlPointEngine(core)
        batch, tool = core.layout.threads * core.cores, f"verilator {tools.version('verilator')}"
        return Machine(engine, batch, tool, about, engine.order if order else None)
    points = ExactPointEngine(core)
    return Machine(points, 1, f"modmill {__version__}", about, points.order if order else None)


def check(
    chosen: Iterable[CurveVectors],
    make: Callable[[Curve], Machine],
    *,
    progress: Progress | None = None,
    record: Path | None = None,
    store: Path | None = None,
) -> Iterator[Outcome[CurveVectors]]:
    """Run vectors, file by file; ``make``: the engine of a curve, called once; ``record``, ``store`` as in `kept`."""
    by_curve: dict[str, list[CurveVectors]] = defaultdict(list)
    for one in chosen:
        by_curve[one.curve.name].append(one)
    found = (_curve(some, make(some[0].curve), progress or (lambda *_: None)) for some in by_curve.values())
    return kept(chain.from_iterable(found), record, store)


def _curve(some: Sequence[CurveVectors], machine: Machine, progress: Progress) -> Iterator[Outcome[CurveVectors]]:
    engine = CachingEngine(machine.engine, machine.order)
    title = some[0].curve.title
    wanted = []
    for one in some:
        progress(f"{title}: read {one.file}", 0, 0)
        wanted.append([asked(one.curve, case, order=machine.order is not None) for case in one.cases])
    queues: dict[tuple[str, int], list[Asked]] = defaultdict(list)
    for run in dict.fromkeys(run for each in wanted for runs in each for run in runs):
        queues[run[:2]].append(run)
    total = sum(map(len, queues.values()))
    for one, each in zip(some, wanted, strict=True):
        runs = dict.fromkeys(run for of_case in each for run in of_case)
        for run in runs:
            while run not in engine.known:
                queue = queues[run[:2]]
                progress(f"{title}: {one.file}", len(engine.known), total)
                engine.answers(queue[: machine.batch])
                del queue[: machine.batch]
        before = len(engine.known)
        found = faults(lambda _: engine.protocols, one.cases)
        mine = [run for run in (*runs, *list(engine.known)[before:]) if run in engine.seconds]
        seconds = sum(engine.seconds.pop(run) for run in mine)
        asking = sum(map(bool, each))
        yield outcome(one, found, seconds, machine.tool, machine.about, asking=asking, runs=len(mine))
