# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A thousand dependent products through the RTL: moduli that the SOR paper's condition (22) excludes, and RNS
Montgomery multiplication from 255 to 1024 bits."""

import random

import pytest

from marks import long
from modmill.cores.multiplier.build import build
from modmill.flow.simulate import Simulator, Widths
from modmill.numbers.moduli import parse_modulus

LENGTH = 1000


def chain(design, modulus, length, verilog=None):
    """The largest result of a chain of squarings and products, as a fraction of the bound; checks every result."""
    core = build(design, modulus, "native")
    c, form = core.contract, core.contract.operand
    simulator = Simulator(verilog or core.verilog, top="core", widths=Widths(form.width, form.width, form.width))
    rnd = random.Random(4)
    count = 4  # chains side by side
    ports = [form.encode(rnd.randrange(c.largest_operand + 1)) for _ in range(count)]
    fixed = [form.encode(rnd.randrange(c.largest_operand + 1)) for _ in range(count)]
    numbers = [form.decode(x) for x in ports]
    factors = [form.decode(x) for x in fixed]
    largest = 0
    for step in range(length):
        others = ports if step % 2 else fixed
        run = simulator.run(ports, others)
        assert not run.violations
        numbers = [n * (n if step % 2 else f) * c.factor % c.p for n, f in zip(numbers, factors, strict=True)]
        ports = run.results
        values = [form.decode(x) for x in ports]
        assert [v % c.p for v in values] == numbers, f"chain broke at product {step + 1}"
        largest = max(largest, *values)
        assert largest < c.result_bound * c.p
    return largest / (c.result_bound * c.p)


@pytest.mark.parametrize(
    "modulus",
    [
        "P-256",
        *map(long, ("BLS12-381-p", "SM2", "brainpoolP256r1", "BN254-p", "brainpoolP384r1", "brainpoolP512r1")),
    ],
)
def test_thousand_products_with_the_general_kappa(modulus):
    assert chain("sor-1m-p", modulus, LENGTH) > 0.4


@pytest.mark.parametrize("design", ["sor-2m", long("sor-ring")])
def test_thousand_products_on_other_machines(design):
    assert chain(design, "P-256", LENGTH) > 0.4


def test_thousand_products_with_a_sparse_quotient():
    """Operands at random up to the largest: later results are small, as x y / R is."""
    assert chain("solinas", "P-256", LENGTH) > 0.2


# A prime of 1024 bits, one factor of a 2048-bit RSA modulus: the least one above 2^1023 + 2^1022.
RSA_FACTOR = str(2**1023 + 2**1022 + 1037)


@pytest.mark.parametrize(
    ("design", "modulus"),
    [
        ("kbe", "P-256"), ("hbe", "secp256k1"), long("hbe", "P-384"),
        *(long("kbe", m) for m in ("secp256k1", "2^255-19", "P-384", "P-521", "BLS12-381-p", RSA_FACTOR)),
        *(long("hbe", m) for m in ("P-256", "2^255-19", "P-521", "BLS12-381-p", RSA_FACTOR)),
    ],
)  # fmt: skip
def test_thousand_products_in_rns_montgomery_form(design, modulus):
    assert chain(design, modulus, LENGTH) < 1


def test_a_kappa_for_special_primes_breaks_the_chain():
    """The planted fault: kappa divided by 2^W instead of p, as printed, fails for P-256 within a few products."""
    from modmill.designs.sor.improved import Params, Sor
    from modmill.flow.emit import verilog

    p = parse_modulus("P-256").value
    good = build("sor-1m-p", "P-256", "native")
    rns = good.fitted.params.rns
    constants = tuple((r << rns.T) >> p.bit_length() for r in rns.r)
    assert constants != rns.c
    broken = type(rns)(**{f: getattr(rns, f) for f in rns.__dataclass_fields__})
    broken.__dict__["c"] = constants
    broken.__dict__["e"] = (0,) * len(rns.e)
    params = good.fitted.params
    fault = Sor(Params(broken, params.k, params.pipelined, params.block, params.kappa_block), {})
    with pytest.raises(AssertionError):
        chain("sor-1m-p", "P-256", 40, verilog(fault.component(), "core"))
