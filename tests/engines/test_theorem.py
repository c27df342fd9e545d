# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What programs compute, proved for all inputs; a wrong coefficient, row, slot, table, digit or exponent is found."""

from dataclasses import replace
from functools import lru_cache

import pytest

from marks import long
from modmill.designs import design
from modmill.engines.ecc import formulas, recoding
from modmill.engines.ecc.formulas import SMALL, EdwardsForm, Homogeneous, WeierstrassForm
from modmill.engines.ecc.isomorphism import isomorphism
from modmill.engines.ecc.order_engine import order_program
from modmill.engines.ecc.point_engine import MicrocodePointEngine, Shape
from modmill.engines.ecc.weierstrass import SplitScalar
from modmill.engines.microcode.assembly import assemble
from modmill.engines.microcode.field_program import Domain
from modmill.engines.microcode.program import DatapathSpec, OperandAddress
from modmill.engines.rsa.exponentiation import Exponentiation, fixed_window, ladder, left_to_right
from modmill.engines.theorem.group_law import edwards_faults, ladder_faults, weierstrass_faults
from modmill.engines.theorem.order_programs import bounds_part, order_part
from modmill.engines.theorem.point_programs import PointProof
from modmill.engines.theorem.polynomials import Polynomial, variables
from modmill.engines.theorem.power_programs import PowerProof
from modmill.engines.theorem.scalars import Scalar, digits_worth
from modmill.numbers.curves.named import find_curve
from modmill.numbers.primes import square_root

SHAPE = Shape()
UNIT = DatapathSpec(3, 1, 1, 512, 1024, conditional_subtracts=True)
ADDED = DatapathSpec(0, 4, 4, 512, 1024, added=True)


@lru_cache
def program(curve, operation, bits=32, unit=UNIT, shape=SHAPE):
    """(curve, point program, instructions, contract) of an operation."""
    curve = find_curve(curve, pairing=True)
    contract = design("kbe" if unit.added else "montgomery-array").fit(curve.p).contract("native")
    made, instructions = MicrocodePointEngine(curve, contract, unit, shape).program(operation, bits)
    return curve, made, instructions, contract


def is_open(parts):
    """Names of what stays open."""
    return [part.name.split(" of ")[0] for part in parts if part.state == "OPEN"]


def shown(curve, made, instructions, contract):
    return is_open(PointProof(curve, made, instructions, contract).parts())


# ---- the group law


@lru_cache
def weierstrass(name, added=False, form=WeierstrassForm):
    curve = isomorphism(find_curve(name)).image
    a = curve.a if curve.a < 1 else -3 if curve.a == curve.p - 3 else 1
    b3 = 3 * curve.b % curve.p
    return weierstrass_faults(
        curve, lambda one: form(curve.a * one if a == 1 else a, b3 if b3 <= SMALL else b3 * one, added)
    )


@pytest.mark.parametrize("name", ["secp256k1", "P-256", "SM2"])
@pytest.mark.parametrize("added", [False, True])
def test_formulas_are_the_group_law(name, added):
    assert weierstrass(name, added) == []


class WrongSum(WeierstrassForm):
    def add(self, P, Q):
        R = super().add(P, Q)
        return Homogeneous(R.X, R.Y + R.X * 0 + P.X * P.X * Q.X * Q.X, R.Z)


class WrongDouble(WeierstrassForm):
    def double_jacobian(self, P):
        J = super().double_jacobian(P)
        return replace(J, Y=J.Y + P.Y * P.Y * P.Y * P.Y)


class Incomplete(WeierstrassForm):
    """Correct for different points, and (0 : 0 : 0) for equal ones."""

    def add(self, P, Q):
        R = super().add(P, Q)
        Z = P.Z if not isinstance(Q, Homogeneous) else Q.Z * P.X - P.Z * Q.X
        return Homogeneous(R.X * Z, R.Y * Z, R.Z * Z)


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (WrongSum, "chord, y"),
        (WrongDouble, "Jacobian doubling, y"),
        (Incomplete, "P1 = P2"),
    ],
)
def test_a_wrong_or_incomplete_formula_is_found(form, found):
    assert any(found in line for line in weierstrass("P-256", False, form))


def test_a_curve_that_is_not_complete_is_found():
    curve = find_curve("Ed25519")

    def faults(of):
        root = square_root(of.a, of.p)
        return edwards_faults(of, lambda one: EdwardsForm(-1, of.d * one), root)

    assert faults(curve) == []
    assert faults(replace(curve, d=4)) == ["d is a square"]
    assert "a is no square other than 0" in faults(replace(curve, a=2))
    twice = lambda one: EdwardsForm(-1, 2 * curve.d * one)  # noqa: E731
    assert edwards_faults(curve, twice, square_root(curve.a, curve.p))


