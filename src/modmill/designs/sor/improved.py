# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Improved sum of residues (SOR): algorithm on integers, choice of the parameters, and the paper's architectures.

Source:  M. A. Mehrabi: Improved Sum of Residues Modular Multiplication Algorithm. Cryptography 3(2):14, 2019,
         Algorithm 2, Figures 1 to 5 and A1 to A3. `improved_schedule` maps each step to an operation.
Formula: Z = X Y,  gamma_i = Z M_i^-1 mod m_i,  z = sum gamma_i <M_i>_p + <-alpha M>_p - kappa p
Range:   X Y < (1 - d/2^q) M gives 0 <= z < beta p, beta exact (numbers.rns.sum_of_residues); z = X Y (mod p).

Deviations from the paper:
- z is not always below p: beta is 1.125... for secp256k1 (T = 72) and 1.25... for 2^255 - 19 (T = 71). Operands may
  be as large, so results can be operands again. The binary form ends with one conditional subtraction.
- The constants of kappa are floor(r_i 2^T / p) for any p, with an offset e_alpha if beta < 2 needs it. The paper
  divides by 2^W, which fails for P-256 and for every p that violates condition (22). A kappa wider than a channel is
  multiplied in two words (KP, KQ).
- Residues are lazy, in [0, 2^n), so alpha may reach N, and its table has rows 1 ... N (paper: N - 1).
- With base=one-word the moduli are chosen so that kappa fits one channel, and -M_i may take the place of M_i.
- The first modulus is 2^n - 1, as in Table 1; Table A1 lists t = 0, which would give 2^n - 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice
from math import gcd, prod
from typing import Any

from modmill.design import Cost, Design, Setting
from modmill.designs.sor.family import OPERAND_MAX, SOURCE, Constants, SumOfResiduesDesign
from modmill.designs.sor.improved_machine import Machine
from modmill.designs.sor.improved_schedule import Kind, Params, schedule
from modmill.interface import Multiplier
from modmill.numbers.folding import reduce
from modmill.numbers.rns.residues import Base, growing_bases, mersenne_like, pseudo_mersenne
from modmill.numbers.rns.sum_of_residues import SumOfResidues, alpha_offset, solve, solve_over
from modmill.rtl.product import BLOCKS, DSP18
from modmill.schedule import Schedule

SECP256K1 = 2**256 - 2**32 - 977
ED25519 = 2**255 - 19
PRINTED_T = {p: p.bit_length() - 184 for p in (SECP256K1, ED25519)}
"""T as printed after equation (24), 72 and 71: both drop 184 low bits of <M_i>_p. For the rule behind it see
`numbers.rns.sor_parameters`. For other moduli the solver takes the least T."""
PRINTED_Q, PRINTED_D = 8, 16
"""q and 2^q Delta of Section 2.2, for the base of Table 1."""
SETS_MAX = 1024
"""Most multiplier sets; no modulus needs as many channels."""
N_MAX = 256
"""Most bits of a channel."""
ONE_WORD = "one-word"
"""The value of ``base`` for moduli with which kappa fits one channel."""
MORE, CHOICES, CHOOSABLE = 12, 50_000, 9
"""The search for such a base: moduli beyond those of one base; most choices; most moduli in a choice, because of
choices of N about 2 in N! serve."""
KINDS = {"2^n-2^t-1": mersenne_like, "2^n-u": pseudo_mersenne}
"""Generators of the moduli of n bits, by the setting ``base``."""


