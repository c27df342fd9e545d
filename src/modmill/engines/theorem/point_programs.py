# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What the programs of an engine for curves compute, for all inputs and scalars: by induction on the passes.

Each part of a program is executed on normal forms and compared with what it must do, written here with the formulas
whose law `group_law` proves. A table entry is compared with a sum or doubling of entries before it. A pass takes the
point V to scale V + the entries that its digits select; so the result is the sum of the values of all digits times
their weights, and `scalars` says that this is the scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from modmill.contract import Contract, UnsupportedError
from modmill.engines.ecc import formulas
from modmill.engines.ecc.edwards import form as edwards_form
from modmill.engines.ecc.endomorphism import Endomorphism
from modmill.engines.ecc.formulas import EdwardsForm, Extended, WeierstrassForm
from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.points import BLIND, XYZ, PointProgram
from modmill.engines.ecc.recoding import Both, Comb, Gray, Odd, Signed
from modmill.engines.ecc.weierstrass import SplitScalar, TwoScalars
from modmill.engines.ecc.weierstrass import form as weierstrass_form
from modmill.engines.microcode.assembly import Assembled
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.expressions import Name
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import DatapathSpec, Program
from modmill.engines.theorem.group_law import edwards_faults, ladder_faults, ladder_steps, weierstrass_faults
from modmill.engines.theorem.instructions import execute, inputs
from modmill.engines.theorem.normal_forms import Form, Forms
from modmill.engines.theorem.parts import Part
from modmill.engines.theorem.scalars import Scalar, digits_worth
from modmill.engines.theorem.scalars import ladder_faults as ladder_digit_faults
from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Point, Weierstrass
from modmill.numbers.primes import is_prime, square_root

_ANY: Any = formulas  # the formulas are written for elements of a block, and run on normal forms
_OFFSETS = 1000
"""Offsets of tables of constants that are tried."""


class _Constants:
    """Stands for a block and a domain in `form` of a curve: constants of any ring."""

    def __init__(self, constant: Callable[[int], Any], added: bool) -> None:
        self._constant, self.added = constant, added

    def constant(self, _block: object, value: int) -> Any:
        """A number of the field."""
        return self._constant(value)


def bounds_part(name: str, program: Program, contract: Contract, unit: DatapathSpec) -> Part:
    """Slots hold what was written last, and no number overflows, for all inputs and digits."""
    theorem = "every slot is read after the write that it must see, and no number overflows, for all inputs and digits"
    try:
        check_hazards(program, unit)
        program_bounds(program, contract)
    except UnsupportedError as error:
        return Part(f"bounds of {name}", theorem, (str(error),))
    return Part(f"bounds of {name}", theorem)


def order_part(name: str, instructions: Assembled, contract: Contract) -> Part:
    """An operation modulo the order of a base point."""
    n = contract.p
    forms = Forms(n)
    k, z, r, d, s = (forms.atom(x) for x in "kzrds")
    formulas = {
        "signature": ("k^-1 (z + r d) mod n", lambda: (k ** (n - 2) * (z + r * d),)),
        "quotients": ("z s^-1, r s^-1 mod n", lambda: (z * s ** (n - 2), r * s ** (n - 2))),
        "multiply-add": ("r + k s mod n", lambda: (r + k * s,)),
    }
    if name not in formulas:
        return Part(
            f"result of {name}", "the operation is what its name says", (f"no formula of {name} is known here",)
        )
    text, wanted = formulas[name]
    remains = [] if is_prime(n) else ["the order is not prime"]
    program = instructions.program
    held = inputs(program, forms, contract.factor)
    try:
        if program.loop:
            raise ValueError("the program has a loop")
        execute((*program.before, *program.after), held, forms)
        results = [held[False, slot] for slot, _ in program.results]
        if results != [value * contract.factor for value in wanted()]:
            remains.append("the instructions compute another polynomial")
    except (ValueError, KeyError) as error:
        remains.append(f"{error}")
    return Part(f"result of {name}", f"the results are {text}, for all inputs", tuple(remains))


@dataclass
class _Column:
    """A table from which each pass adds an entry: multiples of a point (``of``: P, Q = lambda P, or G), by digit."""

    of: str
    multiples: list[int]