def test_a_wrong_constant_of_the_ladder_is_found():
    curve = find_curve("Curve25519")
    assert ladder_faults(curve, formulas.ladder_step, curve.a24) == []
    assert ladder_faults(curve, formulas.ladder_step, curve.a24 + 1)
    assert ladder_faults(replace(curve, A=2), formulas.ladder_step, 0)


def test_remainders_and_constants():
    x, y, one = variables(101, 2)
    rules = {(0, 2): x * x * x + one}
    assert not (y * y * y - x**3 * y - y).remainder(rules).terms
    assert (3 * x + 6 * one).over(x + 2 * one) == 3 and (3 * x + 5 * one).over(x + 2 * one) is None
    assert Polynomial(101, {(1, 0): 101}).terms == {}


# ---- programs for points


@pytest.mark.parametrize(
    ("curve", "operation", "unit"),
    [
        ("P-256", "multiply", UNIT),
        ("secp256k1", "multiply-two", UNIT),
        ("Ed25519", "multiply", UNIT),
        ("Ed25519", "multiply-base", ADDED),
        ("Curve25519", "ladder", UNIT),
        long("P-256", "multiply-base", UNIT),
        long("Ed448", "multiply-two", ADDED),
        long("secp256k1", "multiply-base", ADDED),
    ],
)
def test_programs_multiply_points(curve, operation, unit):
    found = program(curve, operation, unit=unit)
    assert shown(*found) == []
    assert bounds_part(operation, found[2].program, found[3], unit).state == "PROVED"


def test_a_multiple_by_the_endomorphism():
    """Right for the group of the base point; on a curve with other points nothing says where a point lies."""
    curve, made, instructions, contract = program("BLS12-381-G1", "multiply", shape=Shape(2, endomorphism=True))
    assert shown(curve, made, instructions, contract) == []
    split = made.recoding.split
    wrong = replace(made, recoding=replace(made.recoding, split=replace(split, eigenvalue=split.eigenvalue + 1)))
    assert shown(curve, wrong, instructions, contract) == ["tables", "scalar"]
    wrong = replace(made, recoding=Swapped(made.recoding.bits, made.recoding.window, split))
    assert shown(curve, wrong, instructions, contract) == ["scalar"]
    assert shown(replace(curve, arithmetic=False), made, instructions, contract) == ["tables"]


class Swapped(SplitScalar):
    """The digits of the halves in the wrong order."""

    def digits(self, k):
        digits = super().digits(k)
        return tuple(digits[at ^ 1] for at in range(len(digits)))


def changed(found, part, k, **fields):
    """The program with another first sum or product in one row."""
    curve, made, instructions, contract = found
    rows = list(getattr(instructions.program, part))
    row = rows[k]
    task = row.product or row.sums[0]
    new = replace(task, **{name: change(getattr(task, name)) for name, change in fields.items()})
    rows[k] = replace(row, product=new) if row.product else replace(row, sums=(new, *row.sums[1:]))
    return curve, made, replace(instructions, program=replace(instructions.program, **{part: tuple(rows)})), contract


def other(address):
    return OperandAddress(address.number ^ 1, address.pick, address.shared, address.size)


@pytest.mark.parametrize(
    ("part", "k", "field", "open_part"),
    [
        ("loop", 3, "a", {"pass"}),
        ("loop", 5, "destination", {"pass"}),
        ("before", 2, "b", {"tables", "scalar", "pass"}),
        ("after", 4, "a", {"result"}),
    ],
)
def test_a_wrong_slot_address_is_found(part, k, field, open_part):
    assert set(shown(*changed(program("Ed25519", "multiply"), part, k, **{field: other}))) & open_part


def test_a_wrong_row_is_found():
    found = program("P-256", "multiply")
    k = next(k for k, row in enumerate(found[2].program.loop) if row.sums and not row.product)
    flip = {"kind": lambda kind: {"add": "sub", "sub": "add"}[kind]}
    assert shown(*changed(found, "loop", k, **flip)) == ["pass"]
    curve, made, instructions, contract = found
    fewer = replace(instructions, program=replace(instructions.program, passes=instructions.program.passes - 1))
    assert "scalar" in shown(curve, made, fewer, contract)


def test_a_wrong_entry_of_a_table_of_constants_is_found():
    curve, made, instructions, contract = program("Ed25519", "multiply-base", unit=ADDED)
    slot, _ = instructions.program.shared[5]
    shared = tuple((s, v + (s == slot)) for s, v in instructions.program.shared)
    wrong = replace(instructions, program=replace(instructions.program, shared=shared))
    assert "tables" in shown(curve, made, wrong, contract)