class Sor(SumOfResiduesDesign):
    """The improved sum of residues for one modulus."""

    params: Params
    period = 1  # operands are accepted in any cycle in which the machine is idle

    @cached_property
    def schedule(self) -> Schedule:
        return schedule(self.params)

    @cached_property
    def cost(self) -> Cost:
        """DSP blocks: k sets of N channel multipliers, k multipliers of kappa. Constants: N((2N + 2)n + n') bits, as in
        Section 4: an inverse, N rows, N rows of alpha and -p for each channel, and n' bits for each c_i."""
        p = self.params
        n, w = p.base.n, p.base.w
        return Cost(
            dsp=p.k * (n * p.block.tiles(w, w) + p.kappa_block.tiles(w, p.rns.constant_bits)),
            memory_bits=n * ((n + p.rns.alpha_max + 1 + p.words) * w + p.rns.constant_bits),
            multiplications=n * (2 + n + p.words),
        )

    def trace(self, a: int, b: int, *, scaled: bool = False) -> Iterator[tuple[str, Any]]:
        p, base, rns = self.params, self.params.base, self.params.rns
        k = Constants.of(p, scaled)
        form = self.representation
        x, y = form.unpack(a), form.unpack(b)
        channels, square, mask = range(base.n), 1 << 2 * base.w, (1 << base.w) - 1
        z, gamma, total, alpha, kappa, kappa_sum = [0] * base.n, [0] * base.n, [0] * base.n, 0, 0, 0

        def mod(j: int, t: int, bound: int) -> int:
            return reduce(t, bound, base.w, base.u[j])

        def times(word: int, constants: tuple[int, ...]) -> list[int]:
            return [mod(j, word * constants[j], square) for j in channels]

        def term(i: int) -> list[int]:
            return times(gamma[i], k.rows[i])

        def kappa_term(i: int) -> int:
            return (gamma[i] >> rns.s << rns.s) * rns.c[i]

        def kappa_row(word: int) -> list[int]:
            return times(kappa >> (base.w * word) & mask, k.minus_p[word])

        for op in (step.does for step in self.schedule.steps):
            value: Any
            match op.kind:
                case Kind.PRODUCT:
                    value = z = [mod(j, x[j] * y[j], square) for j in channels]
                case Kind.INVERSE:
                    value = gamma = [mod(j, z[j] * k.inverses[j], square) for j in channels]
                case Kind.ALPHA:
                    value = alpha = rns.alpha(gamma)
                case Kind.ALPHA_ROW:
                    value = kappa_sum = rns.e[alpha]
                case Kind.TERM:
                    value = term(op.channels[0])
                case Kind.KAPPA_TERM:
                    value = kappa_term(op.channels[0])
                case Kind.ADD_KAPPA:
                    value = kappa_sum = kappa_sum + sum(map(kappa_term, op.channels))
                case Kind.KAPPA_ROW:
                    value = kappa_row(op.words[0])
                case Kind.ADD:
                    terms = [total, *map(term, op.channels), *map(kappa_row, op.words)]
                    terms += [list(k.al[alpha])] if op.alpha else []
                    value = total = [mod(j, sum(t[j] for t in terms), len(terms) << base.w) for j in channels]
            yield op.name, value
            if op.kind is Kind.ADD_KAPPA and op.channels[-1] == base.n - 1:
                kappa = kappa_sum >> rns.T
                yield "kappa", kappa
        yield "z", form.pack(total)

    def component(self, *, scaled: bool = False) -> Multiplier:
        return Machine(self.params, self.schedule, scaled)

    def details(self) -> list[tuple[str, str]]:
        p, rns = self.params, self.params.rns
        least = alpha_offset(p.base, rns.q, rns.lazy)
        offset = "with" if rns.offset else "without"
        beta = f"beta = {rns.beta} ~ {float(rns.beta):.9f}"
        if len(str(rns.beta)) >= 60:
            beta = f"beta ~ {float(rns.beta):.9f} (exact fraction in contract.json)"
        return [
            ("multiplier sets k", f"{p.k}, {'pipelined' if p.pipelined else 'not pipelined'}"),
            ("alpha", f"q = {rns.q}, offset d = {rns.d} / 2^{rns.q}, least that is exact: {least}; "
                      f"alpha <= {rns.alpha_max}"),
            ("M_i", f"{'-M_i in place of M_i; ' if rns.negative else ''}the residues modulo p add up to "
                    f"{sum(rns.r) / rns.p:.3g} p"),
            ("kappa", f"T = {rns.T}, constants of {rns.constant_bits} bits, {offset} offset; {self._kappa_words()}"),
            ("result z < beta p", beta),
        ]  # fmt: skip

    def _kappa_words(self) -> str:
        """The size of kappa, and what it costs, as text."""
        p, n = self.params, self.params.base.w
        if p.words == 1:
            return f"{self.rns.kappa_bits} bits, one word of {n} bits"
        cycles = "2 cycles" if p.k == 1 else "one multiplication, no cycle"
        other = "" if self.settings["base"] == ONE_WORD else f"; base={ONE_WORD} looks for moduli with one word"
        return f"{self.rns.kappa_bits} bits, two words of {n} bits, which costs {cycles}{other}"


