# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""`modmill bases`: what it prints, and one clear line for everything that it refuses."""

import json
from fractions import Fraction

import pytest
from command import modmill


def bases(*arguments):
    return modmill("bases", *arguments)


def test_text_shows_the_pair_and_the_proof():
    run = bases("--modulus", "secp256k1", "--width", 17)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("secp256k1: 16 + 16 moduli 2^17 - u in rows of 1;")
    assert lines[1] == "    A  0 3 9 15 25 31 43 49 55 63 75 91 99 105 115 133"
    assert lines[3] == "    largest u 135, the smallest possible for 32 moduli"
    words = [line.split() for line in lines]
    assert ["t", "5"] in [w[:2] for w in words] and ["d", "16"] in [w[:2] for w in words]
    assert any(w[:1] == ["lambda"] and w[1].startswith("~") for w in words)
    table = lines[lines.index("Sufficient, all of them together:") + 1 :][:7]
    assert all(line.endswith(" holds") for line in table)
    assert "range of A        4 G g <= A / p" in table[4] and "~64.0273 < ~65081.9" in table[4]
    assert any(
        line.lstrip().startswith("n w > log2 p") and line.endswith("272 > ~256.000; not sufficient") for line in lines
    )
    assert "~0.516621 for A" in run.stdout
    assert all(len(line) <= 120 for line in lines)


def test_the_front_of_the_cheapest_reductions():
    run = bases("-m", "P-192", "-w", 24, "--objective", "reduction")
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "P-192: 9 + 9 moduli 2^24 - u, u odd, rows of 1" and all(len(line) <= 120 for line in lines)
    rows = [line.split() for line in lines[3:] if line.strip()[0].isdigit()]
    found = json.loads(bases("-m", "P-192", "-w", 24, "--objective", "reduction", "--json").stdout)
    assert [[f"{r['largest_u']:,}", str(r["digits"])] for r in found["front"]] == [row[:2] for row in rows]
    assert all(row[4:] == ["yes", "yes"] for row in rows)
    for name, choice in found["choices"].items():
        assert f"moduli={name} of kbe and hbe: largest u {choice['largest_u']:,}, " in run.stdout
        better = [r for r in found["front"] if r["largest_u"] <= choice["largest_u"]]
        assert better and better[-1]["digits"] <= choice["digits"], "a choice below the proved front"


def test_rows_of_two():
    run = bases("-m", "P-384", "-w", 24, "-c", 2)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[1].startswith("    A  0 5 | 11 17 | 23 39 |")
    assert "Kawamura" not in run.stdout  # the condition is for rows of one


def test_json_is_exact():
    run = bases("-m", "P-384", "-w", 24, "-c", 2, "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["channels"], found["largest_u"], found["largest_u_proved_minimal"]) == (18, 173, True)
    assert found["u_A"][:2] == [[0, 5], [11, 17]] and len(found["u_B"]) == 9
    p = int(found["modulus"], 16)
    A = 1
    for row in found["u_A"]:
        for u in row:
            A *= (1 << 24) - u
    gain, lam = Fraction(found["gain"]), Fraction(found["operand_bound"])
    assert lam**2 * p / A + gain == Fraction(found["result_bound"]) <= lam
    rows = {row["name"]: row for row in found["inequalities"]}
    assert Fraction(rows["range of A"]["left"]) == 4 * gain and Fraction(rows["range of A"]["right"]) == Fraction(A, p)
    assert found["holds"] and all(row["holds"] for row in rows.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-m", "P-384", "-w", 24, "-n", 16), ("16 + 16 moduli of 24 bits", "range of A", "~64.0002 > ~0.999939")),
        (("-m", "secp256k1", "-w", 14, "-n", 128), ("offset", "fails with ~8.", "> 1")),
        (("-m", "secp256k1", "-w", 17, "-c", 5, "-n", 16), ("multiple of 5", "got 16")),
        (("-m", "secp256k1", "-w", 17, "-n", 5000), ("1024", "got 5000")),
        (("-m", "secp256k1", "-w", 8), ("fewer than 66", "2^8 - u")),
        (("-m", "secp256k1", "-w", 1), ("--width",)),
        (("-m", "secp256k1", "-w", 17, "-c", 0), ("--columns",)),
        (("-m", "secp256k1"), ("--width",)),
        (("-w", 17), ("--modulus",)),
        (("-m", 16, "-w", 17), ("even",)),
        (("-m", "nosuch", "-w", 17), ("nosuch",)),
    ],
)
def test_refusals_take_one_line(arguments, words):
    run = bases(*arguments)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("modmill: ") and run.stderr.count("\n") == 1, run.stderr
    assert all(word in run.stderr for word in words), run.stderr
