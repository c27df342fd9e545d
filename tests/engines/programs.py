# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Instructions made at random, and what they must give: every task done at once, on Python's integers."""

import random

from modmill.engines.microcode.program import ENTRY, FIXED, PAIR, Instruction, OperandAddress, Program, Task


def replay(program, digits, inputs, p, multiply):
    """The results of a run, least ones, from instructions done one after another."""
    slots = {(False, slot): x for (slot, _), x in zip(program.inputs, inputs, strict=True)}
    slots |= {(True, slot): x for slot, x in program.shared}
    used = 0
    instructions = [*program.before, *program.loop * program.passes, *program.after]
    for instruction in instructions:
        digit = digits[used] if used < len(digits) else 0
        written = {}
        for task in instruction.tasks:
            a, b = slots[task.a.at(digit)], slots[task.b.at(digit)]
            if task.kind == "mul":
                x = multiply(a, b)
            else:
                x = a + b if task.kind == "add" else a - b + task.offset_multiple * p
                assert x >= 0
                if task.conditional_subtract and x >= task.conditional_subtract * p:
                    x -= task.conditional_subtract * p
            written[task.destination.at(digit)] = x
        slots |= written
        used += instruction.advance
    return tuple(slots[False, slot] % p for slot, _ in program.results)


def random_program(
    rnd,
    unit,
    p,
    offset_multiple,
    *,
    slots=8,
    instructions=(12, 6, 8),
    passes=3,
    window=2,
    conditional_subtracts=(),
    constants=2,
    kept=1,
    name="random",
):
    """Instructions that keep to the distances of a unit. The lower half of the slots holds products and inputs, the
    upper half
    sums of two of those, so that sums of sums never grow; slots 0 ... 3 are a table, pairs begin at even numbers."""
    half = slots // 2
    table = 1 << window
    assert half > table
    blocked = {}

    def place(now, low, high):
        choices = [s for s in range(low, high) if blocked.get(s, 0) <= now]
        return rnd.choice(choices) if choices else None

    def operand(now, high):
        pick = rnd.randrange(6)
        if pick == 0 and constants:
            if rnd.randrange(2):
                return OperandAddress(0, ENTRY, True, table)
            return OperandAddress(rnd.randrange(constants), shared=True)
        if pick == 1 and all(blocked.get(s, 0) <= now for s in range(table)):
            return OperandAddress(0, ENTRY, size=table)
        s = place(now, 0, high)
        if pick == 2 and s is not None and blocked.get(s ^ 1, 0) <= now and s ^ 1 < high:
            return OperandAddress(s, PAIR)
        return OperandAddress(s) if s is not None else OperandAddress(0, shared=True)

    def block(count, advances):
        nonlocal now
        out = []
        for _ in range(count):
            product, sums, written, read = None, [], set(), set()
            if rnd.randrange(5):
                a, b = operand(now, slots), operand(now, slots)
                read |= {n for x in (a, b) for its, n in x.all if not its}
                d = place(now, table, half)
                if d is not None:
                    paired = blocked.get(d ^ 1, 0) <= now and table <= d ^ 1 < half
                    pick = PAIR if paired and rnd.randrange(3) == 0 else FIXED
                    product = Task("mul", OperandAddress(d, pick), a, b)
                    written |= {n for _, n in product.destination.all}
                    for n in written:
                        blocked[n] = now + unit.product_distance
            for _ in range(rnd.randrange(unit.sums + 1)):
                a, b = operand(now, half), operand(now, half)
                d = place(now, half, slots)
                reads = {n for x in (a, b) for its, n in x.all if not its}
                if d is None or d in written or d in read or reads & written:
                    continue
                kind = rnd.choice(("add", "sub"))
                conditional_subtract = rnd.choice(conditional_subtracts) if conditional_subtracts else 0
                if offset_multiple > 1 and kind == "sub":
                    conditional_subtract = max(conditional_subtracts, default=0)
                sums.append(
                    Task(
                        kind,
                        OperandAddress(d),
                        a,
                        b,
                        offset_multiple=offset_multiple if kind == "sub" else 0,
                        conditional_subtract=conditional_subtract,
                    )
                )
                written.add(d)
                read |= reads
                blocked[d] = now + unit.sum_distance
            out.append(Instruction(product, tuple(sums), advance=len(out) >= count - advances))
            now += 1
        pause = max(blocked.values(), default=0) - now
        out += [Instruction()] * max(0, pause)
        now += max(0, pause)
        return tuple(out)

    now = 0
    before, loop, after = (block(count, advances) for count, advances in zip(instructions, (1, 2, 1), strict=True))
    results = tuple((s, kept) for s in (table, half, half + 1, 1))
    shared = tuple((k, rnd.randrange(p)) for k in range(max(constants, table)))
    inputs = tuple((s, f"x{s}") for s in range(slots))
    return Program(name, inputs, shared, before, loop, after, passes, results, window)


def random_run(rnd, program, p):
    """Digits and inputs, some of them at the edges."""
    edges = [0, 1, p - 1]
    digits = [rnd.randrange(1 << program.window) for _ in range(program.digits)]
    return digits, [rnd.choice(edges) if rnd.randrange(4) == 0 else rnd.randrange(p) for _ in program.inputs]


def rng(seed):
    return random.Random(seed)