def choose_bases(p: int, n: int, kind: str, operand: Fraction) -> Iterator[Base]:
    """Yield bases of n-bit moduli whose range exceeds (``operand`` p)^2, the fewest moduli first. ``kind``: a key of
    KINDS, or auto: the first for which there are enough moduli. Raises ValueError if there are not."""
    enough = int((operand * p) ** 2)
    for name in KINDS if kind == "auto" else (kind,):
        try:
            yield from growing_bases(n, KINDS[name](n), enough)
            return
        except ValueError as error:
            reason = error
    raise reason


def constants(p: int, settings: Mapping[str, Any], *, as_printed: bool = True) -> SumOfResidues:
    """The channels and the constants for the settings of a design; ``T`` or ``q`` = 0: the least that suffices.
    ``as_printed``: take the paper's T, q and Delta instead for the moduli and the base for which it prints them. Raises
    ValueError if no base suffices."""
    n, base, size, T, q = settings["n"], settings["base"], Fraction(settings["operand"]), settings["T"], settings["q"]
    printed = as_printed and n == 66 and base in ("auto", "2^n-2^t-1") and p in PRINTED_T
    options: dict[str, Any] = {"T": T or None, "q": q or None, "operand": size}
    if base == ONE_WORD:
        return one_word(p, n, size, options)
    if printed and T in (0, PRINTED_T[p]) and q in (0, PRINTED_Q):
        options |= {"T": PRINTED_T[p], "q": PRINTED_Q, "d": PRINTED_D, "offset": False}
    return solve_over(choose_bases(p, n, base, size), p, **options)


def one_word(p: int, n: int, operand: Fraction, options: Mapping[str, Any]) -> SumOfResidues:
    """The constants over a base of n-bit moduli with which kappa has at most n bits.

    kappa is at most about 2^n sum r_i / p, so the r_i must add up to less than p. The first bases of both kinds are
    tried, then choices of as many moduli among the first 2^n - u, each with M_i and with -M_i. For p = 2^W - epsilon
    one of the first bases often serves; for other p about two choices of N! do. Raises ValueError, with the smallest
    sum, if none of them does.
    """
    least, reason = 0, "no base is long enough"
    for total, moduli, negative in _sums(p, n, int((operand * p) ** 2)):
        if not least or total < least:
            least, reason = total, f"the least sum that was found is {total / p:.3g} p"
        if total < p:
            try:
                found = solve(p, Base(n, moduli), negative=negative, **options)
            except ValueError as error:
                reason = str(error)
            else:
                if found.kappa_bits <= n:
                    return found
    raise ValueError(
        f"no base of {n}-bit moduli is known with which kappa has at most {n} bits: the <M_i>_p must add up to less "
        f"than p; {reason}. base=auto takes two words"
    )


