# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Digests of emitted RTL. A change must be meant: `python tests/golden/test_golden.py` writes the file anew."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modmill.cores.multiplier.build import build
from modmill.design import parse_set
from modmill.designs import DESIGNS

FILE = Path(__file__).parent / "digests.json"
ONE_FORM = {"kbe-extension", "hbe-extension", "kbe-reduction", "hbe-reduction"}
"""These have no form with binary operands."""
WIDE = {  # these do not serve 97
    "pseudo-mersenne": "M127", "solinas": "M127", "karatsuba": "2^107-1", "karatsuba-solinas": "2^85-2^60-1",
    "karatsuba-montgomery": "2^80-65", "karatsuba-two-level": "2^61-1",
    "karatsuba-two-level-solinas": "2^64-2^32+1",
}  # fmt: skip


def small(name):
    """The modulus of the small core of a design; other tests take the same, and with it what Yosys printed."""
    return WIDE.get(name, "97")


CASES = [
    (d.name, modulus, "native" if d.name in ONE_FORM else io)
    for d in DESIGNS
    for modulus, io in ((small(d.name), "native"), ("0x1fffffffffffffff", "plain"))
]
MONTGOMERY = [
    (d.name, "0x1fffffffffffffff", "montgomery")
    for d in DESIGNS
    if d.name not in ONE_FORM and "montgomery" in d.fit(2**61 - 1).forms
]
FORMS = [
    ("radix64k-mul", "97", "native", "feedback=true", "r=4"),
    ("radix64k-ram", "0x1fffffffffffffff", "montgomery", "feedback=true"),
    ("radix64k-table", "0x1fffffffffffffff", "native", "feedback=true", "loadable=true"),
    ("radix64k-mul", "0x1fffffffffffffff", "montgomery", "redundant=false", "tile=17", "chain=20", "feedback=true"),
    ("wide", "0x1fffffffffffffff", "native", "pipelined=false"),
    ("karatsuba", "M127", "native", "above=9"),
    ("karatsuba-montgomery", "0x1fffffffffffffff", "montgomery", "loadable=true"),
    *(
        (name, "0x1fffffffffffffff", "native", f"moduli={kind}", "w=12")
        for name in ("kbe", "hbe")
        for kind in ("light", "short")
    ),
]
"""Forms of a design that its defaults do not have."""
FULL = [("sor-1m-p", "secp256k1", "native"), ("sor-ring", "secp256k1", "native"), ("sor-2m", "P-256", "plain")]


def key(case):
    return " ".join(case)


def digest(case):
    name, modulus, io, *sets = case
    return build(name, modulus, io, **parse_set(sets)).digest


@pytest.mark.parametrize("case", CASES + MONTGOMERY + FORMS + FULL, ids=key)
def test_digest(case):
    recorded = json.loads(FILE.read_text())
    assert digest(case) == recorded[key(case)], "the RTL has changed; if that is meant, write digests.json anew"


def test_file_lists_all_designs_and_no_others():
    assert json.loads(FILE.read_text()).keys() == {key(c) for c in CASES + MONTGOMERY + FORMS + FULL}


def test_digest_does_not_depend_on_hash_seed():
    code = "from modmill.cores.multiplier.build import build; print(build('sor-2m', '97', 'native').digest)"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**__import__("os").environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


if __name__ == "__main__":
    FILE.write_text(json.dumps({key(c): digest(c) for c in CASES + MONTGOMERY + FORMS + FULL}, indent=1) + "\n")
