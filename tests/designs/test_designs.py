# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One test over the table of designs: specification = algorithm = machine, intermediate by intermediate."""

import itertools
import random
import re

import pytest
from bench import judge, operands, run
from test_watched_digit_serial import CASES as DIGIT_SERIAL
from test_watched_parallel import CASES as PARALLEL

from marks import long
from modmill.contract import UnsupportedError
from modmill.designs import DESIGNS, design
from modmill.numbers.moduli import MODULI, parse_modulus
from modmill.numbers.shown import shortened
from modmill.schedule import Schedule, ScheduleError, Step

NAMES = [d.name for d in DESIGNS]
MULTIPLIERS = [d.name for d in DESIGNS if d.page not in ("extension", "reduction")]
"""Designs with two operands that serve any modulus or one of a form."""
TOYS = [3, 97, 2**61 - 1, 3**30 * 5]
FULL = ["secp256k1", "P-256"]
HEAVY = {"mm-pa-n", "mm-pa-p", "sor-nm", "parallel"}  # large at full width: the fast simulator runs these
CHAINED = {"montgomery-array", "kbe", "hbe", "sq-rns", "dq-rns", "shenoy-kumaresan", "sor-ring"}
"""Machines that take long here at full width and that the fast simulator runs there: chains, loaded moduli, engines."""
OF_A_FORM = {
    "channel-multiply",
    "channel-reduce",
    "pseudo-mersenne",
    "karatsuba",
    "karatsuba-solinas",
    "karatsuba-montgomery",
    "karatsuba-two-level",
    "karatsuba-two-level-solinas",
    "solinas",
}  # they serve moduli of a form, or of some length, only
SLOW = {(name, p) for name in ("hbe-extension", "kbe-extension") for p in TOYS}
SLOW |= {(name, TOYS[2]) for name in MULTIPLIERS if name not in OF_A_FORM}
"""Machines of two rowers in Amaranth's simulator, which tests/rtl/test_extension.py runs too, and a modulus for which
`test_binary_form` runs each machine."""
SLOW |= {(name, TOYS[1]) for name in NAMES}  # a larger one of one digit
SLOW |= {(name, TOYS[3]) for name in MULTIPLIERS if name not in OF_A_FORM | HEAVY | CHAINED}
"""Those left run at full width here."""
ENOUGH = {"secp256k1", "P-224", "P-256", "Ed25519"}
"""Moduli of every form that designs of a form serve."""


def fit(name, p):
    """The design for p; skips where p is not of the form that it serves."""
    try:
        return design(name).fit(p)
    except UnsupportedError:
        if name not in OF_A_FORM:
            raise
        pytest.skip("the modulus is not of the form that the design serves")


@pytest.mark.parametrize("name", NAMES)
def test_all_settings_given_make_the_same_core(name):
    """A row names them; the core that it is about is found again by them, the constants that papers print included."""
    for p in (parse_modulus("secp256k1").value, 2**255 - 19):
        fitted = fit(name, p)
        again = design(name).fit(p, **fitted.settings)
        assert again.settings == fitted.settings and again.schedule == fitted.schedule
        assert getattr(again, "params", None) == getattr(fitted, "params", None)


@pytest.mark.parametrize(
    ("name", "p"),
    [(long if (n, p) in SLOW else pytest.param)(n, p) for n in NAMES for p in TOYS],
)
def test_machine_equals_algorithm_equals_specification(name, p):
    fitted = fit(name, p)
    judge(fitted, operands(fitted.contract("native"), 6) + fitted.corners()[:30:2])


@pytest.mark.parametrize(
    ("name", "modulus"),
    [
        (
            long
            if n.endswith(("-extension", "-reduction")) or n in CHAINED or (m != FULL[0] and n != "solinas")
            else pytest.param
        )(n, m)
        for n in NAMES
        if n not in HEAVY
        for m in (FULL[:1] if n.endswith("-extension") else FULL)
    ],
)
def test_machine_at_full_width(name, modulus):
    fitted = fit(name, parse_modulus(modulus).value)
    pairs = operands(fitted.contract("native"), 2) + fitted.corners()[:8:2]
    seen, *_ = judge(fitted, pairs)
    names = {name for name, _ in fitted.trace(*pairs[0])}
    assert len(seen.keys() & names) >= 3, "the probes saw nothing"