def _sums(p: int, n: int, enough: int) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """The sum of the r_i of the bases with a range above ``enough`` that `one_word` tries: (sum, moduli, whether with
    -M_i). The sum with -M_i is N p minus the sum with M_i, if no modulus shares a factor with p."""
    count = 0
    for kind in KINDS.values():
        with suppress(ValueError):
            base = next(growing_bases(n, kind(n), enough))
            count = max(count, base.n)
            for sign in (1, -1):
                yield sum(sign * c % p for c in base.cofactors), base.moduli, sign < 0
    if not 0 < count <= CHOOSABLE:
        return
    pool = [m for m in islice(pseudo_mersenne(n), count + MORE) if gcd(m, p) == 1]
    inverse = {m: pow(m, -1, p) for m in pool}
    for moduli in islice(combinations(pool, count), CHOICES):
        range_ = prod(moduli)
        if range_ > enough:
            rest = range_ % p
            total = sum([rest * inverse[m] % p for m in moduli])
            yield total, moduli, False
            yield count * p - total, moduli, True


def fit(p: int, pipelined: bool, settings: Mapping[str, Any]) -> Sor:
    """The design for p; ``sets`` = 0: one for each channel. Raises ValueError as `constants`, and for a wide kappa."""
    rns, n = constants(p, settings), settings["n"]
    sets = settings["sets"] or rns.base.n
    if rns.kappa_bits > 2 * n:
        raise ValueError(f"kappa has {rns.kappa_bits} bits; at most {2 * n}, two words of a channel, are supported")
    params = Params(rns, sets, pipelined, DSP18, BLOCKS[settings["dsp"]])
    return Sor(params, {**settings, "sets": sets, "T": rns.T, "q": rns.q})


def _named(name: str, paper: str, title: str, sets: int, pipelined: bool) -> Design:
    settings = (
        Setting("n", int, 66, "bits of a channel", least=12, most=N_MAX),
        Setting(
            "base", str, "auto", "kind of moduli; one-word: those with which kappa fits one channel, by a search",
            ("auto", *KINDS, ONE_WORD),
        ),
        Setting(
            "sets", int, sets, "sets of channel multipliers, 0: as many sets as channels", least=0, most=SETS_MAX,
            depends="at most one set for each of the N channels",
            limits=lambda p, settings: (0, constants(p, settings).base.n),
            smaller="lower",
        ),
        Setting(
            "operand", int, 2, "operands up to this multiple of the modulus are accepted", least=1, most=OPERAND_MAX,
        ),
        Setting(
            "T", int, 0, "fraction bits of kappa's constants, 0 for the printed ones or else the least",
            least=0, most=2 * N_MAX,
            depends="results must stay below 2 p; at most 2 n, with which the constants are twice as wide as channels",
            limits=lambda p, settings: (constants(p, {**settings, "T": 0}, as_printed=False).T, 2 * settings["n"]),
        ),
        Setting(
            "q", int, 0, "bits of gamma that enter alpha, 0 for the printed ones or else the least",
            least=0, most=N_MAX, depends="alpha must be exact; at most n, all bits of gamma",
            limits=lambda p, settings: (
                constants(p, {**settings, "T": 0, "q": 0}, as_printed=False).q, settings["n"],
            ),
        ),
        Setting("dsp", str, "18x18", "DSP block that kappa's multiplier is tiled to", ("18x18", "25x18")),
    )  # fmt: skip
    return Design(
        name=name, page="sor", title=title, source=SOURCE, settings=settings, paper=paper,
        needs="any odd modulus of at least 2 bits; channels wide enough that the solver finds constants",
        solve=lambda p, **given: fit(p, pipelined, given),
    )  # fmt: skip


DESIGNS = (
    _named("sor-1m-n", "SOR_1M_N", "Improved SOR, one multiplier set, not pipelined", 1, False),
    _named("sor-1m-p", "SOR_1M_P", "Improved SOR, one multiplier set, pipelined", 1, True),
    _named("sor-2m", "SOR_2M", "Improved SOR, two multiplier sets", 2, True),
    _named("sor-nm", "N parallel multipliers", "Improved SOR, one multiplier set a channel: the limit", 0, True),
)
