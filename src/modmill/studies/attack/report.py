# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What came of the faults of a campaign: numbers by kind and place, lines for a terminal, a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from modmill.flow import tools
from modmill.report.attack_tables import OUTCOMES
from modmill.report.rows import Row
from modmill.studies.attack.faults import KINDS, Fault
from modmill.studies.attack.state import Place
from modmill.version import __version__

RELEASED = OUTCOMES[-1]
SHOWN = 10
"""Largest number of faults with a wrong result that a report lists."""
_PLACES = {False: "registers", True: "memories"}


@dataclass(frozen=True)
class FaultReport:
    """The result of a campaign. ``about``: engine and operation in words. ``places``: all registers and memories of
    the netlist. ``cycles``: of the operation. ``outcomes``: each fault with its outcome."""

    name: str
    digest: str
    seed: int
    about: dict[str, Any]
    places: Sequence[Place]
    cycles: int
    outcomes: Sequence[tuple[Fault, str]]
    seconds: float

    @property
    def counts(self) -> Counter[str]:
        """Faults by outcome."""
        return Counter(outcome for _, outcome in self.outcomes)

    @property
    def released(self) -> list[Fault]:
        """Faults after which a wrong result left the engine."""
        return [fault for fault, outcome in self.outcomes if outcome == RELEASED]

    def classes(self) -> dict[str, dict[str, int]]:
        """Numbers of faults by kind and place, in all and by outcome; classes without faults are left out."""
        found: dict[str, dict[str, int]] = {}
        for kind in KINDS:
            for memory, where in _PLACES.items():
                counts = Counter(
                    outcome for fault, outcome in self.outcomes
                    if fault.kind == kind and self.places[fault.place].memory == memory
                )  # fmt: skip
                if counts:
                    found[f"{kind}, {where}"] = {"faults": counts.total(), **{x: counts[x] for x in OUTCOMES}}
        return found

    def line(self, fault: Fault) -> str:
        """A fault in one line."""
        place = self.places[fault.place]
        word = f" of word {fault.word}" if place.memory else ""
        what = "" if fault.kind == KINDS[-1] else f" bit {place.low + fault.bit}{word}"
        return f"{fault.kind}{what} of {place.name} in cycle {fault.cycle:,}"

    @property
    def lines(self) -> Iterator[str]:
        """The report for a terminal."""
        counts, values = self.counts, self.values()
        found = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in OUTCOMES)
        what = f"{self.about['operation']} ({self.cycles:,} cycles)"
        yield f"{self.name}: {len(self.outcomes):,} faults in {what}: {found}"
        width = max(map(len, self.classes()))
        for name, row in self.classes().items():
            yield f"  {name:<{width}} {row['faults']:>7,} " + ", ".join(f"{row[x]:,} {x}" for x in OUTCOMES)
        for where in _PLACES.values():
            each = values[where]
            yield f"  {each['hit']:,} of {each['all']:,} {where} with {each['bits']:,} bits were hit"
        shown = self.released[:SHOWN]
        yield from (f"  wrong result released: {self.line(fault)}" for fault in shown)
        if more := len(self.released) - len(shown):
            yield f"  and {more:,} more"

    def values(self) -> dict[str, Any]:
        """The numbers of a row."""
        hit = {fault.place for fault, _ in self.outcomes}
        where = {
            name: {
                "all": sum(place.memory == memory for place in self.places),
                "bits": sum(place.bits for place in self.places if place.memory == memory),
                "hit": sum(self.places[k].memory == memory for k in hit),
            } for memory, name in _PLACES.items()
        }  # fmt: skip
        return {
            "faults": len(self.outcomes), **{outcome: self.counts[outcome] for outcome in OUTCOMES},
            "classes": self.classes(), **where, "cycles": self.cycles,
            "examples": [self.line(fault) for fault in self.released[:SHOWN]], "seconds": round(self.seconds, 1),
        }  # fmt: skip

    def describe(self) -> dict[str, Any]:
        """The values for JSON."""
        each = [
            {"kind": f.kind, "place": self.places[f.place].name, "word": f.word, "bit": f.bit, "cycle": f.cycle,
             "outcome": outcome} for f, outcome in self.outcomes
        ]  # fmt: skip
        places = [{"name": p.name, "bits": p.width, "words": p.words, "memory": p.memory} for p in self.places]
        about = {"name": self.name, "digest": self.digest, "seed": self.seed, **self.about}
        return {**about, **self.values(), "places": places, "outcomes": each}

    def row(self) -> Row:
        """The row for ``results``."""
        by = ", ".join(f"{tool} {tools.version(tool)}" for tool in ("yosys", "verilator"))
        about = {**self.about, "modmill": __version__, "tools": by}
        return Row("faults", self.digest, f"modmill {__version__}", "", self.seed, self.values(), about)