@pytest.mark.parametrize("p", [3, long(97), 2**61 - 1])
@pytest.mark.parametrize("name", MULTIPLIERS)
def test_binary_form(name, p):
    fitted = fit(name, p)
    contract = fitted.contract(fitted.binary)
    pairs = [(0, 0), (0, p - 1), (1, 1), (p - 1, p - 1), (p - 1, 1), *operands(contract, 6)]
    for (a, b), (r, _, latency) in zip(pairs, run(fitted.core(fitted.binary), pairs, load=contract.load), strict=True):
        assert r == contract.expect(a, b)
        assert latency == contract.timing.latency


WATCHED = [
    ("sor-1m-n", 29, {"n": 12}), ("sor-1m-p", 2**61 - 1, {}), ("sor-2m", 2**61 - 1, {}),
    ("sor-nm", 2**89 - 1, {"n": 12, "sets": 3}), ("mm-pa-n", 29, {"n": 10}), ("mm-pa-p", 29, {"n": 10}),
    ("mm-spa", 2**61 - 1, {"n": 10}), ("sor-ring", 2**61 - 1, {}), ("sor-ring", 2**31 - 1, {"w": 12, "taps": 1}),
]  # fmt: skip


def test_every_design_is_watched():
    """Here, among the parallel machines or among the digit-serial ones."""
    cases = [getattr(case, "values", case) for case in (*WATCHED, *PARALLEL, *DIGIT_SERIAL)]
    assert {name for name, *_ in cases} == {design.name for design in DESIGNS}


@pytest.mark.parametrize(("name", "p", "settings"), WATCHED)
def test_every_operation_of_the_chart_is_done_in_its_cycles(name, p, settings):
    """What a step of the schedule makes stands in its register at the step's end, and not a cycle before: a schedule
    with any operation moved by a cycle is not that of the RTL. The moduli for sor-ring are those for which alpha is not
    on the bus before it is needed. The products that sor-1m-n accumulates pass no register: they stand on the wires a
    cycle before, which gives the path to the accumulator two periods."""
    fitted = design(name).fit(p, **settings)
    contract = fitted.contract("native")
    pairs, steps = operands(contract, 3), {step.name for step in fitted.schedule.steps}
    traces = [dict(fitted.trace(a, b)) for a, b in pairs]
    assert steps <= traces[0].keys()
    core = fitted.component()
    for trace, (_, seen, _) in zip(traces, run(core, pairs), strict=True):
        assert {step: seen.get(step) for step in steps} == {step: trace[step] for step in steps}
    assert {name: at for name, _, at in core.probes if name in steps} == {s.name: s.end for s in fitted.schedule.steps}
    before = [seen for _, seen, _ in run(fitted.component(), pairs, early=1)]  # nothing in cycle 0
    wires = {s.name for s in fitted.schedule.steps if s.unit == "mul1"} - {"Z", "G"} if name == "sor-1m-n" else set()
    for step in steps:
        early = [seen.get(step) == trace[step] for trace, seen in zip(traces, before, strict=True)]
        assert all(early) if step in wires else not all(early), step


def in_suite(row, modulus, column, name):
    """Of the moduli of at most 256 bits every tenth for each design, each modulus for a tenth of the designs; all of
    ENOUGH for designs that serve few."""
    of_its_form = modulus.name in ENOUGH and name in OF_A_FORM
    return modulus.value.bit_length() <= 256 and ((row + column) % 10 == 0 or of_its_form)


