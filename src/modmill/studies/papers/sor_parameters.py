# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The parameters of a sum of residues for one modulus as text, as JSON and as plots: `modmill parameters sor`, and
Sections 2.2 and 3.1 of the paper in `modmill reproduce sor`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.sor.improved import ONE_WORD, PRINTED_D, PRINTED_Q, PRINTED_T, Sor
from modmill.numbers.moduli import parse_modulus
from modmill.numbers.rns.sor_parameters import DELTA, AlphaRow, KappaRow, alpha_rows, kappa_rows, rule_q, rule_T
from modmill.report.plots import Plot, Series
from modmill.report.reproduction import Section, cells

DESIGN = "sor-1m-p"
"""The design whose settings choose the base."""
SETTINGS = ("n", "base", "operand", "T", "q")
"""The settings of DESIGN on which the parameters depend."""


@dataclass(frozen=True)
class SorParameters:
    """What `search` found: the design with its choice, the rows of q and of T, and what is known of one word."""

    fitted: Sor
    alpha: Sequence[AlphaRow]
    kappa: Sequence[KappaRow]
    one_word: Sor | str

    @property
    def row(self) -> KappaRow:
        """The row of the T that the designs take."""
        return self.at(self.fitted.rns.T)

    def at(self, T: int) -> KappaRow:
        """The row of a T."""
        return next(row for row in self.kappa if row.T == T)

    def q_marks(self, row: AlphaRow) -> str:
        """What is special about a row of q."""
        chosen, q = self.fitted.rns, row.q
        least = next((r.q for r in self.alpha if r.serves), None)
        printed = chosen.p in PRINTED_T and (q, chosen.d) == (PRINTED_Q, PRINTED_D)
        marks = {
            "the least that serves": q == least, f"the least with E <= {DELTA}": q == rule_q(self.alpha),
            f"taken, with d = {chosen.d}": q == chosen.q, "printed": printed,
        }  # fmt: skip
        return "; ".join(text for text, holds in marks.items() if holds)

    def T_marks(self, row: KappaRow) -> str:
        """What is special about a row of T."""
        chosen, T = self.fitted.rns, row.T
        below = next((r.T for r in self.kappa if r.constants.beta <= 2), None)
        marks = {
            "the least whose results can be operands": row is self.kappa[0], "the least with beta <= 2": below == T,
            "n + 2 log2 N": rule_T(chosen.base) == T, "taken": chosen.T == T, "printed": PRINTED_T.get(chosen.p) == T,
        }  # fmt: skip
        return "; ".join(text for text, holds in marks.items() if holds)

    def describe(self) -> dict[str, Any]:
        """For JSON; fractions as text, exactly."""
        rns = self.fitted.rns
        found = self.one_word
        return {
            "modulus": hex(rns.p), "design": DESIGN, "settings": dict(self.fitted.settings), "n": rns.base.w,
            "u": list(rns.base.u), "negative": rns.negative, "sum_of_r_over_p": sum(rns.r) / rns.p,
            "chosen": {"q": rns.q, "d": rns.d, "T": rns.T, "offset": rns.offset, "beta": str(rns.beta)},
            "rule": {"q": rule_q(self.alpha), "delta": str(DELTA), "T": rule_T(rns.base)},
            "q": [
                {"q": r.q, "error": str(r.error), "d": r.offset, "product_bits": (r.limit - 1).bit_length() if r.limit
                 else 0, "serves": r.serves} for r in self.alpha
            ],
            "T": [
                {"T": r.T, "dropped_bits": r.dropped, "constant_bits": r.constants.constant_bits,
                 "kappa_bits": r.constants.kappa_bits, "beta": str(r.constants.beta), "mean_lost": float(r.lost),
                 "most_lost": float(r.most_lost), "mean_quotient_left": float(r.above)} for r in self.kappa
            ],
            "one_word": found if isinstance(found, str) else {
                "u": list(found.rns.base.u), "negative": found.rns.negative, "kappa_bits": found.rns.kappa_bits,
                "T": found.rns.T, "constant_bits": found.rns.constant_bits, "latency": found.schedule.latency,
            },
        }  # fmt: skip

    def lines(self, name: str) -> Iterator[str]:
        """The text for a terminal; ``name``: that of the modulus."""
        rns, base = self.fitted.rns, self.fitted.rns.base
        yield f"{name}: N = {base.n} moduli 2^{base.w} - u, u = {', '.join(map(str, base.u))}"
        yield f"    {'-M_i in place of M_i; ' if rns.negative else ''}the <M_i>_p add up to {sum(rns.r) / rns.p:.3g} p"
        yield ""
        yield "alpha from the q top bits of each gamma_i, offset d / 2^q; exact for E <= d / 2^q and products below"
        yield from _table(("q", "E", "least d", "bits of products", "serves"), [
            (str(a.q), f"{float(a.error):.6f}", str(a.offset), str((a.limit - 1).bit_length()) if a.limit else "none",
             "yes" if a.serves else "no", self.q_marks(a)) for a in self.alpha
        ])  # fmt: skip
        yield ""
        yield "kappa from c_i with T fraction bits; in print c_i is <M_i>_p without its W - T low bits; ~ marks means"
        yield from _table(("T", "W - T", "c_i bits", "kappa bits", "z <", "(24) != (23)", "z >= p"), [
            (str(k.T), str(k.dropped), str(k.constants.constant_bits), str(k.constants.kappa_bits),
             f"{float(k.constants.beta):.8f} p", _share(k.lost, k.most_lost <= 1),
             _share(k.above, k.constants.beta <= 2), self.T_marks(k)) for k in self.kappa
        ])  # fmt: skip
        yield ""
        yield "(24) != (23): the share of products for which the two differ, or the mean difference where it may exceed"
        yield "1; z >= p: the share of results that are not below p, or the mean of floor(z / p)."
        yield f"Rules: q, the least with E <= Delta = {DELTA}; T = n + 2 log2 N, so that the sum lacks at most 1/N."
        if printed := PRINTED_T.get(rns.p):
            drops = f"; the rule gives T for secp256k1, and T = {printed} drops as many bits"
            same = "" if printed == rule_T(base) else drops
            dropped = rns.p.bit_length() - printed
            yield f"Printed: q = {PRINTED_Q}, Delta = {DELTA}, T = {printed} = W - {dropped}{same}."
        yield ""
        yield from self._words()

    def _words(self) -> Iterator[str]:
        fitted, other = self.fitted, self.one_word
        yield f"kappa: {dict(fitted.facts())['kappa']}."
        if isinstance(other, str):
            yield f"base={ONE_WORD}: {other}"
        elif other is not fitted:
            k = other.rns
            sign = " with -M_i" if k.negative else ""
            yield (
                f"base={ONE_WORD}: u = {', '.join(map(str, k.base.u))}{sign}; kappa of {k.kappa_bits} bits, constants "
                f"of {k.constant_bits} bits, {other.schedule.latency} cycles instead of {fitted.schedule.latency}."
            )


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns with their names, aligned to the right; the last cell of a row is its mark."""
    widths = [max(map(len, column)) for column in zip(names, *(row[:-1] for row in rows), strict=True)]
    for row in (names, *rows):
        cells = "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False))
        yield f"    {cells}  {row[-1] if len(row) > len(names) else ''}".rstrip()


def _share(mean: Fraction, is_share: bool) -> str:
    return f"~{float(mean):.3%}" if is_share else f"~{float(mean):.4g}"


def search(p: int, settings: Mapping[str, Any]) -> SorParameters:
    """The parameters for modulus p. ``settings``: those of SETTINGS that are not to have their defaults. Raises
    UnsupportedError for others, and if no base serves."""
    if others := sorted(settings.keys() - set(SETTINGS)):
        raise UnsupportedError(f"the parameters do not depend on {', '.join(others)}; there are {', '.join(SETTINGS)}")
    fitted = design(DESIGN).fit(p, **settings)
    assert isinstance(fitted, Sor)
    rns = fitted.rns
    need = max(rns.z_max, int(fitted.settings["operand"]) * rns.p - 1) ** 2
    other: Sor | str = fitted
    if fitted.params.words > 1:
        try:
            found = design(DESIGN).fit(p, **{**settings, "base": ONE_WORD, "T": 0, "q": 0})
            assert isinstance(found, Sor)
            other = found
        except UnsupportedError as error:
            other = str(error)
    return SorParameters(fitted, alpha_rows(rns, need), kappa_rows(rns), other)


def plots(found: Mapping[str, SorParameters]) -> list[Plot]:
    """T against beta, bits of the constants, and the share of products for which (24) differs from (23); one series for
    each name."""

    def series(value: Any) -> list[Series]:
        return [Series(name, "predicted", [(r.T, value(r)) for r in f.kappa]) for name, f in found.items()]

    return [
        Plot("Bound of the results", "T", "beta", series(lambda r: float(r.constants.beta)), log="y"),
        Plot("Bits of the constants", "T", "bits", series(lambda r: r.constants.constant_bits)),
        Plot("Mean of (23) - (24)", "T", "mean difference", series(lambda r: float(r.lost)), log="y"),
    ]


def sections(table_2: Sequence[tuple[str, str]]) -> list[Section]:
    """Sections 2.2 and 3.1 of the paper. ``table_2``: curves and the names of their moduli."""
    found = {name: search(parse_modulus(name).value, {}) for name in ("secp256k1", "2^255-19")}
    return [_search(found), _one_word(table_2)]


def _search(found: Mapping[str, SorParameters]) -> Section:
    lines = []
    for name, f in found.items():
        p, T = f.fitted.p, PRINTED_T[f.fitted.p]
        row, rule = f.at(T), rule_T(f.fitted.rns.base)
        why = "" if rule == T else f"T = {T} drops as many bits as T = {rule} for secp256k1"
        lines += cells(
            name,
            ("q", PRINTED_Q, rule_q(f.alpha), None, f"the least with E <= Delta = {DELTA}"),
            ("least q that serves", None, next(r.q for r in f.alpha if r.serves)),
            ("T", T, rule, None, f"n + 2 log2 N: (24) lacks at most 1/N{f'; {why}' if why else ''}"),
            ("low bits of <M_i>_p dropped", p.bit_length() - T, row.dropped),
            ("least T with beta <= 2", None, next(r.T for r in f.kappa if r.constants.beta <= 2)),
            ("least T whose results can be operands", None, f.kappa[0].T),
            ("products for which (24) differs from (23), %", "none", round(100 * float(row.lost), 2), None,
             "T does not guarantee equality; random operands below p"),
            ("results that are not below p, %", "none", round(100 * float(row.above), 2), None,
             "the lost terms of (20), (22) and (24); random operands below p"),
        )  # fmt: skip
    text = "Predicted: `modmill parameters sor` searches q and T for any base."
    return Section("Sections 2.2 and 3.1: the search for q and T", lines, text, plots=plots(found))


def _one_word(table_2: Sequence[tuple[str, str]]) -> Section:
    lines = []
    for curve, name in table_2:
        p = parse_modulus(name).value
        usual, other = (design(DESIGN).fit(p, base=base) for base in ("auto", ONE_WORD))
        assert isinstance(usual, Sor) and isinstance(other, Sor)
        one, k = usual.params.words == 1, other.rns
        sign = " with -M_i" if k.negative else ""
        lines += cells(
            curve,
            ("bits of kappa", None, usual.rns.kappa_bits, None, "" if one else "two words of 66 bits: 2 cycles more"),
            ("sum of the <M_i>_p over p", None, float(f"{sum(usual.rns.r) / p:.3g}")),
        )
        if not one:
            lines += cells(
                curve,
                (f"bits of kappa, base={ONE_WORD}", None, k.kappa_bits, None,
                 f"u = {', '.join(map(str, k.base.u))}{sign}"),
                (f"sum of the <M_i>_p over p, base={ONE_WORD}", None, float(f"{sum(k.r) / p:.3g}")),
                (f"cycles of SOR_1M_P, base={ONE_WORD}", None, other.schedule.latency, None,
                 f"instead of {usual.schedule.latency}"),
            )  # fmt: skip
    text = "kappa fits one word if the <M_i>_p add up to less than p; the paper gives its size for two moduli only."
    return Section("Section 3.1: kappa in one word for the primes of Table 2", lines, text)
