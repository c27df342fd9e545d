# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The slot machine interface: what an engine asks of a multiplier, checked on bounds before any RTL exists.

    load   slot[destination] = input[a]
    mul    slot[destination] = slot[a] * slot[b] * factor
    add    slot[destination] = slot[a] + slot[b]
    sub    slot[destination] = slot[a] - slot[b] + lift * p,  lift the least that keeps it from being negative
    store  output[destination] = slot[a]

Sums are not reduced, so bounds grow until the next product. ``bounded`` runs a programme on them: exact multiples of p,
through ``Contract.product``, and refuses what some operands could overflow. The bounds and lifts that it finds are what
the machine is built with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modmill.contract import Contract, Refusal
from modmill.numbers.shown import shortened

KINDS = ("mul", "add", "sub", "load", "store")


@dataclass(frozen=True)
class Operation:
    """One operation on numbered slots, written into ``destination``; ``b`` is 0 where the kind has one operand."""

    kind: str
    destination: int
    a: int
    b: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Refusal(f"an operation is one of {', '.join(KINDS)}, not {shortened(self.kind)}")
        if min(self.destination, self.a, self.b) < 0:
            raise Refusal(f"slots are numbered from 0: {self}")

    @property
    def reads(self) -> tuple[int, ...]:
        """Slots that it reads."""
        return {"load": (), "store": (self.a,)}.get(self.kind, (self.a, self.b))

    def __str__(self) -> str:
        sign = {"mul": "*", "add": "+", "sub": "-"}.get(self.kind)
        if sign:
            return f"slot {self.destination} = slot {self.a} {sign} slot {self.b}"
        if self.kind == "load":
            return f"slot {self.destination} = input {self.a}"
        return f"output {self.destination} = slot {self.a}"


@dataclass(frozen=True)
class Bounded:
    """An operation, the exclusive bound of its result as a multiple of p, and for ``sub`` the multiple of p it adds."""

    operation: Operation
    bound: Fraction
    lift: int = 0


def capacity(contract: Contract) -> Fraction:
    """Numbers below this multiple of p can be told apart in a slot."""
    return Fraction(contract.operand.end, contract.p)


def bounded(
    operations: Sequence[Operation], contract: Contract, inputs: Sequence[Fraction], slots: int
) -> tuple[Bounded, ...]:
    """Run a programme on bounds: inputs below ``inputs[k]`` * p, ``slots`` slots.

    Raises Refusal, with the operation's number and the bounds, for a product outside the contract, a sum that a slot
    cannot hold, an input or output beyond the operand bound (it could not be an operand again), a slot read before it
    is written, and numbers of slots or inputs that do not exist.
    """
    held: dict[int, Fraction] = {}
    out = []
    room = capacity(contract)
    for number, op in enumerate(operations, 1):
        place = f"operation {number}, {op}"
        if op.kind != "store" and op.destination >= slots:
            raise Refusal(f"{place}: there are {slots} slots")
        for slot in op.reads:
            if slot not in held:
                raise Refusal(f"{place}: slot {slot} is read before it is written")
        bounds = [held[slot] for slot in op.reads]
        lift = 0
        match op.kind:
            case "load":
                if op.a >= len(inputs):
                    raise Refusal(f"{place}: there are {len(inputs)} inputs")
                result = inputs[op.a]
            case "store":
                (result,) = bounds
            case "mul":
                try:
                    result = contract.product(*bounds)
                except Refusal:
                    sizes, limit = " and ".join(map(_times, bounds)), f"{_times(contract.product_bound)}^2"
                    raise Refusal(f"{place}: operands below {sizes} exceed the core's limit of {limit}") from None
            case "add":
                result = sum(bounds, Fraction(0))
            case _:
                lift = -(-bounds[1] // 1)
                result = bounds[0] + lift
        if op.kind in ("load", "store") and result > contract.operand_bound:
            limit = _times(contract.operand_bound)
            raise Refusal(f"{place}: below {_times(result)}, but operands must be below {limit}")
        if result > room:
            raise Refusal(f"{place}: the result is below {_times(result)}, a slot holds numbers below {_times(room)}")
        if op.kind != "store":
            held[op.destination] = result
        out.append(Bounded(op, result, lift))
    return tuple(out)


def _times(bound: Fraction) -> str:
    """A multiple of p for a message: exact where that is short."""
    return f"{bound} p" if bound.denominator < 10**6 else f"{float(bound):.9g} p"


def run(
    programme: Sequence[Bounded], p: int, inputs: Sequence[int], multiply: Callable[[int, int], int]
) -> Iterator[int]:
    """The result of every operation, in order, as an integer; ``multiply`` is the unit's bit-exact algorithm."""
    slots: dict[int, int] = {}
    for step in programme:
        op = step.operation
        a, b = [*(slots[slot] for slot in op.reads), 0, 0][:2]
        match op.kind:
            case "load":
                result = inputs[op.a]
            case "mul":
                result = multiply(a, b)
            case "add":
                result = a + b
            case "sub":
                result = a - b + step.lift * p
            case _:
                result = a
        if op.kind != "store":
            slots[op.destination] = result
        yield result