@pytest.mark.parametrize(
    ("name", "modulus"),
    [
        (pytest.param if in_suite(i, m, j, n) else long)(n, m.name)
        for i, m in enumerate(MODULI)
        for j, n in enumerate(MULTIPLIERS)
    ],
)
def test_algorithm_for_every_named_modulus(name, modulus):
    p = parse_modulus(modulus).value
    fitted = fit(name, p)
    contract = fitted.contract("native")
    assert contract.closed == (contract.operand == contract.result)
    for a, b in operands(contract, 3) + fitted.corners()[::11]:
        *_, (_, result) = fitted.trace(a, b)
        x, y = contract.operand.decode(a), contract.operand.decode(b)
        z = contract.result.decode(result)
        assert z % p == contract.expect(x, y) and z < contract.result_bound * p


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_chain_of_dependent_products_in_the_algorithm(name):
    p = parse_modulus("BLS12-381-p").value
    fitted = fit(name, p)
    form = fitted.representation
    port = form.encode(p - 1)
    number = p - 1
    for _ in range(30):
        *_, (_, port) = fitted.trace(port, port)
        number = number * number * fitted.factor % p
        assert form.decode(port) % p == number


@pytest.mark.parametrize("name", [long(name) if name == "sq-rns" else name for name in MULTIPLIERS])
def test_composites_and_large_moduli(name):
    rnd = random.Random(11)
    for bits in (5, 33, 130, 521):
        p = rnd.getrandbits(bits) | 1 | 1 << (bits - 1)
        fitted = fit(name, p)
        assert fitted.multiply(p - 1, p - 1) % p == fitted.contract("native").expect(p - 1, p - 1)


@pytest.mark.parametrize("name", ["sor-1m-n", "sor-1m-p", "sor-2m", "sor-nm"])
@pytest.mark.parametrize("bits", [2048, 4096])
def test_moduli_of_rsa_size(name, bits):
    p = random.Random(bits).getrandbits(bits) | 1 | 1 << (bits - 1)
    fitted = fit(name, p)
    assert fitted.multiply(p - 2, p - 1) % p == 2
    assert fitted.contract("native").closed


@pytest.mark.parametrize("name", NAMES)
def test_refusals_are_one_line_with_numbers(name):
    for p in (0, 1, 2, 10, 2**128 - 2, 2**256):
        with pytest.raises(UnsupportedError, match=f"got {re.escape(shortened(p))}$"):
            design(name).fit(p)
    with pytest.raises(UnsupportedError, match="no parameter 'nonsense'"):
        design(name).fit(97, nonsense=1)
    for key in design(name).settings:
        taken = "one of .*" if key.choices else {int: "a whole number.*", bool: "true or false"}[key.kind]
        with pytest.raises(UnsupportedError, match=f"^{key.name} takes {taken}, not 'x'$"):
            design(name).fit(97, **{key.name: "x"})


def test_a_base_that_cannot_close_the_loop_is_refused():
    with pytest.raises(UnsupportedError, match=r"sor-ring does not serve this 4000-bit modulus: .*\d+"):
        design("sor-ring").fit(2**4000 - 1)


def test_unknown_design():
    with pytest.raises(UnsupportedError, match="no design is called 'sor'; the nearest are sor-"):
        design("sor")
    assert design("SOR_1M_P").name == "sor-1m-p"


def test_schedule_checker_catches_planted_faults():
    good = (Step("a", "u", 0, 2), Step("b", "u", 2, 2, ("a",)))
    assert Schedule(good, 4).latency == 4
    with pytest.raises(ScheduleError, match="taken twice"):
        Schedule(good, 3)
    with pytest.raises(ScheduleError, match="ready in cycle 2"):
        Schedule((good[0], Step("b", "v", 1, 2, ("a",))), 4)
    with pytest.raises(ScheduleError, match="no step computes"):
        Schedule((Step("b", "v", 1, 2, ("x",)),), 4)
    with pytest.raises(ScheduleError, match="named twice"):
        Schedule((good[0], good[0]), 9)


def test_names_are_unique():
    assert len(set(NAMES)) == len(NAMES)
    assert all(a.name != b.name for a, b in itertools.combinations(DESIGNS, 2))
