# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Costs in the HBE paper (`studies.papers.hbe`): Section IV-C, Table II, the curves of Figures 2, 4, 5 and 6, and the
claims about them.

Predicted values follow from the cost formulas (numbers.rns.rns_costs), measured values are counted in runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns import rns_costs
from modmill.numbers.rns.base_pairs import base_pair, deal
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.extension import HBE, KBE
from modmill.numbers.rns.rns_costs import BE_MM, HPR_2, HPR_4, Algorithm
from modmill.numbers.rns.rns_montgomery import Gandino
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Line, Section
from modmill.report.traces import counted
from modmill.studies.papers.hbe_rower import Pair, points

TABLE_II: Mapping[str, Mapping[int | None, tuple[Fraction, int]]] = {
    # a and b of a n^2 + b n; None: with KBE, 2 and 4: with HBE and that ratio
    BE_MM.name: {None: (Fraction(2), 4), 2: (Fraction(3, 2), 6), 4: (Fraction(5, 4), 6)},
    HPR_2.name: {None: (Fraction(1), 8), 2: (Fraction(3, 4), 10), 4: (Fraction(5, 8), 10)},
    HPR_4.name: {None: (Fraction(1, 2), 12), 2: (Fraction(3, 8), 14), 4: (Fraction(5, 16), 14)},
}

FIGURES: tuple[tuple[str, Algorithm | None, str, range], ...] = (
    ("Figure 2", None, "one base extension", range(6, 63, 4)),
    ("Figure 4", BE_MM, "one RNS Montgomery multiplication", range(6, 63, 4)),
    ("Figure 5", HPR_2, "one HPR multiplication, d = 2", range(6, 63, 4)),
    ("Figure 6", HPR_4, "one HPR multiplication, d = 4", range(16, 65, 4)),
)


def charts_and_claims(found: Sequence[Pair]) -> list[Section]:
    """The figures, with our cores among them, and the claims about them."""
    return [*(_figure(*figure, found) for figure in FIGURES), _claims()]


def _formula(square: Fraction, linear: Fraction | int) -> str:
    return f"{'' if square == 1 else f'{square} '}n^2 + {'' if linear == 1 else f'{linear} '}n"


def _found(cost: Callable[[int], Fraction]) -> str:
    """The formula of a cost a n^2 + b n. Raises ValueError if it has another form."""
    square = (cost(2) - 2 * cost(1)) / 2
    linear = cost(1) - square
    if any(cost(n) != square * n * n + linear * n for n in (3, 10, 31)):
        raise ValueError("the cost does not have the form a n^2 + b n")
    return _formula(square, linear)


def costs() -> list[Section]:
    """Section IV-C and Table II: formulas, and operations counted in runs for n = 16."""
    n, w = 16, 17
    pair = deal(choose_moduli(w, 2 * n).moduli)
    a, b = pair.a, pair.b
    p = parse_modulus("secp256k1").value
    lines = [
        Line("one KBE", _formula(Fraction(1), 1), _found(rns_costs.kbe), why="Section IV-C"),
        Line(f"one KBE at n = {n}, operations", None, int(rns_costs.kbe(n)),
             counted(int(KBE.of(a, b.moduli, 5).count.cmm(2)), f"KBE, n = {n}"), "measured: counted in a run"),
    ]  # fmt: skip
    for r in (2, 4):
        run = counted(int(HBE.of(a, b.moduli, 5, 2).count.cmm(r, 1)), f"HBE, n = {n}, c = 2, r = {r}")
        lines += [
            Line(f"one HBE, r = {r}", _formula((1 + Fraction(1, r)) / 2, 2), _found(partial(rns_costs.hbe, r=r)),
                 why="Section IV-C"),
            Line(f"one HBE, r = {r}, at n = {n}, operations", None, int(rns_costs.hbe(n, r)), run,
                 "measured: counted in a run; MUL as MM"),
        ]  # fmt: skip
    table = []
    for algorithm in (BE_MM, HPR_2, HPR_4):
        for ratio, printed in TABLE_II[algorithm.name].items():
            label = f"{algorithm.name}, " + ("KBE" if ratio is None else f"HBE (r = {ratio})")
            cost = partial(rns_costs.product, algorithm, r=ratio)
            table.append(Line(label, _formula(*printed), _found(cost)))
            if algorithm == BE_MM:
                mm = int(Gandino.of(p, a, b, 6, c=1 if ratio is None else 2).count.cmm(ratio or 1, 1))
                table.append(Line(f"{label}, at n = {n}", None, int(cost(n)),
                                  counted(mm, f"Montgomery multiplication, {label}, n = {n}"),
                                  "measured: counted in a run"))  # fmt: skip
    return [
        Section("Section IV-C: cost of one base extension in CMM", lines, "c = 2, r = CMM / CMR, CMUL = CMM."),
        Section("Table II: cost of one modular multiplication in CMM", table,
                "B with as many moduli as A; HPR needs one more there, which neither column counts."),
    ]  # fmt: skip


