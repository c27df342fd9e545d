# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The fully parallel multiplier: all operands of small moduli, every bound reached or kept, sums, stages, refusals."""

import random
from dataclasses import replace

import pytest
from bench import judge, judge_all, operands, run

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.designs.parallel import shape
from modmill.designs.parallel.network import Kind, Network, Piece, clipped, computed, number
from modmill.designs.parallel.pipeline import Pipeline, longest, most_stages, period
from modmill.designs.parallel.shape import Options, places, shaped
from modmill.designs.parallel.sums import BLOCK, RIPPLE, added, paired, prefixes, reduced
from modmill.numbers.moduli import parse_modulus

DENSE = 0xFEDCBA9876543210FEDCBA9876543211AAAAAAAAAAAAAAAABCDEF987654321AB


def fit(p, **settings):
    return design("parallel").fit(p, **settings)


def values(net, *operands):
    """The values of all words of a network."""
    words = [*operands, *[0] * (len(net.widths) - len(operands))]
    for word, value in net.constants.items():
        words[word] = value
    for operation in net.operations:
        for word, value in zip(operation.words, computed(operation, words), strict=True):
            words[word] = value
    return words


@pytest.mark.parametrize("fold", ["tables", "shifts"])
@pytest.mark.parametrize(("p", "digit"), [(3, 2), (9, 2), (13, 17)])
def test_all_operands_in_the_machine(p, digit, fold):
    fitted = fit(p, digit=digit, fold=fold)
    judge_all(fitted, step=1 + fitted.contract("native").largest_operand ** 2 // 200)


@pytest.mark.parametrize("fold", ["tables", "shifts"])
@pytest.mark.parametrize("p", [3, 5, 29])
def test_all_operands_in_the_algorithm(p, fold):
    for digit in (2, 3):
        fitted = fit(p, digit=digit, fold=fold, index=2)
        whole = fitted._canonical
        for x in range(p):
            for y in range(p):
                assert whole.multiply(x, y) == x * y % p
        top = 1 << fitted.shape.width
        for x in range(0, top, 5):
            for y in range(top - 1, -1, -7):
                v = fitted.multiply(x, y)
                assert v % p == x * y % p and v < fitted.shape.bound <= top


@pytest.mark.parametrize("fold", ["auto", "tables", "shifts"])
@pytest.mark.parametrize("p", [2**31 - 1, 2**61 - 1, 2**64 - 2**32 + 1, 2**89 - 3, 0xC0FFEE_1234567_89ABCDEF1, 3**40])
def test_every_sum_is_congruent_and_below_its_bound(p, fold):
    """T and the sum after each fold, for corner operands, in both forms."""
    fitted = fit(p, fold=fold, digit=9, index=3)
    for one in (fitted, fitted._canonical):
        net = one.shape.network
        for a, b in one.corners()[::2]:
            words = values(net, a, b)
            for total in one.shape.sums:
                assert all(piece.start >= 0 and piece.start + piece.width <= net.widths[piece.word]
                           for row in total.rows for piece in row)  # fmt: skip
                v = sum(number(row, words) for row in total.rows)
                assert v % p == a * b % p and v < total.bound


def test_a_bound_that_is_too_low_is_found():
    """Planted: a bound of half a fold's sum drops its highest bits, and results are wrong for some corner."""
    p, options = 2**61 - 1, Options(9, 4, "tables", canonical=False)
    made = shaped(p, 70, options)
    net = Network([70, 70], [0, 0])
    first = shape.product(net, 70, p, options.w)
    after, _ = shape.fold(net, replace(first, bound=first.bound >> 2), p, options)
    ends = [(1 << 70) - 1, (1 << 69) + 1, (1 << 70) - 2]
    words = [values(net, a, b) for a in ends for b in ends]
    wrong = [w for w in words if sum(number(row, w) for row in after.rows) % p != w[0] * w[1] % p]
    assert wrong and made.bound > 1 << 61


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_random_rows(seed):
    rnd = random.Random(seed)
    widths = [rnd.randint(1, 40) for _ in range(rnd.randint(3, 14))]
    net = Network(list(widths), [rnd.choice((0, 0, 17, 60)) for _ in widths])
    rows = [(Piece(k, 0, width, rnd.randint(0, 20), rnd.random() < 0.3),) for k, width in enumerate(widths)]
    top = rnd.randint(20, 70)
    two = reduced(net, paired(net, rows), top)
    whole = added(net, Kind.RESULT, two, top)
    for _ in range(20):
        words = values(net, *(rnd.choice((0, (1 << w) - 1, rnd.getrandbits(w))) for w in widths))
        expected = sum(number(row, words) for row in rows) % (1 << top)
        assert sum(number(row, words) for row in two) % (1 << top) == expected
        assert words[whole.word] == expected


@pytest.mark.parametrize("width", [RIPPLE, RIPPLE + 1, 2 * BLOCK, 5 * BLOCK + 1])
def test_the_last_sum_carries_through_all_blocks(width):
    net = Network([width, width], [0, 0])
    out = added(net, Kind.RESULT, [(Piece(0, 0, width, 0),), (Piece(1, 0, width, 0),)], width)
    top = (1 << width) - 1
    for a, b in [(top, 1), (top, 0), (top, top), (1 << width - 1, 1 << width - 1), (top ^ 1 << BLOCK, 1), (0, 0)]:
        assert values(net, a, b)[out.word] == (a + b) & top


@pytest.mark.parametrize(("bits", "width"), [(2 * BLOCK, 2 * BLOCK + 1), (3, 3 * BLOCK)])
def test_a_block_in_which_no_row_has_a_bit_takes_the_carry(bits, width):
    net = Network([bits, bits], [0, 0])
    out = added(net, Kind.RESULT, [(Piece(0, 0, bits, 0),), (Piece(1, 0, bits, 0),)], width)
    assert all(any(operation.reads) for operation in net.operations)
    ones = (1 << bits) - 1
    for a, b in [(ones, ones), (ones, 1), (ones, 0), (0, 0)]:
        assert values(net, a, b)[out.word] == a + b


def test_prefixes_take_few_levels():
    depth = {}

    def add(one, other):
        made = one + other
        depth[made] = 1 + max(depth.get(one, 0), depth.get(other, 0))
        return made

    for n in (1, 2, 3, 5, 8, 16, 17):
        depth.clear()
        letters = [chr(97 + k) for k in range(n)]
        assert prefixes(letters, add) == ["".join(letters[: k + 1]) for k in range(n)]
        assert max(depth.values(), default=0) == (n - 1).bit_length()


def test_pieces():
    piece = Piece(0, 3, 5, 10)
    assert piece.clipped(12, 14) == Piece(0, 5, 2, 12) and piece.clipped(15, 20) is None
    assert clipped((piece,), 0, 11) == (Piece(0, 3, 1, 10),)
    assert number((piece.moved(-10, inverted=True),), [0b10101000]) == 0b01010
    net = Network([], [])
    assert number(net.constant(0b1011001), [0b1011001]) == 0b1011001 and net.constant(0) == ()


def test_special_moduli_take_shifts_and_others_tables():
    assert places(255, 2**255 - 19) == ((4 - 255, 1), (2 - 255, 1), (-255, -1))
    for name, way in [("2^255-19", "shifts"), ("secp256k1", "shifts"), ("P-256", "shifts"), (hex(DENSE), "tables")]:
        fitted = fit(parse_modulus(name).value)
        assert fitted.shape.ways == (way,) and fitted.cost.dsp == 136
        assert (fitted.cost.memory_bits > 0) == (way == "tables")


@pytest.mark.parametrize("p", [2**61 - 1, 2**107 - 2**60 + 9])
def test_stages_trade_the_period_for_cycles(p):
    """Every number of stages; each operation stands in a stage that holds its delay, after all that it reads."""
    net = fit(p).shape.network
    most = most_stages(net)
    periods = [period(net, n) for n in range(1, most + 1)]
    assert periods[0] <= max(net.times) and periods[-1] == longest(net) and periods == sorted(periods, reverse=True)
    for n in range(1, most + 1):
        fitted = fit(p, stages=n)
        line = Pipeline(net, periods[n - 1])
        assert fitted.schedule.latency == line.depth <= n and fitted.schedule.interval == 1
        for operation, stage in zip(net.operations, line.stages, strict=True):
            assert all(line.made.get(piece.word, 0) <= stage for row in operation.reads for piece in row)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("fold", ["tables", "shifts"])
def test_machines_of_few_stages(stages, fold):
    fitted = fit(2**40 - 87, stages=stages, fold=fold)
    judge(fitted, operands(fitted.contract("native"), 6) + fitted.corners()[::9])
    whole = fitted.contract("plain")
    pairs = operands(whole, 6)
    for (a, b), (r, _, latency) in zip(pairs, run(fitted.core("plain"), pairs), strict=True):
        assert r == a * b % fitted.p and latency == whole.timing.latency


def test_results_can_be_operands_and_every_port_value_is_one():
    for p in (3, 97, 2**61 - 1, 2**255 - 19, DENSE):
        contract = fit(p).contract("native")
        assert contract.closed and contract.largest_operand == (1 << contract.operand.width) - 1
        assert fit(p).contract("plain").result_bound == 1


@pytest.mark.parametrize(
    ("p", "settings", "why"),
    [
        (2**641 + 1, {}, "the modulus must have at most 640 bits, this one has 642"),
        (2**255 - 19, {"digit": 6}, "digit takes 7 to 17 for this 255-bit modulus, not 6: at most 40 digits"),
        (
            2**255 - 19,
            {"stages": 60},
            "stages takes 0 or 1 to [0-9]+ for this 255-bit modulus, not 60: at most as many",
        ),
        (97, {"fold": "sums"}, "fold takes one of auto, tables, shifts, not 'sums'"),
    ],
)
def test_refusals(p, settings, why):
    with pytest.raises(UnsupportedError, match=why):
        fit(p, **settings)
