# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The product of a multiplier as a call in C: any representation and any multiple of p in a result, planted faults."""

import random

import pytest
from calls_bench import (
    BUS,
    RANGE,
    TIMEOUT,
    Products,
    ProductStandIn,
    compiled,
    compiles_for_rv32i,
    described,
    documented_example_compiles,
    linked,
    simulated,
)

from marks import long
from modmill.buses.files import descriptions, section
from modmill.cores.multiplier.build import build

RESULT = RANGE + 1
CORES = {
    "plain": ("multistep", "P-256", {}),
    "factor": ("montgomery-array", "2^61-1", {"io": "native", "loadable": False}),
    "bound": ("solinas", "P-256", {"io": "native"}),
    "unsigned": ("parallel", "P-256", {"io": "native"}),
    "digits": ("radix64k-mul", "2^127-1", {"io": "native"}),
    "loaded": ("montgomery-array", "secp256k1", {"io": "native"}),
    "loaded-twice": ("montgomery-array", "2^130-5", {}),
    "loaded-digits": ("radix64k-ram", "2^127-1", {"io": "native", "loadable": True}),
    "loaded-inverse": ("iddmm", "2^96-17", {"io": "montgomery", "loadable": True}),
    "loaded-inverse-twice": ("iddmm", "2^61-1", {"loadable": True}),
    "loaded-whole": ("tenca-koc", "2^65+131", {"loadable": True}),
}
_MADE: dict = {}


def made(name, folder):
    design, modulus, options = CORES[name]
    core = build(design, modulus, **options)
    assert bool(core.contract.load) == name.startswith("loaded")
    return core, compiled(core, folder), folder


@pytest.fixture
def products(request, tmp_path_factory):
    """The call of a multiplier of `CORES` on a fresh stand-in."""
    if (name := request.param) not in _MADE:
        _MADE[name] = made(name, tmp_path_factory.mktemp(name))
    core, library, _ = _MADE[name]
    return Products(core, library, ProductStandIn(core))


def on(*names):
    return pytest.mark.parametrize("products", names, indirect=True)


def moduli(bits, rnd):
    return [(1 << bits) - 1, (1 << bits - 1) + 1, 3, *(rnd.getrandbits(k) | 1 | 1 << k - 1 for k in (bits, 20))]


def edges(p, rnd):
    return [(a, b) for a in {0, 1, p - 1, rnd.randrange(p)} for b in (0, 1, p - 1, rnd.randrange(p))]


@on(*CORES)
def test_products_are_canonical(products):
    """For edge operands and edge moduli, whatever multiple of p and representation the multiplier gives."""
    rnd, front, core = random.Random(1), products.bus, products.core
    if not products.c.loading:
        p = core.contract.p
        assert all(products.product(a, b) == (0, a * b % p) for _ in range(4) for a, b in edges(p, rnd))
        return
    front.moduli = [*dict.fromkeys((core.contract.p, *moduli(products.c.bits, rnd)))]
    for p in front.moduli:
        error, modulus = products.modulus(p)
        assert error == 0
        front.messages.clear()
        assert all(products.product(a, b, modulus) == (0, a * b % p) for _ in range(2) for a, b in edges(p, rnd))
        assert [message[0] for message in front.messages].count(0) == 1


@on("plain", "loaded-digits", "loaded-inverse-twice")
def test_it_compiles_without_a_warning_for_rv32i(products):
    folder = next(folder for core, _, folder in _MADE.values() if core is products.core)
    compiles_for_rv32i(folder, "core")


@on("plain")
def test_the_example_of_the_docs_compiles(products, tmp_path):
    declared = "int product(uint32_t *, const uint32_t *, const uint32_t *)"
    documented_example_compiles(products.core, BUS, tmp_path, declared)


@pytest.mark.parametrize("design", ["montgomery-array", "radix64k-ram", "multistep", "tenca-koc", "mcivor", "iddmm"])
def test_the_declared_factor_is_that_of_every_small_modulus(design):
    """2^-radix; moduli of few bits share powers of two by which a factor could be mistaken for another."""
    for width in (4, 6, 9):
        fitted = build(design, (1 << width) - 1, io="native", loadable=True).fitted
        for p in range(3, 1 << width, 2):
            for io in ("native", "montgomery"):
                contract = (fitted if p == fitted.p else fitted.at(p)).contract(io)
                assert contract.factor * pow(2, contract.load.radix, p) % p == 1


@on("plain", "loaded")
def test_refusals_and_wrong_results(products):
    p, front = products.core.contract.p, products.bus
    given = []
    if products.c.loading:
        front.moduli = [p]
        for wrong in (0, 1, 2, p - 1):
            assert products.modulus(wrong)[0] == RANGE
        given = [products.modulus(p)[1]]
    for a, b in ((p, 1), (1, p), (p, p)):
        assert products.product(a, b, *given) == (RANGE, 0)
    assert not front.messages
    assert products.product(2, 3, *given) == (0, 6)
    front.fault = lambda name, found: [(1 << products.core.contract.result.width) - 1]  # above the bound
    assert products.product(2, 3, *given) == (RESULT, 0)
    assert not any(products.engine.words)
    front.fault, front.work, products.engine.patience = None, lambda: None, 20
    assert products.product(2, 3, *given) == (TIMEOUT, 0)
    assert not any(products.engine.words)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("bound", "k = 1u; k < 13u", "k = 1u; k < 12u"), ("digits", "16u * k, port", "17u * k, port"),
     ("factor", "found, found, square", "found, square, square")],
)  # fmt: skip
def test_a_planted_error_is_caught(name, old, new, tmp_path):
    core = build(*CORES[name][:2], **CORES[name][2])
    for file, text in descriptions(described(core), BUS).items():
        assert file != "core_calls.c" or old in text
        (tmp_path / file).write_text(text.replace(old, new))
    products, p = Products(core, linked(tmp_path, "core"), ProductStandIn(core)), core.contract.p
    assert any(products.product(a, b) != (0, a * b % p) for _ in range(9) for a, b in edges(p, random.Random(2)))


@pytest.mark.parametrize("design", ["mcivor", long("pseudo-mersenne")])
def test_on_the_simulated_bus(design, tmp_path):
    """With a modulus that is loaded, and with one that is built in."""
    core = build(design, "2^61-1", io="native", **({"loadable": True} if design == "mcivor" else {}))
    products = simulated(core, tmp_path, Products)
    for p in (core.contract.p, *((3, 2**60 + 33) if products.c.loading else ())):
        given = [products.modulus(p)[1]] if products.c.loading else []
        assert all(products.product(a, b, *given) == (0, a * b % p) for a, b in edges(p, random.Random(3)))


@pytest.mark.parametrize(("design", "options"), [("sor-2m", {}), ("kbe", {"loadable": True}), ("kbe-reduction", {})])
def test_multipliers_without_a_call_say_so(design, options):
    """Residues, words of a modulus that C cannot make, one operand."""
    core = build(design, "P-256", io="native", **options)
    assert core.calls is None
    device = described(core)
    assert "no call in C" in section(device, BUS) and "core_calls.c" not in descriptions(device, BUS)