class PointProof:
    """The parts of a proof of one program. ``curve``: of the operation, ``made`` and ``instructions``: the program.
    Call `parts`."""

    def __init__(self, curve: Curve, made: PointProgram, instructions: Assembled, contract: Contract) -> None:
        self.curve, self.made, self.assembled, self.contract = curve, made, instructions, contract
        self.program, self.forms = instructions.program, Forms(contract.p)
        self.p, self.f = contract.p, contract.factor
        self.added = instructions.unit.added
        self.window = getattr(getattr(made.recoding, "signed", made.recoding), "window", 0)

    # ---- execution

    @cached_property
    def _before(self) -> tuple[dict[Any, Form], int]:
        held = inputs(self.program, self.forms, self.f)
        return held, execute(self.program.before, held, self.forms)

    def _from_names(self, instructions: Sequence[Any]) -> tuple[dict[Any, Form], int]:
        """Execute a part from any values of all variables and table entries."""
        held = inputs(replace(self.program, inputs=()), self.forms, self.f)
        held |= {(False, slot): self.forms.atom("held", name) for name, slot in self.assembled.named.items()}
        return held, execute(instructions, held, self.forms)

    @cached_property
    def _loop(self) -> tuple[dict[Any, Form], int]:
        return self._from_names(self.program.loop)

    def _at(self, held: dict[Any, Form], name: Name) -> Form:
        found = held.get((False, self.assembled.named.get(name, -1)))
        if found is None:
            raise ValueError(f"{name} has no value")
        return found

    def _held(self, name: Name) -> Form:
        return self.forms.atom("held", name)

    def _point(self, held: dict[Any, Form]) -> tuple[Form, ...]:
        return tuple(self._at(held, c) for c in XYZ)

    # ---- parts

    def parts(self) -> list[Part]:
        """All parts, in the order of the argument."""
        name = self.made.operation
        checks: list[tuple[str, str, Callable[[], list[str]]]] = [
            ("formulas", f"the formulas are the group law of {self.curve.title}, for all its points", self._formulas),
        ]
        if isinstance(self.curve, Montgomery):
            checks += [
                ("pass", "a pass takes (K P, (K + 1) P) to (K' P, (K' + 1) P), K' = 2 K + bit", self._ladder_pass),
                ("start", "the first pass finds (O, P)", self._ladder_start),
                ("scalar", "the digits say whether neighbouring bits differ, for all scalars", self._ladder_digits),
                ("result", "u = X / Z, and 0 if Z = 0", self._ladder_result),
            ]
        else:
            checks += [
                ("tables", "each entry is the multiple of P or G that its digit stands for", self._tables),
                ("pass", "a pass takes V to 2^w V plus the entries of its digits, for every V", self._pass),
                ("scalar", "the values of all digits make the scalars, for all scalars of the length", self._scalar),
                ("result", "x = X / Z, y = Y / Z, and (0, 0) if Z = 0", self._affine),
            ]
        found = []
        for part, theorem, check in checks:
            try:
                remains = check()
            except (ValueError, UnsupportedError) as error:
                remains = [str(error)]
            found.append(Part(f"{part} of {name}", theorem, tuple(remains)))
        return found

    # ---- formulas

    @cached_property
    def _image(self) -> Any:
        return isomorphism(self.curve) if isinstance(self.curve, Weierstrass) else None

    def _form(self, constant: Callable[[int], Any], added: bool) -> Any:
        where: Any = _Constants(constant, added)
        if isinstance(self.curve, Weierstrass):
            return weierstrass_form(self._image.image, where, where)
        assert isinstance(self.curve, Edwards)
        return edwards_form(self.curve, where, where)

    @cached_property
    def _form_here(self) -> Any:
        return self._form(self.forms.constant, self.added)

    def _formulas(self) -> list[str]:
        curve = self.curve
        if isinstance(curve, Montgomery):
            return [line for step, factor in ladder_steps(curve) for line in ladder_faults(curve, step, factor)]
        if isinstance(curve, Edwards):
            root = square_root(curve.a, curve.p)
            return edwards_faults(curve, lambda one: self._form(lambda c: c * one, self.added), root)
        assert isinstance(curve, Weierstrass)
        image, u = self._image.image, self._image.u
        found = weierstrass_faults(image, lambda one: self._form(lambda c: c * one, self.added))
        if (image.a - u**4 * curve.a) % curve.p or (image.b - u**6 * curve.b) % curve.p or u % curve.p == 0:
            found.append("the program's curve is not isomorphic to the curve")
        if curve.n % 2 == 0 or (curve.h % 2 == 0 and not curve.arithmetic):
            found.append("the group has points of order two")
        return found

    # ---- tables

    @property
    def _first_z(self) -> Form:
        """Z of the points before any formula: the blind in the domain, or 1."""
        blind = any(name == BLIND for _, name in self.program.inputs)
        return self.forms.atom(BLIND) * (self.f * self.f) if blind else self.forms.constant(1)

    def _input_point(self) -> Any:
        x, y, Z = self.forms.atom("x"), self.forms.atom("y"), self._first_z
        if isinstance(self.curve, Weierstrass):
            u = self._image.u
            return _ANY.Homogeneous(x * (u * u) * Z, y * u**3 * Z, Z)
        return _ANY.Extended(x * Z, y * Z, Z, x * y * Z)

    @cached_property
    def _digit_values(self) -> list[int]:
        """Multiples of P in the tables of a thread, by digit; empty if there are none."""
        groups = dict(self.assembled.field_program.groups.tables)
        if not groups:
            return []
        half = 1 << self.window - 1
        if isinstance(self.made.recoding, Odd):
            return [2 * d + 1 - 2 * half for d in range(2 * half)]
        return [d - half for d in range(2 * half)]

    @property
    def _own_names(self) -> tuple[str, ...]:
        """The names of the coordinates of a table of multiples of P."""
        return ("TX", "TY", "TZ") if isinstance(self.curve, Weierstrass) else ("TM", "TP", "TT", "TZ")

    def _own_tables(self) -> list[str]:
        found = []
        names = self._own_names
        if self._digit_values:
            multiples = self._of_input()
            for d, v in enumerate(self._digit_values):
                got = [self._at(self._before[0], (name, d)) for name in names]
                if not any(got == wanted for wanted in multiples(v)):
                    found.append(f"entry {d} of the table is not {v} P")
        return found

    def _of_input(self) -> Callable[[int], Iterator[list[Form]]]:
        """A function that yields entries for v P; each multiple comes from those before it by one sum or doubling."""
        E, P = self._form_here, self._input_point()
        known: dict[int, list[Any]] = {1: [P]}
        first = E.prepared(P) if isinstance(P, Extended) else P

        def of(v: int) -> list[Any]:
            if v not in known:
                known[v] = [E.double(Q) for Q in (of(v // 2) if v % 2 == 0 else [])]
                if v % 2 or isinstance(P, Extended):
                    known[v] += [E.add(Q, first) for Q in of(v - 1)[:1]]
                if v % 2 and v > 2 and not isinstance(P, Extended):
                    known[v] += [E.add(of(v - 2)[0], of(2)[0])]
                known[v] = self._those_in_table(v, known[v])
            return known[v]

        def entries(v: int) -> Iterator[list[Form]]:
            for Q in of(abs(v)) if v else [self._neutral()]:
                yield self._entry(Q, v < 0)

        return entries

    def _neutral(self) -> Any:
        zero, one = self.forms.constant(0), self.forms.constant(1)
        if isinstance(self.curve, Weierstrass):
            return _ANY.Homogeneous(zero, one, zero)
        return _ANY.Extended(zero, one, one, zero)

    def _entry(self, Q: Any, negative: bool) -> list[Form]:
        """The coordinates of Q or -Q in a table."""
        if not isinstance(Q, Extended):
            return [Q.X, -Q.Y if negative else Q.Y, Q.Z]
        E: EdwardsForm = self._form_here
        R: Any = E.prepared(Q)
        minus, plus, dT = R.minus, R.plus, R.dT
        if negative:
            minus, plus, dT = (plus, minus, -dT) if E.minus_one else (-minus, plus, -dT)
        return [minus, plus, dT, R.Z]

    def _those_in_table(self, v: int, candidates: list[Any]) -> list[Any]:
        """The candidates for v P that the table has, or else all."""
        names = self._own_names
        for d, value in enumerate(self._digit_values):
            if abs(value) == v:
                got = [self._at(self._before[0], (name, d)) for name in names]
                here = [Q for Q in candidates if self._entry(Q, value < 0) == got]
                if here:
                    return here
        return candidates

    def _shared_points(self, names: Sequence[str]) -> list[Point]:
        """The points of a shared table, on the program's curve."""
        values = dict(self.program.shared)
        tables = []
        for name in names:
            at = self.assembled.tables[name]
            tables.append([values[at.number + d] * self.f % self.p for d in range(at.size)])
        if isinstance(self.curve, Weierstrass):
            return list(zip(*tables, strict=True))
        E: EdwardsForm = self._form_here
        assert isinstance(self.curve, Edwards)
        found: list[Point] = []
        for m, q, t in zip(*tables, strict=True):
            half = pow(2, -1, self.p)
            x, y = ((q - m) * half % self.p, (q + m) * half % self.p) if E.minus_one else (m, q)
            if t != (2 if E.minus_one else 1) * self.curve.d * x * y % self.p:
                raise ValueError(f"a table of constants has a wrong {names[2]}")
            found.append((x, y))
        return found

    @cached_property
    def _shared_names(self) -> list[tuple[str, ...]]:
        """The names of the coordinates of each shared table, in order."""
        coordinates = "XY" if isinstance(self.curve, Weierstrass) else "MPT"
        count = len(self.assembled.field_program.shared) // len(coordinates)
        return [tuple(f"G{k}{c}" for c in coordinates) for k in range(count)]

    @cached_property
    def _factors(self) -> list[list[int]]:
        """The multiples of G that the recoding wants from each shared table."""
        recoding: Any = self.made.recoding
        if isinstance(recoding, Both):
            return [list(range(1 << recoding.plain.window))]
        return list(recoding.factors() if callable(getattr(recoding, "factors", None)) else recoding.factors)

    @cached_property
    def _offset(self) -> int:
        """The multiple of G that each entry of a shared table has more than its digit stands for."""
        if not isinstance(self.curve, Weierstrass):
            return 0
        curve: Any = self._image.image
        first = self._shared_points(self._shared_names[0])[0]
        Q = curve.multiply(self._factors[0][0], curve.base)
        for u in range(_OFFSETS):
            if first == Q:
                return u
            Q = curve.add(Q, curve.base)
        raise ValueError("the first entry of a table of constants is no small multiple of G")

    def _shared_tables(self) -> list[str]:
        found = []
        curve: Any = self._image.image if self._image else self.curve
        for names, factors in zip(self._shared_names, self._factors, strict=True):
            points = self._shared_points(names)
            if len(points) != len(factors):
                found.append(f"table {names[0]} has {len(points)} entries, not {len(factors)}")
                continue
            first = curve.multiply((factors[0] + self._offset) % curve.n, curve.base)
            steps = [curve.multiply((factors[1 << t] - factors[0]) % curve.n, curve.base)
                     for t in range((len(factors) - 1).bit_length())]  # fmt: skip
            wanted = [first]
            for d in range(1, len(factors)):  # entry d is that without its lowest bit, plus the point of this bit
                low = (d & -d).bit_length() - 1
                if factors[d] != factors[d & (d - 1)] + factors[1 << low] - factors[0]:
                    found.append(f"table {names[0]}: the multiple of entry {d} is not that of its bits")
                wanted.append(curve.add(wanted[d & (d - 1)], steps[low]))
            found += [
                f"entry {d} of table {names[0]} is not {factors[d] + self._offset} G"
                for d, (P, Q) in enumerate(zip(points, wanted, strict=True)) if P != Q
            ]  # fmt: skip
        return found

    def _tables(self) -> list[str]:
        found = self._own_tables()
        if self._shared_names:
            found += self._shared_tables()
        if split := self._split:
            values = [self._at(self._before[0], ("TX", d)) * split.beta for d in range(len(self._digit_values))]
            if values != [self._at(self._before[0], ("TB", d)) for d in range(len(values))]:
                found.append("a table of lambda P has other x than beta x")
            curve = self._image.image
            x, y = curve.base
            if pow(split.beta, 3, self.p) != 1 or curve.a % self.p:
                found.append("(beta x, y) is no endomorphism")
            elif curve.multiply(split.eigenvalue, curve.base) != (split.beta * x % self.p, y):
                found.append("(beta x, y) is not lambda times the base point")
            if curve.h != 1 and not curve.arithmetic:
                found.append("an input point may be other than a multiple of the base point")
        return found

    @property
    def _split(self) -> Endomorphism | None:
        return self.made.recoding.split if isinstance(self.made.recoding, SplitScalar | TwoScalars) else None

    # ---- passes

    def _selected(self, digit: int, names: Sequence[str]) -> list[Form]:
        """The coordinates of the entry that a digit selects."""
        found = []
        for name in names:
            if name in self.assembled.field_program.shared:
                at, values = self.assembled.tables[name], dict(self.program.shared)
                entries = [self.forms.constant(values[at.number + d] * self.f) for d in range(at.size)]
            else:
                entries = [self._held((name, d)) for d in range(1 << self.window)]
            found.append(self.forms.selected(digit, entries))
        return found

    @property
    def _columns(self) -> list[tuple[str, ...]]:
        """The tables of a pass, in order."""
        found = [self._own_names] if self._digit_values else []
        if self._split:
            found.append(("TB", "TY", "TZ"))
        return [*found, *self._shared_names]

    def _second(self, entry: list[Form]) -> Any:
        if isinstance(self.curve, Edwards):
            return _ANY.Prepared(*entry)
        return _ANY.Homogeneous(*entry) if len(entry) == 3 else _ANY.AffinePoint(*entry)

    @property
    def _doublings(self) -> int:
        """Doublings of a pass."""
        return self.window or 1

    def _doubled(self) -> Iterator[tuple[str, Any]]:
        """Points after the doublings of a pass, by kind: complete or Jacobian."""
        E, P = self._form_here, _ANY.Homogeneous(*map(self._held, XYZ))
        Q = P
        for _ in range(self._doublings):
            Q = E.double(Q)
        yield "complete", Q
        if isinstance(E, WeierstrassForm):
            J = E.first_double(P)
            for _ in range(self._doublings - 1):
                J = E.double_jacobian(J)
            yield "Jacobian", E.homogeneous(J)

    def _pass(self) -> list[str]:
        held, digits = self._loop
        if digits != len(self._columns):
            return [f"a pass uses {digits} digits, and has {len(self._columns)} tables"]
        kept = [name for name in self.assembled.named if isinstance(name, tuple)]
        if changed := [name for name in kept if self._at(held, name) != self._held(name)]:
            return [f"a pass changes {changed[0]}"]
        for kind, R in self._doubled():
            for digit, names in enumerate(self._columns):
                R = self._form_here.add(R, self._second(self._selected(digit, names)))
            if self._point(held) == (R.X, R.Y, R.Z):
                return self._no_neutral() if kind == "Jacobian" else []
        return ["a pass computes other coordinates"]

    def _no_neutral(self) -> list[str]:
        """Jacobian doublings leave out O: why no pass begins with it."""
        recoding, curve = self.made.recoding, self.curve
        if not isinstance(recoding, Odd) or curve.h != 1 or recoding.n != curve.n or curve.n % 2 == 0:
            return ["Jacobian doublings may begin with O"]
        # before the last r > 0 digits the value V is odd, and |V| 2^(w r) < max(2^bits, n) + 2^(w r)
        if (max(1 << recoding.bits, curve.n) >> recoding.window) + 1 >= curve.n:
            return ["Jacobian doublings may begin with O: a prefix of the digits may be a multiple of n"]
        return []

    # ---- scalars

    def _scalar(self) -> list[str]:
        found = [line for scalars, wanted in self._cases() for line in self._case(scalars, wanted)]
        if self._split:
            found += _split_faults(self._split)
        return found

    def _cases(self) -> Iterator[tuple[tuple[Any, ...], dict[str, Scalar]]]:
        """Unknown scalars, and the multiples of P, lambda P and G that must come out."""
        recoding: Any = self.made.recoding
        n = self.curve.n

        def any_below(end: int, name: str = "k", odd: bool | None = None) -> Scalar:
            return Scalar.unknown(name, 0, end - 1, odd)

        if isinstance(recoding, Odd):
            if self.curve.h != 1 or recoding.n != n:
                raise ValueError("an even scalar is replaced by k - n, and n P may be other than O")
            for odd in (False, True):
                k = any_below(1 << recoding.bits, odd=odd)
                yield (k,), {"P": k if odd else k - n}
        elif isinstance(recoding, Signed):
            k = any_below(1 << recoding.bits)
            yield (k,), {"P": k}
        elif isinstance(recoding, Comb):
            k = any_below(1 << recoding.bits)
            yield (k,), {"G": k}
        elif isinstance(recoding, SplitScalar):
            yield (0,), {}
        else:
            u1, u2 = any_below(n, "u1"), any_below(n, "u2")
            yield (u1, u2), {"G": u1, "P": u2}

    def _case(self, scalars: tuple[Any, ...], wanted: dict[str, Scalar]) -> list[str]:
        recoding: Any = self.made.recoding
        if split := self._split:
            top = (1 << split.bits) - 1
            k1, k2 = (Scalar.unknown(name, -top, top) for name in ("k1", "k2"))
            recoding = replace(recoding, split=_Parts(k1, k2, split.bits))
            scalars, wanted = (*scalars[:-1], 0), {**wanted, "P": k1, "lambda P": k2}
        digits = recoding.digits(*scalars)
        columns = self._columns
        passes = self.program.passes
        first = 1 if self._before[1] else 0
        if len(digits) != len(columns) * (passes + first) or len(digits) != self.program.digits:
            return [f"{len(digits)} digits, {passes} passes of {len(columns)} tables"]
        own = [["P", "lambda P"][k] for k in range(len(columns) - len(self._shared_names))]
        tables = [self._digit_values] * len(own)
        offset = self._offset if self._shared_names else 0
        tables += [[v + offset for v in factors] for factors in self._factors] if self._shared_names else []
        worth = digits_worth(digits, tables, 1 << self._doublings)
        total: dict[str, Scalar] = {}
        for of, value in zip([*own, *["G"] * len(self._shared_names)], worth, strict=True):
            total[of] = total[of] + value if of in total else value
        found = self._start(total, first, passes)
        for of, value in wanted.items():
            got = total[of].whole()
            if not got.same(value):
                found.append(f"the digits give another multiple of {of} than the scalar")
        return found

    def _start(self, total: dict[str, Scalar], first: int, passes: int) -> list[str]:
        """Add what the point before the first pass is worth to ``total``."""
        held = self._before[0]
        X, Y, Z = self._point(held)
        if first:
            if self._before[1] != len(self._columns):
                return [f"{self._before[1]} digits select the first point, of {len(self._columns)} tables"]
            entry, *others = (
                [self.forms.selected(k, [self._at(held, (name, d)) for d in range(1 << self.window)]) for name in names]
                for k, names in enumerate(self._columns)
            )
            for other in others:
                R = self._form_here.add(self._second(entry), self._second(other))
                entry = [R.X, R.Y, R.Z]
            if isinstance(self.curve, Edwards):
                minus, plus, _, TZ = entry
                entry = [plus - minus, plus + minus, TZ] if self._form_here.minus_one else [minus, plus, TZ]
            return [] if entry == [X, Y, Z] else ["the first point is not the sum of the entries of the first digits"]
        if self._first_z != Z:
            return ["the first point has another Z than the blind"]
        if isinstance(self.curve, Edwards):
            return [] if (self.forms.constant(0), Z) == (X, Y) else ["the first point is not neutral"]
        scale = pow(2, self._doublings * passes, self.curve.n)
        curve: Any = self._image.image
        start = -total["G"].whole().offset  # the offsets of all entries and digits
        multiple = start * pow(scale, -1, self.curve.n) % self.curve.n
        A = curve.multiply(multiple, curve.base)
        if A is None or (Z * A[0], Z * A[1]) != (X, Y):
            return [f"the first point is not {multiple} G"]
        total["G"] = total["G"] + start
        return []

    # ---- results

    def _affine(self) -> list[str]:
        held, digits = self._from_names(self.program.after)
        X, Y, Z = map(self._held, XYZ)
        u = self._image.u if self._image else 1
        inverse = Z ** (self.p - 2)
        wanted = [c * inverse * pow(u, -k, self.p) * self.f for c, k in ((X, 2), (Y, 3))]
        got = [held[False, slot] for slot, _ in self.program.results]
        return [] if got == wanted and not digits else ["the instructions compute other coordinates"]

    # ---- the ladder

    def _pair(self, name: str) -> Form:
        """The variable or the other one of its pair, as the first digit says."""
        partner = self.assembled.field_program.groups.partner
        return self.forms.selected(0, [self._held(name), self._held(partner[name])])

    def _ladder_pass(self) -> list[str]:
        held, digits = self._loop
        assert isinstance(self.curve, Montgomery)
        if digits != 1 or self._at(held, "u1") != self._held("u1"):
            return ["a pass uses another number of digits than 1, or changes u"]
        names = ("X2", "Z2", "X3", "Z3")
        got = tuple(self._at(held, name) for name in names)
        for step, factor in ladder_steps(self.curve):
            constant: Any = self.forms.constant(factor)
            if got == step(*map(self._pair, names), self._held("u1"), constant):
                return []
        return ["a pass computes other coordinates"]

    def _ladder_start(self) -> list[str]:
        held, digits = self._before
        X2, Z2, X3, Z3, u1 = (self._at(held, name) for name in ("X2", "Z2", "X3", "Z3", "u1"))
        u, Z = self.forms.atom("u"), self._first_z
        wanted = (Z, self.forms.constant(0), u * Z, Z, u)
        return [] if (X2, Z2, X3, Z3, u1) == wanted and not digits else ["the first points are others"]

    def _ladder_digits(self) -> list[str]:
        recoding = self.made.recoding
        if not isinstance(recoding, Gray) or self.program.passes != recoding.bits:
            return ["the recoding is not that of a ladder with a pass for each bit"]
        k = Scalar.unknown("k", 0, (1 << recoding.bits) - 1)
        digits = recoding.digits(k)  # type: ignore[arg-type]
        return ladder_digit_faults(digits, k, recoding.bits)

    def _ladder_result(self) -> list[str]:
        held, digits = self._from_names(self.program.after)
        wanted = self._pair("X2") * self._pair("Z2") ** (self.p - 2) * self.f
        got = [held[False, slot] for slot, _ in self.program.results]
        return [] if got == [wanted] and digits == 1 else ["the instructions compute another u"]


@dataclass(frozen=True)
class _Parts:
    """Stands for an endomorphism in a recoding: any two parts of a scalar."""

    k1: Scalar
    k2: Scalar
    bits: int

    def split(self, _k: int) -> tuple[Scalar, Scalar]:
        """The parts."""
        return self.k1, self.k2


def _split_faults(found: Endomorphism) -> list[str]:
    """What is false of: k = k1 + k2 lambda mod n, and |k1|, |k2| < 2^bits, for every k.

    (k1, k2) = (k, 0) - c1 v1 - c2 v2; both vectors are 0 mod n at lambda. Without rounding the coefficients give
    (0, 0), so with an error of at most 1/2 in each, |k1| and |k2| are at most half the sum of the vectors'
    coordinates."""
    (a1, b1), (a2, b2) = found.vectors
    determinant = a1 * b2 - a2 * b1
    lines = []
    if any((a + b * found.eigenvalue) % found.n for a, b in found.vectors):
        lines.append("a short vector is not 0 at lambda")
    if determinant == 0:
        lines.append("the short vectors are not independent")
    if max(abs(a1) + abs(a2), abs(b1) + abs(b2)) >= 2 << found.bits:
        lines.append(f"half of a scalar may have more than {found.bits} bits")
    return lines
