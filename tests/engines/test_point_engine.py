# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The point engine bit by bit on each family of multipliers, and the protocols on it; the order's arithmetic."""

import random
from functools import lru_cache

import pytest

from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.engines.ecc.blinding import NUMBERS, Ecc, HostOrder, ReferenceEngine
from modmill.engines.ecc.order_engine import MicrocodeOrder, order_operations
from modmill.engines.ecc.point_engine import MicrocodePointEngine, Shape
from modmill.engines.microcode.interpreter import exact, largest, plain
from modmill.engines.microcode.program import DatapathSpec
from modmill.numbers.curves.affine import Montgomery
from modmill.numbers.curves.named import find_curve
from modmill.studies.vectors import ecc_edges as edges
from modmill.studies.vectors.ecc_cases import faults, sample
from modmill.studies.vectors.ecc_files import wycheproof

TRIMS = DatapathSpec(3, 1, 1, 128, 512, conditional_subtracts=True)
LATE = DatapathSpec(2, 19, 2, 128, 512, conditional_subtracts=True)
RESIDUES = DatapathSpec(3, 1, 1, 128, 512)
ADDED = DatapathSpec(0, 4, 4, 128, 512, added=True)


def engine(name, io, curve_name, unit, **settings):
    curve = find_curve(curve_name)
    fitted = design(name).fit(curve.p, **settings)
    contract = fitted.contract(io)
    return MicrocodePointEngine(curve, contract, unit, product=lambda _: exact(fitted, contract))


@pytest.mark.parametrize(
    ("name", "io", "curve", "unit", "bits"),
    [
        ("montgomery-array", "native", "P-256", TRIMS, 256),
        ("montgomery-array", "native", "P-256", LATE, 256),
        ("montgomery-array", "montgomery", "Ed448", TRIMS, 447),
        ("pseudo-mersenne", "native", "Curve25519", TRIMS, 255),
        ("pseudo-mersenne", "native", "secp256k1", TRIMS, 256),
        ("pseudo-mersenne", "plain", "Ed25519", TRIMS, 253),
        ("radix64k-mul", "native", "Ed25519", TRIMS, 16),
        ("multistep", "native", "Ed25519", TRIMS, 16),
        ("wide", "native", "brainpoolP256r1", TRIMS, 256),
        ("sor-2m", "native", "Curve25519", RESIDUES, 64),
        ("sor-ring", "native", "Ed25519", RESIDUES, 16),
        ("sor-2m", "plain", "secp256k1", TRIMS, 8),
        ("mm-spa", "native", "Curve25519", RESIDUES, 32),
        ("kbe", "native", "Ed25519", ADDED, 6),
        ("hbe", "native", "P-256", ADDED, 6),
        long("hbe", "native", "Curve25519", ADDED, 16),
        ("tenca-koc", "native", "P-192", TRIMS, 8),
        ("iddmm", "native", "P-192", TRIMS, 8),
        ("mcivor", "native", "P-192", TRIMS, 8),
        ("orup", "native", "Ed25519", TRIMS, 64),
    ],
)
def test_each_family_of_multipliers_bit_by_bit(name, io, curve, unit, bits):
    instructions = engine(name, io, curve, unit)
    reference = ReferenceEngine(instructions.curve)
    rnd = random.Random(f"{name} {curve}")
    k, blind = rnd.getrandbits(bits) | 1 << bits - 1, rnd.randrange(1, instructions.curve.p)
    if isinstance(instructions.curve, Montgomery):
        u = rnd.randrange(instructions.curve.p)
        assert instructions.ladder([k], [u], bits, [blind]) == reference.ladder([k], [u], bits, [1])
    else:
        P = reference.multiply_base([rnd.randrange(instructions.curve.n)], instructions.curve.n.bit_length(), [1])[0]
        assert instructions.multiply([k], [P], bits, [blind]) == reference.multiply([k], [P], bits, [1])


