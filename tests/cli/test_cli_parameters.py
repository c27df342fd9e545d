# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill parameters sor`."""

import json

import pytest
from command import modmill, refused


@pytest.mark.parametrize(("modulus", "T"), [("secp256k1", 72), ("2^255-19", 71)])
def test_the_printed_values_are_in_the_table(modulus, T):
    out = modmill("parameters", "sor", "-m", modulus).stdout
    assert f"    {T}    184  " in out and f"Printed: q = 8, Delta = 1/16, T = {T} = W - 184" in out
    (row,) = (line for line in out.splitlines() if "n + 2 log2 N" in line and line.startswith("    72"))
    assert ("printed" in row) == (T == 72)


def test_json():
    found = json.loads(modmill("parameters", "sor", "-m", "P-192", "--json").stdout)
    assert found["modulus_name"] == "P-192" and found["rule"] == {"q": 7, "delta": "1/16", "T": 72}
    assert found["one_word"]["negative"] and found["one_word"]["kappa_bits"] <= 66
    assert [row["T"] for row in found["T"]] == list(range(found["T"][0]["T"], found["T"][-1]["T"] + 1))
    assert found["chosen"]["T"] in {row["T"] for row in found["T"]}


def test_a_modulus_for_which_no_base_with_one_word_is_known():
    out = modmill("parameters", "sor", "-m", "BLS12-381-p").stdout
    assert "two words of 66 bits" in out and "the least sum that was found is" in out


def test_refusals():
    for given, why in (
        ("sets=2", "the parameters do not depend on sets; there are n, base, operand, T, q"),
        ("n=7", "n takes a whole number from 12 to 256, not 7"),
    ):
        assert why in refused("parameters", "sor", "-m", "97", "--set", given)