def relative_cost(algorithm: Algorithm | None, n: int, r: Fraction | int) -> Fraction:
    """Cost with HBE / cost with KBE: of a multiplication, or of one extension if ``algorithm`` is None."""
    if algorithm is None:
        return rns_costs.extension_ratio(n, r)
    return rns_costs.product_ratio(algorithm, n, r)


def _figure(figure: str, algorithm: Algorithm | None, what: str, ns: range, found: Sequence[Pair]) -> Section:
    """A figure with a curve for each ratio r, one for pipelined rowers, and our cores: a table and bars."""
    values = {n: [relative_cost(algorithm, n, r) for r in rns_costs.RATIOS] for n in ns}
    ours = {n: rns_costs.pipelined_ratio(algorithm, n) for n in ns}
    limits = [rns_costs.asymptote(r) for r in rns_costs.RATIOS]
    measured = points(found, algorithm)
    bars = ["  n    r = 2   r = 3   r = 4   pipelined"]
    for label, some, own in (*((f"{n:3}  ", values[n], ours[n]) for n in ns), ("limit", limits, Fraction(1, 2))):
        bars.append(f"{label}  " + "   ".join(f"{float(v):.3f}" for v in (*some, own)) + "   " + _marks(some, own))
    title = f"{figure}: {what}"
    series = [
        Series(f"r = {r}", "predicted", [(n, round(float(values[n][k]), 4)) for n in ns])
        for k, r in enumerate(rns_costs.RATIOS)
    ]
    series.append(Series("pipelined rowers", "predicted", [(n, round(float(ours[n]), 4)) for n in ns]))
    series += filter(None, [measured])
    built = "" if measured else "; no core of ours has this operation" if algorithm not in (None, BE_MM) else ""
    return Section(
        title,
        text="Predicted cost with HBE / cost with KBE (c = 2) against n; 2, 3, 4 mark the paper's curves of r = CMM / "
        f"CMR, p that of pipelined rowers, where reductions run beside multiplications{built}.",
        chart=[*bars, " " * 42 + "0.5" + " " * 56 + "1.0"],
        plots=[Plot(title, "n, moduli in a base", "cost with HBE / cost with KBE", series)],
    )


def _marks(values: Iterable[Fraction], ours: Fraction) -> str:
    """A line of 60 columns for 0.5 to 1, with a digit r at each value and p at that of pipelined rowers."""
    line = [" "] * 60
    for mark, value in (("p", ours), *zip(map(str, rns_costs.RATIOS), values, strict=True)):
        at = round((float(value) - 0.5) / (1.0 - 0.5) * 59)
        if 0 <= at < 60:
            line[at] = mark
    return "".join(line).rstrip()


def _saving(algorithm: Algorithm | None, n: int, r: int) -> str:
    """Percent of the cost that HBE saves."""
    return f"{float(100 * (1 - relative_cost(algorithm, n, r))):.1f}"


def _claims() -> Section:
    def span(algorithm: Algorithm | None, low: int, high: int) -> str:
        return f"{_saving(algorithm, low, 2)} to {_saving(algorithm, high, 4)} %"

    first = rns_costs.first_saving(Fraction(35, 100), 4)
    limit = float(100 * (1 - rns_costs.asymptote(4)))
    wins = [rns_costs.first_faster(HPR_4, HPR_2, r) for r in (None, 2, 4)]
    ecc = base_pair(parse_modulus("secp256k1").value, 17, 2)[0].n
    rsa = base_pair((1 << 512) - 569, 17, 2)[0].n
    least = ", ".join(f"{float(relative_cost(None, 16, r)):.3f} for r = {r}" for r in (2, 3, 4))
    return Section("Claims about the figures", [
        Line("Figure 2, n = 6 to 32: a base extension is cheaper by", "up to 35 %", f"up to {_saving(None, 32, 4)} %",
             why=f"r = 4, n = 32; 35 % from n = {first} on, limit {limit} %"),
        Line("Figure 4: a multiplication is cheaper by", "17 % up to 32 %", span(BE_MM, 16, 32),
             why="n = 16, r = 2 and n = 32, r = 4"),
        *(Line(f"Figure {figure}, n = {n}: HPR with d = {x.d} is cheaper by", printed, span(x, n, n),
               why="r = 2 and r = 4")
          for figure, n, x, printed in (
              (5, 16, HPR_2, "8 to 17 %"), (5, 32, HPR_2, "15 to 25 %"), (6, 32, HPR_4, "8 to 15 %"))),
        Line("HPR with d = 4 is cheaper than with d = 2 from n =", 16, wins[0],
             why=f"by Table II: n = {wins[0]} with KBE, {wins[1]} with HBE (r = 2), {wins[2]} with HBE (r = 4)"),
        Line("CMM / CMR = 4 is, for HBE, the", "pessimistic ratio", "optimistic ratio",
             why=f"HBE costs least with it: {least} (Figure 2, n = 16); meant: better moduli would give more"),
        Line("moduli of 17 bits for 256-bit ECC", 16, ecc, why="by the exact conditions, rows of two"),
        Line("moduli of 17 bits for 1024-bit RSA-CRT", 32, rsa,
             why="by the exact conditions, rows of two, for the modulus 2^512 - 569"),
    ])  # fmt: skip
