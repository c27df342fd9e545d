# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Data sheet of an exponentiation engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modmill.cores.engine_files import health, sheet_head, waiting
from modmill.engines.machine.random_port import RANDOM_WORD
from modmill.engines.rsa.exponentiation import PUBLIC


def page(record: Mapping[str, Any]) -> str:
    """README.md of an engine, from its record."""
    setup, words, options = record["setup"], record["number_words"], record["options"]
    programs = "\n".join(
        f"| {p['command']} | {p['name']} | {p['exponent_bits']} | {p['passes']} | {p['digit_words']} | "
        f"{p['products']} | {p['instructions']} | {p['cycles']} |"
        for p in record["programs"]
    )
    rounds = record["rounds"]
    multiples = f" times 2^{rounds - 1}, then times each lower power of two down to 1" if rounds > 1 else ""
    loaded = (
        f"- {setup['modulus_words']} words of the modulus{multiples}, then\n"
        f"  {setup['key_words']} words for the multiplier's own stream, then\n"
        if setup["modulus_words"]
        else ""
    )
    cycles = record["cycles_per_instruction"]
    instructions = f"""powers are computed interleaved; an instruction of the program takes {cycles} cycles for
each of them."""
    title = f"Exponentiation engine: {record['design']}, {record['modulus_bits']}-bit moduli"
    return f"""{sheet_head(title, "engine", record, instructions)}
## Messages

`0`: the modulus and its constants. `modmill rsa setup DIR --modulus M` prints the words of this message for M.
{loaded}- {len(setup["numbers"])} numbers of {words} words: {", ".join(setup["numbers"]) or "none"}
  (one = 1, square = R^2 mod p with R = 1 / factor)

`1 + program`: powers
- two words: the number of passes of the loop, and the number of words of digits of one thread
- for each of the {options["threads"]} threads: the words of its digits, then its base; a word has
  {record["digits_in_a_word"]} digits of {record["digit_bits"]} bits, in order of use from the least significant bit on
- answer: {options["threads"]} powers of {words} words

| command | program | exponent bits | passes | words of digits | products | instructions | cycles |
|---|---|---|---|---|---|---|---|
{programs}

{_check(record)}{_blinded(record)}\
Digits of a window program are those of the exponent e in base 2^w, the highest first; digits of the ladder are the bits
of e xor 2 e. Shorter exponents need fewer passes and digits. `cycles`: from the last word of a job to the first word of
its powers, the same for all exponents and bases of a length.
{waiting(record)}`vectors.json` has messages with their answers.
"""


def _blinded(record: Mapping[str, Any]) -> str:
    """The paragraph on exponents that are blinded inside; empty without it."""
    options, secret = record["options"], record["programs"][0]
    if not (blind := options.get("random_blind")):
        return ""
    e, size, words = options.get("public_exponent", PUBLIC), secret["scalar_words"], -(-blind // RANDOM_WORD)
    return f"""Command 1 blinds its exponents d, of at most {secret["exponent_bits"]} bits: it computes powers by
d + r ({e} d - 1), r of {blind} bits from {words} words of the port for each thread. So d must be an inverse of {e}
modulo the order of the base, as that of an RSA key is; with another one the power is wrong. In place of passes and
words of digits its message has the words of digits that the engine makes, for {e.bit_length() + blind} bits more than d
has, and {size}; then for each thread {size} words of d, in place of digits, and the base.
{_blinded_messages(record, e, words)}{health(options["random_entropy"])}

"""


def _blinded_messages(record: Mapping[str, Any], e: int, words: int) -> str:
    """The paragraph on messages that are blinded inside; empty without it."""
    if not record["options"].get("blind_messages"):
        return ""
    size = record["modulus_bits"] - 1
    return f"""
It also blinds each base x, with a random odd u of {size} bits: it computes (x u^{e})^d u^-1, both powers at once, with
the same squares. u^-1 is u^(r' ({e} d - 1) - 1), r' odd and as long as r. For these there are {words} more words of the
port, and those of u. So a modulus must have {size + 1} bits, and d must be an inverse of {e} modulo the order of every
number, as that of an RSA key is.

"""


def _check(record: Mapping[str, Any]) -> str:
    """The paragraph on the check of a result; empty without one."""
    e = next((p["checked_by"] for p in record["programs"] if "checked_by" in p), 0)
    if not e:
        return ""
    return f"""Command 1 checks its powers: before a power s of x leaves, s^{e} must be x. If it is not, `o_alarm` rises
and stays until the reset, and only words 0 leave. So exponents must be inverses of {e} modulo the order of the base, as
d mod (p - 1) and d + k (p - 1) of an RSA key are, and a base must be below the modulus. Command 2 is not checked.

"""
