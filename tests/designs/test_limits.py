# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Limits of every whole number that can be set: accepted at least and at most, refused one beyond, with the number."""

import pytest

from modmill.contract import UnsupportedError
from modmill.cores.multiplier.build import build
from modmill.design import SIZE_MAX, Setting
from modmill.designs import DESIGNS, design
from modmill.numbers.moduli import parse_modulus

M61, P256 = 2**61 - 1, parse_modulus("P-256").value
FITS = {
    "solinas": (1 << 127) - 1,
    "channel-multiply": M61,
    "channel-reduce": M61,
    "pseudo-mersenne": 2**255 - 19,
    "karatsuba": 2**255 - 19,
    "karatsuba-two-level": 2**255 - 19,
}
"""Moduli that these designs take; the others take P-256."""
WITH = {
    **{(name, "n"): {"w": 34} for name in ("sq-rns", "dq-rns", "shenoy-kumaresan")},
    ("kbe", "n"): {"w": 34}, ("hbe", "n"): {"w": 34, "columns": 2}, ("kbe", "rowers"): {"w": 34},
    ("hbe", "rowers"): {"w": 34}, ("solinas", "interval"): {"rows": 2},
    ("mm-pa-n", "channels"): {"n": 17}, ("mm-pa-p", "channels"): {"n": 17}, ("mm-spa", "channels"): {"n": 17},
    **{
        (f"radix64k-{kind}", name): {"redundant": False}
        for kind in ("mul", "ram", "table") for name in ("tile", "chain")
    },
}  # fmt: skip
"""Settings without which the largest value has no room."""
NUMBERS = [(d, s) for d in DESIGNS for s in d.settings if s.kind is int and not s.choices]


def named(case):
    return f"{case.name}" if isinstance(case, Setting) else case.name


def accepted(chosen, p, settings):
    try:
        return chosen.fit(p, **settings).factor > 0
    except UnsupportedError:
        return False


@pytest.mark.parametrize(("chosen", "setting"), NUMBERS, ids=named)
def test_limits_are_accepted_and_one_beyond_is_refused(chosen, setting):
    p = FITS.get(chosen.name, P256)
    others = WITH.get((chosen.name, setting.name), {})
    least, most = chosen.range(setting.name, p, **others)
    assert setting.least is not None and setting.most is not None and setting.least <= least <= most <= setting.most
    last = chosen.fit(p, **others, **{setting.name: most})
    assert last.settings and last.factor and last.size <= 100 * SIZE_MAX
    assert any(accepted(chosen, q, others | {setting.name: least}) for q in (p, M61, 101))
    beyond = {most: most + 1, setting.most: setting.most + 1, setting.least: setting.least - 1}
    if least > setting.least + 1:
        beyond[least] = least - 1
    for limit, value in beyond.items():
        with pytest.raises(UnsupportedError, match=rf"^{setting.name} takes .*\b{limit}\b.*, not {value}\b"):
            chosen.fit(p, **others, **{setting.name: value})


def test_every_whole_number_declares_both_limits_and_the_default_lies_within():
    assert NUMBERS and all(s.least <= s.default <= s.most for _, s in NUMBERS)
    assert all(s.depends for _, s in NUMBERS if s.limits)


@pytest.mark.parametrize("bits", [2, 3, 5, 17, 64])
def test_the_default_serves_every_modulus_though_it_is_given(bits):
    for name in ("multistep", "tenca-koc", "mcivor", "iddmm", "wide", "orup", "montgomery-array"):
        chosen = design(name)
        assert chosen.fit((1 << bits) - 1, **{s.name: s.default for s in chosen.settings})


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("montgomery-array", {"digits": 100000}, "digits takes a whole number from 0 to 256, not 100000"),
        ("multistep", {"s": 100000}, "s takes a whole number from 1 to 8194, not 100000"),
        (
            "multistep",
            {"s": 257},
            "s takes 1 to 256 for this 256-bit modulus, not 257: there are as many steps as bits",
        ),
        ("montgomery-array", {"columns": 1000}, "columns takes a whole number from 0 to 255, not 1000"),
        (
            "montgomery-array",
            {"columns": 16},
            "columns takes 0 or 1 to 15 for this 256-bit modulus, not 16: fewer than",
        ),
        ("wide", {"levels": 99}, "levels takes a whole number from 0 to 9, not 99"),
        ("wide", {"levels": 5}, "levels takes 0 to 4 for this 256-bit modulus, not 5: halves are split as long as"),
        ("solinas", {"interval": 1000}, "interval takes 0 or 16 to [0-9]+ for this 256-bit modulus, not 1000"),
        (
            "sor-ring",
            {"taps": 10**5000},
            r"taps takes .* from 1 to 4, not 0x[0-9a-f]{16}\.\.\.[0-9a-f]{8} \(16,610 bits\)",
        ),
        (
            "kbe",
            {"n": 128, "w": 34, "rowers": 31},
            "rowers takes 0 or 32 to 128 for this 256-bit modulus, not 31: .* 4 of",
        ),
        ("hbe", {"n": 128, "w": 34, "columns": 3, "rowers": 30}, "rowers takes 0 or 33 to 128 .*, not 30: "),
    ],
    ids=range(11),
)
def test_what_the_issue_saw_is_refused_at_once(name, settings, why):
    with pytest.raises(UnsupportedError, match=why):
        design(name).fit(P256, **settings)


@pytest.mark.parametrize(
    ("name", "p", "settings", "hint"),
    [
        ("multistep", 2**4095 + 1, {"s": 1024}, r"lower s \(now 1024\)$"),
        ("tenca-koc", 2**4095 + 1, {"w": 512, "pes": 4096}, "lower w .* or lower pes"),
        ("iddmm", 2**4095 + 1, {"digit": 2}, "change digit"),
        ("wide", 2**4095 + 1, {}, "raise levels .* or lower multipliers"),
        ("montgomery-array", P256, {"lanes": 64, "digits": 256, "streams": 15}, "lower digits .* or lower lanes"),
        ("sor-nm", 2**1023 + 1, {}, "lower sets"),
        ("mm-pa-p", P256, {"channels": 172, "n": 17}, "lower channels"),
        ("channel-multiply", 2**4096 - 1, {}, "take a shorter modulus"),
    ],
)
def test_a_core_that_would_not_end_is_refused_with_its_size(name, p, settings, hint):
    fitted = design(name).fit(p, **settings)
    with pytest.raises(
        UnsupportedError, match=rf"predicted size of {fitted.size:,} parts .*at most {SIZE_MAX:,} are built: {hint}"
    ):
        build(name, p, fitted.forms[0], **settings)


@pytest.mark.parametrize(
    ("name", "p"),
    [("mm-pa-p", P256), ("mm-pa-p", 2**521 - 1), ("sor-nm", P256), ("wide", P256), ("montgomery-array", 2**4095 + 1),
     ("orup", 2**4095 + 1), ("multistep", 2**4095 + 1), ("tenca-koc", 2**4095 + 1), ("mcivor", 2**4095 + 1),
     ("iddmm", 2**4095 + 1), ("radix64k-mul", 2**4095 + 1), ("solinas", 2**4096 - 2**2048 - 1)],
)  # fmt: skip
def test_published_sizes_are_built(name, p):
    chosen = design(name)
    chosen.require_size(chosen.fit(p))