@pytest.mark.parametrize(
    ("curve", "mode"),
    [("P-256", plain), ("P-256", largest), ("secp256k1", largest), ("Ed25519", largest), ("P-521", largest)],
)
def test_all_operations_at_exceptional_scalars(curve, mode):
    curve = find_curve(curve)
    contract = design("montgomery-array").fit(curve.p).contract("native")
    make = (lambda a: largest(a.program, contract)) if mode is largest else (lambda a: plain(contract))
    instructions, reference = MicrocodePointEngine(curve, contract, TRIMS, product=make), ReferenceEngine(curve)
    n, bits = curve.n, curve.n.bit_length()
    scalars = [0, 1, n - 1, n]
    P = reference.multiply_base([n // 3], bits, [1])[0]
    ones = [1] * len(scalars)
    blinds = [curve.p - 1, 1, 2, 5]
    assert instructions.multiply(scalars, [P] * 4, bits, blinds) == reference.multiply(scalars, [P] * 4, bits, ones)
    assert instructions.multiply_base(scalars, bits, blinds) == reference.multiply_base(scalars, bits, ones)
    pairs = [(0, 1), (1, n - 1), (n - 3, 3), (0, 0)]
    points = [P, curve.base, curve.base, P]
    assert instructions.multiply_two(pairs, points) == reference.multiply_two(pairs, points)


def test_rows_do_not_depend_on_scalars():
    """One program serves all scalars of a length, so that instructions and products are one number."""
    instructions = engine("montgomery-array", "native", "P-256", TRIMS)
    instructions.multiply([0, 1, instructions.curve.n - 1], [instructions.curve.base] * 3, 256, [1, 1, 1])
    instructions.multiply([5], [instructions.curve.base], 320, [1])
    counts = {key: made[1].program.instructions for key, made in instructions._made.items()}
    assert counts == {("multiply", 256): 3474, ("multiply", 320): 5728}


@pytest.mark.parametrize("curve", ["secp256k1", "Curve25519"])
def test_protocols_run_on_it(curve):
    instructions = engine("pseudo-mersenne", "native", curve, TRIMS)
    on_instructions = Ecc(instructions, blind_scalar=64, blind_coordinates=True)
    reference = Ecc(ReferenceEngine(instructions.curve))
    rnd = random.Random(3)
    k = rnd.randrange(instructions.curve.n)
    if curve == "Curve25519":
        assert on_instructions.ladder([k], [9], 255) == reference.ladder([k], [9], 255)
    else:
        P = reference.multiply_base([7])[0]
        assert on_instructions.multiply([k, 0], [P, P]) == reference.multiply([k, 0], [P, P])
        assert on_instructions.multiply_base([k]) == reference.multiply_base([k])


def test_requests_that_it_refuses():
    curve = find_curve("P-256")
    contract = design("montgomery-array").fit(find_curve("secp256k1").p).contract("native")
    with pytest.raises(UnsupportedError, match="must be the p of P-256"):
        MicrocodePointEngine(curve, contract, TRIMS)
    instructions = engine("montgomery-array", "native", "P-256", TRIMS)
    with pytest.raises(UnsupportedError, match="cannot multiply the point at infinity"):
        instructions.multiply([1], [None], 256, [1])
    with pytest.raises(UnsupportedError, match="no operation 'ladder'"):
        instructions.ladder([1], [1], 256, [1])
    with pytest.raises(UnsupportedError, match="does not add two products"):
        fitted = design("montgomery-array").fit(curve.p)
        exact(fitted, fitted.contract("native"))((0, 0, 0), (1, 2, 3, 4))


@pytest.mark.parametrize("mode", [plain, largest, exact])
def test_arithmetic_modulo_the_order(mode):
    """The multiplier is loaded with n, which has as many bits as the p that it was made for."""
    curve = find_curve("P-256")
    n, fitted = curve.n, design("montgomery-array").fit(curve.p)

    def product(instructions):
        loaded = fitted.at(n)
        contract = loaded.contract("native")
        return {plain: lambda: plain(contract), largest: lambda: largest(instructions.program, contract)}.get(
            mode, lambda: exact(loaded, contract)
        )()

    order = MicrocodeOrder(lambda m: fitted.at(m).contract("native"), TRIMS, product)
    rnd = random.Random(4)
    k, z, r, d = (rnd.randrange(1, n) for _ in range(4))
    host = HostOrder()
    items = [(k, z, r, d), (1, 0, n - 1, n - 1), (n - 1, z, 0, d)]
    assert order.signatures(n, items) == host.signatures(n, items)
    items = [(k, z, r), (1, 0, n - 1), (n - 1, n - 1, 0)]
    assert order.quotients(n, items) == host.quotients(n, items)
    assert order.multiply_adds(n, items) == host.multiply_adds(n, items)
    assert order.signatures(n, [(0, z, r, d)]) == [0]
    assert [order.program(n, operation)[1].program.products for operation in NUMBERS] == [316, 316, 5]
    with pytest.raises(UnsupportedError, match="not prime"):
        order.quotients(n - 2, [(3, 1, 1)])
    with pytest.raises(UnsupportedError, match="must be one of signature"):
        order.results(n, "inverse", [])
    assert order_operations(curve) + order_operations(find_curve("Ed448")) == tuple(NUMBERS)
    assert order_operations(find_curve("Curve25519")) == ()


def test_shapes_trade_products_for_slots():
    curve = find_curve("Ed25519")
    contract = design("pseudo-mersenne").fit(curve.p).contract("native")
    found = []
    for shape in (Shape(teeth=4, columns=1), Shape(), Shape(teeth=6)):
        instructions = MicrocodePointEngine(curve, contract, TRIMS, shape).program("multiply-base", 253)[1].program
        found.append((instructions.products, instructions.shared_slots))
    assert found == sorted(found, reverse=True)[:1] + found[1:] and found[0][1] < found[1][1] < found[2][1]
    assert found[1] == (814, 193)


@pytest.mark.parametrize(
    ("name", "blind", "every"), [("P-256", 0, 2), ("secp256k1", 64, 3), ("Ed25519", 0, 5), ("Curve25519", 64, 1)]
)
def test_the_protocols_exceptional_cases_bit_by_bit(name, blind, every):
    """Points of small order, O as a sum, 0, 1, n - 1, n: with scalars as they are and blinded, on one multiplier."""
    instructions = engine("montgomery-array", "native", name, TRIMS)
    curve, ecc = instructions.curve, Ecc(instructions, blind_scalar=blind, blind_coordinates=bool(blind))
    if isinstance(curve, Montgomery):
        scalars, us, expected = zip(*edges.edge_ladders(curve), strict=True)
        assert ecc.ladder(scalars, us, curve.bits + 1) == list(expected)
        return
    scalars, points, expected = zip(*edges.edge_multiples(curve)[::every], strict=True)
    assert ecc.multiply(scalars, points) == list(expected)
    assert ecc.multiply_base(scalars[:7]) == [curve.multiply(k, curve.base) for k in scalars[:7]]
    pairs, points, expected = zip(*edges.edge_sums(curve)[::every], strict=True)
    assert ecc.multiply_two(pairs, points) == list(expected)


@pytest.mark.parametrize("name", ["ecdh_secp256r1", "x25519", "ed25519", "ecdsa_secp256r1_sha256", "x448"])
def test_a_sample_of_published_vectors_bit_by_bit(name):
    """`sample` takes every flag that the file has."""

    @lru_cache
    def ecc(curve):
        return Ecc(engine("montgomery-array", "native", curve, TRIMS), check=False)

    chosen = sample(wycheproof(name), 20)
    assert len(chosen) == 20
    assert faults(ecc, chosen) == []
