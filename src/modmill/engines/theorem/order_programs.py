# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Operations modulo the order of a base point, and the bounds of any program."""

from __future__ import annotations

from modmill.contract import Contract, UnsupportedError
from modmill.engines.microcode.assembly import Assembled
from modmill.engines.microcode.bounds import program_bounds
from modmill.engines.microcode.hazards import check_hazards
from modmill.engines.microcode.program import DatapathSpec, Program
from modmill.engines.theorem.instructions import execute, inputs
from modmill.engines.theorem.normal_forms import Forms
from modmill.engines.theorem.parts import Part
from modmill.numbers.primes import is_prime


def bounds_part(name: str, program: Program, contract: Contract, unit: DatapathSpec) -> Part:
    """Slots hold what was written last, and no number overflows, for all inputs and digits."""
    theorem = "every slot is read after the write that it must see, and no number overflows, for all inputs and digits"
    try:
        check_hazards(program, unit)
        program_bounds(program, contract)
    except UnsupportedError as error:
        return Part(f"bounds of {name}", theorem, (str(error),))
    return Part(f"bounds of {name}", theorem)


def order_part(name: str, instructions: Assembled, contract: Contract) -> Part:
    """An operation modulo the order of a base point."""
    n = contract.p
    forms = Forms(n)
    k, z, r, d, s = (forms.atom(x) for x in "kzrds")
    formulas = {
        "signature": ("k^-1 (z + r d) mod n", lambda: (k ** (n - 2) * (z + r * d),)),
        "quotients": ("z s^-1, r s^-1 mod n", lambda: (z * s ** (n - 2), r * s ** (n - 2))),
        "multiply-add": ("r + k s mod n", lambda: (r + k * s,)),
    }
    if name not in formulas:
        return Part(
            f"result of {name}", "the operation is what its name says", (f"no formula of {name} is known here",)
        )
    text, wanted = formulas[name]
    remains = [] if is_prime(n) else ["the order is not prime"]
    program = instructions.program
    held = inputs(program, forms, contract.factor)
    try:
        if program.loop:
            raise ValueError("the program has a loop")
        execute((*program.before, *program.after), held, forms)
        results = [held[False, slot] for slot, _ in program.results]
        if results != [value * contract.factor for value in wanted()]:
            remains.append("the instructions compute another polynomial")
    except (ValueError, KeyError) as error:
        remains.append(f"{error}")
    return Part(f"result of {name}", f"the results are {text}, for all inputs", tuple(remains))
