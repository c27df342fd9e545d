# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Hostile values: one short line, whatever a user writes; and what `modmill designs` says of limits."""

import json

import pytest
from command import modmill, refused

from modmill.contract import UnsupportedError
from modmill.designs import design
from modmill.numbers.shown import MOST, name, shortened

LONG, DIGITS = "x" * 5000, "9" * 5000
BUILD = ("build", "wide", "-m", "P-256")


@pytest.mark.parametrize("words", [
    (*BUILD, "--set", f"levels={DIGITS}"), (*BUILD, "--set", f"levels={LONG}"), (*BUILD, "--set", f"dsp={LONG}"),
    (*BUILD, "--set", f"{LONG}=1"), (*BUILD, "--set", LONG), (*BUILD, "--set", f"{LONG}=1", "--set", f"{LONG}=2"),
    (*BUILD, "--set", f"levels=-{DIGITS[:4000]}"), (*BUILD, "--set", "levels=1\n2"), (*BUILD, "--set", "levels=١٢"),
    ("build", "wide", "-m", LONG), ("build", "wide", "-m", DIGITS), ("build", "wide", "-m", "1" + LONG),
    ("build", "wide", "-m", f"0x{'f' * 4999}"), ("build", "wide", "-m", f"2^{DIGITS[:3000]}"),
    ("build", "wide", "-m", "(" * 4000), ("build", "wide", "-m", f"{LONG[:4998]}\n"),
    ("build", LONG, "-m", "P-256"), (*BUILD, "--io", LONG), (*BUILD, "--top", LONG), (*BUILD, "-o", LONG),
    (*BUILD, "-o", "\n".join("/tmp/" + "y" * 300 for _ in range(9))), ("explain", LONG, "-m", "7"),
    ("check", LONG), ("check", f"/tmp/{LONG}"), ("load", LONG, "-m", "7"), ("race", LONG), (f"--{LONG}",), (LONG,),
    ("race", "7", "--target", LONG), ("ecc", "curve", LONG), ("ecc", "curve", f"weierstrass p={DIGITS}"),
    ("ecc", "curve", f"weierstrass p=7 {LONG}=1"), ("ecc", "curve", f"{LONG} p=7"),
    ("ecc", "build", "--curve", LONG), ("ecc", "build", "--curve", "P-256", "--multiplier", LONG),
    ("ecc", "build", "--curve", "P-256", "--operation", LONG), ("ecc", "check", LONG),
    ("rsa", "build", "--multiplier", LONG), ("rsa", "run", LONG, "--sign", LONG), ("rsa", "check", LONG),
], ids=lambda words: " ".join(word[:12] for word in words).encode("ascii", "replace").decode())  # fmt: skip
def test_a_refusal_is_one_short_line(words, tmp_path):
    line = refused(*words, cwd=tmp_path)
    assert len(line) < 400, line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 1 << 20000, "z" * 5000], ids=range(4))
@pytest.mark.parametrize(("chosen", "setting"), [("multistep", "s"), ("montgomery-array", "digits"), ("kbe", "w")])
def test_numbers_beyond_pythons_limit_of_digits_are_refused_in_words(chosen, setting, value):
    with pytest.raises(UnsupportedError) as caught:
        design(chosen).fit((1 << 61) - 1, **{setting: value})
    assert str(caught.value).startswith(f"{setting} takes a whole number from ") and len(str(caught.value)) < 200


@pytest.mark.parametrize("p", [-(10**5000), 1 << 20000, (1 << 20000) + 1, (1 << 8192) + 1], ids=range(4))
def test_moduli_beyond_all_limits_are_refused_in_words(p):
    for name_ in ("multistep", "montgomery-array", "sor-1m-n", "kbe"):
        with pytest.raises(UnsupportedError, match=r"^the modulus ") as caught:
            design(name_).fit(p)
        assert len(str(caught.value)) < 200
    core = design("montgomery-array").fit((1 << 61) - 1)
    with pytest.raises(UnsupportedError) as caught:
        core.at(p)
    assert len(str(caught.value)) < 200


def test_shortened_keeps_what_is_short_and_the_ends_of_what_is_long():
    assert shortened("a b") == "'a b'" and shortened("y" * MOST) == repr("y" * MOST)
    assert shortened("a" + "b" * 60 + "c") == f"'a{'b' * 29}...{'b' * 7}c' (62 characters)"
    assert shortened(-12) == "-12" and shortened(True) == "True" and shortened(2**128 - 1) == str(2**128 - 1)
    assert shortened(1 << 128) == "0x1000000000000000...00000000 (129 bits)"
    assert shortened([0] * 1000) == f"[{'0, ' * 9}0,...0, 0, 0]"
    assert name("p\nq") == "p?q" and name("r" * 121) == f"{'r' * 60}...{'r' * 50}"


def test_designs_shows_the_limits():
    found = {
        d["name"]: {s["name"]: s for s in d["parameters"]} for d in json.loads(modmill("designs", "--json").stdout)
    }
    for d in found:
        for setting in design(d).settings:
            shown = found[d][setting.name]
            assert (shown["least"], shown["most"], shown["depends"]) == (setting.least, setting.most, setting.depends)
    assert found["wide"]["levels"]["most"] == 9 and found["wide"]["subtract"]["most"] is None
    text = " ".join(modmill("designs", "wide").stdout.split())
    assert "(a whole number from 0 to 9: halves are split as long as" in text


def test_a_core_that_would_not_end_is_refused_by_build(tmp_path):
    line = refused("build", "multistep", "-m", "2^4095+1", "--set", "s=4096", "-o", tmp_path / "c")
    assert "predicted size of 524,416 parts" in line and "at most 8,000 are built: lower s" in line


def test_allow_pairing_says_what_it_means(tmp_path):
    """On a curve of 2 * 137 points over 251; BN254 needs the same word."""
    assert "embedding degree is 12" in refused("ecc", "build", "--curve", "BN254")
    curve = "weierstrass p=251 a=248 b=5 x=2 y=42 n=137 h=2"
    words = ("ecc", "build", "--curve", curve, "--operation", "multiply-base", "--threads", "1", "--teeth", "2")
    assert "points of order two (cofactor 2)" in refused(*words, "-o", tmp_path / "a")
    done = modmill(*words, "--allow-pairing", "-o", tmp_path / "b")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1 and "arithmetic only, no ECDH or ECDSA: its cofactor 2 is even" in done.stderr
    page = (tmp_path / "b" / "README.md").read_text()
    assert "no ECDH or ECDSA" in page and "must be multiples of the base point" in page
