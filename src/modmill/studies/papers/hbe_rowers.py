# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The HBE paper under its own conditions (`studies.papers.hbe`): a rower for every channel and reductions in DSP
blocks, rows of two to four moduli, operators with the DSP blocks and cycles of Table I, and delta of Algorithm 3.

Predicted values follow from the machines' schedules and tiles; delta is that of the bit-exact algorithm, and
tests/designs/test_reduction.py sees it in simulation. Measured values are rows, as in `hbe`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.reduction import edge_operands
from modmill.report.reproduction import Line, Section, cells
from modmill.studies.papers.bench import Bench
from modmill.studies.papers.hbe_tables import CMM, CMR, FIELDS, LOWER, PAIRS, TABLE_I, WIDTHS, Implementation, paper_n
from modmill.studies.papers.measured_core import MeasuredCore, shown

ZYNQ = "xc7z020"
FIXED = {"reduce": "dsp", "dsp": "25x18"}
"""Settings of all extensions here: reduction and products in the DSP blocks of the paper's device."""

PRINTED_N = {(384, 24): 18}
"""n where the paper's rule does not suffice (A < p for 16 moduli)."""

MODULI = {
    17: ("2^17-9", "2^17-31", "2^17-145"), 20: ("2^20-3", "2^20-59", "2^20-159"),
    24: ("2^24-3", "2^24-63", "2^24-125"), 28: ("2^28-3", "2^28-57", "2^28-95"),
}  # fmt: skip
"""Moduli for each width of Table I: two with a smaller u, and that of `hbe.CHANNELS`."""


def sections(bench: Bench) -> list[Section]:
    """Table III in this form and what follows from it, Table I's operators, Algorithm 3's delta."""
    found = {(bits, w): dict(_machines(bench, bits, w)) for bits in FIELDS for w in WIDTHS}
    return [_extensions(found), _claim(found), _operators(bench), _delta()]


# ---------------------------------------------------------------------------------------------- extensions