class WrongDigits(recoding.Signed):
    """Loses the carry of the highest digit."""

    def digits(self, k):
        return recoding._split(
            k + ((self._ones(self.count) >> self.window) << self.window - 1), self.window, self.count
        )


class LateComb(recoding.Comb):
    def _digit(self, k, j, column):
        return super()._digit(k, j, self.columns - 1 - column)


def test_a_wrong_recoding_is_found():
    curve, made, instructions, contract = program("Ed25519", "multiply")
    right = made.recoding
    wrong = WrongDigits(right.bits, right.window)
    assert shown(curve, replace(made, recoding=wrong), instructions, contract) == ["scalar"]
    curve, made, instructions, contract = program("Ed25519", "multiply-base", unit=ADDED)
    comb = made.recoding
    wrong = LateComb(comb.bits, comb.teeth, comb.columns)
    assert shown(curve, replace(made, recoding=wrong), instructions, contract) == ["scalar"]
    curve, made, instructions, contract = program("Curve25519", "ladder")
    wrong = replace(made, recoding=recoding.Unsigned(made.recoding.bits + 1, 1))
    assert shown(curve, wrong, instructions, contract) == ["scalar"]


def test_doublings_that_may_begin_with_the_neutral_element_are_found():
    """Jacobian doublings need digits whose prefixes are no multiples of n: not for much longer scalars."""
    curve, made, instructions, contract = program("P-256", "multiply", 256)
    assert shown(curve, made, instructions, contract) == []
    small = replace(made, recoding=recoding.Odd(270, 4, curve.n))
    assert "pass" in shown(curve, small, instructions, contract)
    assert {"pass", "scalar"} <= set(shown(replace(curve, h=3), made, instructions, contract))


@pytest.mark.parametrize("operation", ["signature", "quotients", "multiply-add"])
def test_operations_modulo_the_order(operation):
    curve = find_curve("P-256" if operation != "multiply-add" else "Ed25519")
    contract = design("montgomery-array").fit(curve.n).contract("native")
    made = assemble(order_program(operation, Domain.of(contract)), contract, UNIT)
    assert order_part(operation, made, contract).state == "PROVED"
    others = {"signature": "quotients", "quotients": "signature", "multiply-add": "signature"}
    assert order_part(others[operation], made, contract).state == "OPEN"


def test_a_table_that_is_no_sum_of_its_bits_is_refused():
    k = Scalar.unknown("k", 0, 255)
    digits = recoding.Unsigned(8, 2).digits(k)
    assert digits_worth(digits, [range(4)], 4)[0].whole().same(k)
    with pytest.raises(ValueError, match="entry 3"):
        digits_worth(digits, [[0, 1, 2, 4]], 4)
    with pytest.raises(ValueError, match="bit 2"):
        digits_worth(digits, [range(4)], 8)[0].whole()


# ---- programs for powers


@lru_cache
def power(kind, distance=2):
    contract = design("montgomery-array").fit((1 << 64) - 59).contract("native")
    made = {"window": fixed_window(4), "ladder": ladder(), "public": left_to_right(65537)}[kind]
    found = Exponentiation(made, contract, 64 if made.window else 17)
    return found, found.instructions(distance)


@pytest.mark.parametrize("kind", ["window", "ladder", "public"])
def test_programs_compute_powers(kind):
    assert is_open(PowerProof(*power(kind)).parts()) == []


@pytest.mark.parametrize(
    ("kind", "part", "field", "open_part"),
    [
        ("window", "before", "a", "table"), ("window", "loop", "b", "pass"), ("window", "after", "b", "result"),
        ("ladder", "loop", "a", "pass"), ("ladder", "before", "destination", "start"),
        ("ladder", "after", "b", "result"), ("public", "before", "b", "result"),
    ],
)  # fmt: skip
def test_a_wrong_slot_of_a_power_is_found(kind, part, field, open_part):
    of, instructions = power(kind)
    rows = list(getattr(instructions, part))
    k = max(k for k, row in enumerate(rows) if row.product)
    task = rows[k].product
    rows[k] = replace(
        rows[k], product=replace(task, **{field: OperandAddress(0 if getattr(task, field).number else 3)})
    )
    assert open_part in is_open(PowerProof(of, replace(instructions, **{part: tuple(rows)})).parts())


def test_a_wrong_constant_or_exponent_is_found():
    of, instructions = power("public")
    ((slot, value), *rest) = instructions.shared
    wrong = replace(instructions, shared=((slot, value + 1), *rest))
    assert is_open(PowerProof(of, wrong).parts()) == ["constants"]
    of = Exponentiation(replace(left_to_right(65537), exponent=65539), of.contract, 17)
    assert is_open(PowerProof(of, instructions).parts()) == ["result"]