def _machines(bench: Bench, bits: int, w: int) -> Iterator[tuple[str, MeasuredCore | None]]:
    """(name, core) of each machine for a column of Table III."""
    n = PRINTED_N.get((bits, w), paper_n(bits, w))
    yield "KBE", _core(bench, bits, "kbe-extension", w=w, n=n, rowers=0)
    yield "HBE", _core(bench, bits, "hbe-extension", w=w, n=n, rowers=0)
    if n % 4 == 0:
        yield "HBE, n / 2 rowers", _core(bench, bits, "hbe-extension", w=w, n=n, rowers=n // 2)
    for columns in (3, 4):
        yield f"HBE, c = {columns}", _core(bench, bits, "hbe-extension", w=w, columns=columns, rowers=0)


def _core(bench: Bench, bits: int, name: str, **settings: Any) -> MeasuredCore | None:
    try:
        return MeasuredCore(bench, name, FIELDS[bits], ZYNQ, **settings, **FIXED)
    except UnsupportedError:
        return None


Machines = dict[tuple[int, int], dict[str, MeasuredCore | None]]


def _printed(bits: int, w: int, name: str) -> Implementation | None:
    """The column of Table III for a machine with a rower for every channel and c <= 2."""
    return next((x for pair in PAIRS for x in pair if (x.bits, x.w, x.algorithm) == (bits, w, name)), None)


def _extensions(found: Machines) -> Section:
    lines: list[Line] = []
    for (bits, w), machines in found.items():
        for name, core in machines.items():
            if core is None:
                continue
            row, settings = _printed(bits, w, name), core.fitted.settings
            n, rowers = settings["n"], settings["rowers"]
            lines += cells(
                f"{bits} bits, w = {w}, {name}",
                ("DSP", row and row.dsp, core.predicted_dsp, shown(core.resource("dsp")),
                 f"ours: n = {n}, {rowers} rowers of {core.predicted_dsp // rowers}"),
                ("LUT", None, None, shown(core.resource("lut")), ""),
                ("BRAM", row and row.bram, None, shown(core.resource("bram")),
                 "ours: of 18 kbit; Yosys puts the constants of a rower in LUTs if they are few"),
                ("period ns", row and row.period, None, shown(core.period, 2), f"ours; {LOWER}"),
                ("cycles", row and row.cycles, core.latency, shown(core.seen), ""),
                ("interval in cycles", None, core.interval, shown(core.seen_interval), ""),
                ("time ns", row and row.ns, None, shown(core.time(core.latency)), f"ours; {LOWER}"),
            )  # fmt: skip
    return Section(
        "Table III's form: a rower for every channel, reduction in DSP blocks, c = 1 to 4", lines,
        f"Our extensions with rowers = n and reduce = dsp, {ZYNQ}. Every rower has one multiplier and one fold, for "
        "its xi, for each X_r and for its sums; c = 3 and 4 are the paper's future work and need a stage before the "
        "fold. n by the paper's rule for c <= 2 (384 bits, w = 24: 18), the fewest for c = 3 and 4.",
    )  # fmt: skip


def less(new: float | None, old: float | None) -> float | None:
    """Reduction from ``old`` to ``new`` in percent; None if one is unknown."""
    if new is None or old is None:
        return None
    return round(100 - 100 * new / old, 1)


def _claim(found: Machines) -> Section:
    lines: list[Line] = []
    for (bits, w), machines in found.items():
        kbe = machines["KBE"]
        if kbe is None:
            continue
        printed = [_printed(bits, w, name) for name in ("KBE", "HBE")]
        for name, core in machines.items():
            if core is None or name == "KBE":
                continue
            both = printed if name == "HBE" else [None, None]
            pair = [x for x in both if x]
            seconds = [x.time(x.latency) for x in (core, kbe)]
            blocks = [x.resource("dsp") for x in (core, kbe)]
            lines += cells(
                f"{bits} bits, w = {w}, {name} against KBE",
                ("DSP fewer by %", less(pair[1].dsp, pair[0].dsp) if pair else None,
                 less(core.predicted_dsp, kbe.predicted_dsp), shown(less(*blocks))),
                ("cycles fewer by %", less(pair[1].cycles, pair[0].cycles) if pair else None,
                 less(core.latency, kbe.latency), shown(less(core.seen, kbe.seen))),
                ("interval shorter by %", None, less(core.interval, kbe.interval),
                 shown(less(core.seen_interval, kbe.seen_interval))),
                ("time less by %", less(pair[1].ns, pair[0].ns) if pair else None, None, shown(less(*seconds)),
                 f"ours: {LOWER}"),
            )  # fmt: skip
    return Section(
        "Table III's claim under its own conditions", lines,
        '"31 % fewer DSP blocks for the same time": with a rower for every channel both algorithms have the same '
        "blocks in our machine (384 bits, w = 24 apart, where KBE's longer sums need one block more a rower), because "
        "one fold serves all steps, and sums are lazy: KBE reduces n times, not n^2. "
        "The n / 2 terms of HBE save cycles, its way through the fold costs some. Half of the rowers is the other "
        "choice: half of the blocks for more cycles.",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- operators


def _operators(bench: Bench) -> Section:
    lines: list[Line] = []
    names = {CMR: "channel-reduce", CMM: "channel-multiply"}
    product = {17: 1, 20: 2, 24: 2, 28: 4}  # tiles of 17 x 24
    for op in TABLE_I:
        blocks = op.dsp - (product[op.w] if op.name == CMM else 0)
        for modulus in MODULI[op.w]:
            core = MeasuredCore(
                bench, names[op.name], modulus, ZYNQ, dsp="25x18", blocks=blocks, cycles=op.cycles
            )  # fmt: skip
            lines += cells(
                f"{op.name} modulo {modulus}",
                ("DSP", op.dsp, core.predicted_dsp, shown(core.resource("dsp"))),
                ("cycles of the operator", op.cycles, core.latency - 1, shown(core.seen and core.seen - 1),
                 "the queue's cycle not counted"),
                ("LUT", None, None, shown(core.resource("lut")), "with handshake and a queue; the paper counts slices"),
                ("FF", None, None, shown(core.resource("ff")), ""),
                ("time ns", op.ns, None, shown(core.time(core.latency - 1)), f"ours; {LOWER}"),
            )  # fmt: skip
    return Section(
        "Table I's operators with its DSP blocks and cycles", lines,
        "Ours: the first one or two folds multiply in a DSP block each (blocks = 1 or 2), and registers stand only "
        "where the printed cycles need one (cycles = 1 to 3). The paper's moduli are random and not named.",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- Algorithm 3


def _delta() -> Section:
    lines: list[Line] = []
    for name in ("kbe-reduction", "hbe-reduction"):
        for cox in (True, False):
            fitted: Any = design(name).fit((1 << 61) - 1, cox=cox)
            seen = Counter(fitted.delta(x) for x in edge_operands(fitted.params))
            most = fitted.params.most_delta
            lines.append(Line(
                f"{name}, first cox {'as in the paper' if cox else 'left out, as ours'}: delta",
                "0, 1, 2" if cox else None, ", ".join(map(str, sorted(seen))), None,
                f"at {sum(seen.values())} edge operands of M61; the bound admits 0 to {most}",
            ))  # fmt: skip
    return Section(
        "Algorithm 3: delta",
        lines,
        "S = X A^-1 mod P + delta P for X < A P. Predicted: by the bit-exact algorithm at operands that the Chinese "
        "remainder theorem gives; tests see each delta in simulation.",
    )
