# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Both writings of the rules of cells give what Verilator computes, for cells of random widths on random words.

The words are constants, and bits of unknown integers with numbers put in. A function without an expression is computed
from its bits.
"""

import json
import random

import pytest

from modmill.flow.simulate import Simulator, Widths
from modmill.proofs.arithmetic import word_rules
from modmill.proofs.arithmetic.certificate import head
from modmill.proofs.arithmetic.integers import Integers
from modmill.proofs.arithmetic.symbolic import Symbolic
from modmill.proofs.checker.cell_rules import Cells, output
from modmill.proofs.checker.recheck import Book
from modmill.proofs.checker.replay import Circuit
from modmill.proofs.netlist import Netlist

SIZE = 40
BINARY = ("+", "-", "*", "&", "|", "^", "~^", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "<<", ">>", "<<<", ">>>")
UNARY = ("-", "~", "!", "&", "|", "^")
OPERANDS = ("i_a", "i_b")


def operand(rnd, most=14):
    """A slice of a port, perhaps with a sign, or with constant bits."""
    size = rnd.randint(1, most)
    low = rnd.randint(0, SIZE - size)
    part = f"{rnd.choice(OPERANDS)}[{low + size - 1}:{low}]"
    shape = rnd.choice(["{}", "{}", "$signed({})", "{{2'd1, {}}}", "{{{}, 3'd5}}"])
    return shape.format(part)


def cells(rnd):
    """Outputs of random widths: (width, expression), and cases with a choice of several words."""
    for operator in BINARY:
        for _ in range(7):
            right = operand(rnd, 3 if operator in ("<<", ">>", "<<<", ">>>") else 14)
            yield rnd.randint(1, 20), f"{operand(rnd)} {operator} {right}"
    for operator in UNARY:
        yield from ((rnd.randint(1, 20), f"{operator}({operand(rnd)})") for _ in range(4))
    for operator in "+-*":  # the sign of the first operand reaches known bits of the second, whose higher ones are not
        yield 18, f"$signed(i_a[7:2]) {operator} $signed(i_b[30:15])"
    for _ in range(8):
        yield rnd.randint(1, 20), f"{operand(rnd, 1)} ? {operand(rnd)} : {operand(rnd)}"
        yield 9, f"{{9{{{operand(rnd, 1)}}}}} {rnd.choice('&|^')} {operand(rnd)}"
        yield 9, f"({operand(rnd)}) + ({operand(rnd)}) * ({operand(rnd)}) - ({operand(rnd)})"
    for _ in range(4):  # a carry into a sum
        yield rnd.randint(2, 16), f"{{{operand(rnd)}, 1'd1}} + {{{operand(rnd)}, |{operand(rnd)}}}"
        yield rnd.randint(2, 16), f"{{{operand(rnd)}, |{operand(rnd)}}} + {{{operand(rnd)}, 1'd1}}"


def verilog(seed):
    """A core whose result has the outputs of all cells, and the width of each."""
    rnd = random.Random(seed)
    made, lines = list(cells(rnd)), []
    for k in range(6):  # full adders, some with constants
        size = rnd.randint(4, 12)
        x, y, z = (f"{rnd.choice(OPERANDS)}[{(low := rnd.randint(0, SIZE - size)) + size - 1}:{low}]" for _ in range(3))
        z = f"{{{z}, 3'd5}}" if k % 2 else z
        lines.append(f"  wire [{size - 1}:0] x{k} = {x}, w{k} = {y}, z{k} = {z};")
        made.append((size, f"(x{k} & w{k}) | (x{k} & z{k}) | (w{k} & z{k})"))
        made.append((size, f"x{k} ^ w{k} ^ z{k}"))
    for k in range(6):  # one of several words
        size = rnd.randint(1, 12)
        lines.append(f"  reg [{size - 1}:0] c{k};\n  always @* case ({operand(rnd, 2).replace('$signed', '')})")
        lines += [f"    {n}: c{k} = {operand(rnd)};" for n in range(3)]
        lines.append(f"    default: c{k} = {operand(rnd)};\n  endcase")
        made.append((size, f"c{k}"))
    widths = [width for width, _ in made]
    lines += [f"  wire [{width - 1}:0] y{n} = {text};" for n, (width, text) in enumerate(made)]
    joined = ", ".join(f"y{n}" for n in reversed(range(len(made))))
    return (
        f"module core(input clk, input rst, input i_valid, output i_ready, input [{SIZE - 1}:0] i_a,\n"
        f"  input [{SIZE - 1}:0] i_b, output o_valid, input o_ready, output [{sum(widths) - 1}:0] o_r);\n"
        "  reg full;\n"
        + "\n".join(lines)
        + f"\n  reg [{sum(widths) - 1}:0] r;\n  assign o_r = r, o_valid = full, i_ready = ~full | o_ready;\n"
        f"  wire [{sum(widths) - 1}:0] y = {{{joined}}};\n"
        "  always @(posedge clk) begin\n    if (i_ready) full <= i_valid;\n    if (i_ready) r <= y;\n"
        "    if (rst) full <= 0;\n  end\nendmodule\n",
        widths,
    )


TEXT, WIDTHS = verilog(3)


@pytest.fixture(scope="module")
def wanted():
    """Pairs of words and the bits that Verilator gives."""
    rnd = random.Random(1)
    ends = (0, 1, (1 << SIZE) - 1, 1 << SIZE - 1)
    pairs = [(a, b) for a in ends for b in ends[:2]] + [
        (rnd.getrandbits(SIZE), rnd.getrandbits(SIZE)) for _ in range(6)
    ]
    simulator = Simulator(TEXT, top="core", widths=Widths(SIZE, SIZE, sum(WIDTHS)))
    run = simulator.run([a for a, _ in pairs], [b for _, b in pairs])
    assert len(run.results) == len(pairs)
    return list(zip(pairs, run.results, strict=True))


@pytest.fixture(scope="module")
def net():
    """The cells, every other one with operands as narrow as they can be, which it extends itself."""
    found = Netlist.read(TEXT, "core")
    extending = [c for c in found.cells.values() if {"A_SIGNED", "Y_WIDTH"} <= c["parameters"].keys()]
    for cell in extending[::2]:
        ports = [port for port in "AB" if f"{port}_SIGNED" in cell["parameters"]]
        signed = all(int(cell["parameters"][f"{port}_SIGNED"], 2) for port in ports)
        for port in ports if "sh" not in cell["type"] else ():
            bits = cell["connections"][port]
            while len(bits) > 1 and bits[-1] == (bits[-2] if signed else "0"):
                bits = bits[:-1]
            cell["connections"][port] = bits
            cell["parameters"][f"{port}_WIDTH"] = f"{len(bits):b}"
    return found


def of_bits(function, bit):
    """The word of a function that has no expression, from its bits."""

    def word(bits):
        return sum(bit(b) << k for k, b in enumerate(bits))

    match function:
        case ("all" | "majority" as kind, keys):
            least = {"all": lambda n: n, "majority": lambda n: n // 2 + 1}[kind]
            return sum((sum(map(bit, bits)) >= least(len(bits))) << k for k, (_, bits) in enumerate(keys))
        case ("differ", a, b):
            return word(a) != word(b)
        case ("parity", bits):
            return word(bits).bit_count() & 1
        case (shift, a, amount):
            sign = word(a[-1:]) if shift == "$sshr" else 0
            filled = word(a) - (sign << len(a))
            return word(a) << word(amount) if shift in ("$shl", "$sshl") else filled >> word(amount)
    raise AssertionError(function)


class Prover:
    """The rules of the prover. ``number``: of the bits at an output."""

    def __init__(self, net, ports):
        self.run = Symbolic(net, Integers())
        make = self.run.words.integers
        self.run.ports |= ports(lambda n: tuple((make.atom(n, 0, (1 << SIZE) - 1), k) for k in range(SIZE)))
        self.run.settle()

    def bits(self, nets):
        return self.run.bits(nets)

    def values(self, given):
        atoms, known = self.run.words.integers.atoms, {}
        functions = {next(iter(x.terms))[0]: of for (_, of), x in self.run.words._functions.items()}

        def atom(n):
            if n not in known:
                if atoms[n].inner is not None:
                    known[n] = number(atoms[n].inner) >> atoms[n].shift
                else:
                    known[n] = of_bits(functions[n], bit) & atoms[n].high if n in functions else given[atoms[n].name]
            return known[n]

        def number(x):
            total = 0
            for m, c in x.terms.items():
                for a in m:
                    c *= atom(a)
                total += c
            return total

        def bit(b):
            return b if isinstance(b, int) else number(b[0]) >> b[1] & 1

        return bit


class Oracle(Book):
    """A book whose floors are atoms of their own: what the lines of a certificate would say is not needed."""

    def __init__(self):
        super().__init__(iter(()))
        self.atoms = []

    def new(self, what, low, high):
        number = len(self.atoms)
        self.atoms.append(what)
        self.low[number], self.high[number] = low, high
        return {(number,): 1}

    def atom(self, width):
        return self.new(None, 0, (1 << width) - 1)

    def floor(self, word, bits):
        if bits and (word, bits) not in self.floors:
            self.floors[word, bits] = self.id(self.new((word, bits), -1 << 99, 1 << 99))
        return self.polys[self.floors[word, bits]] if bits else self.polys[word]

    def choice(self, kind, poly, bits):
        return kind == "modulo" and bits % 2


class Checker:
    """The rules of the checker."""

    def __init__(self, net, ports):
        _, _, _, _, order, adders, control = json.loads(head(net, {}))
        circuit, self.book = Circuit(net.module, order, adders, control), Oracle()
        self.cells = Cells(self.book)
        self.names, values = {}, {"0": 0, "1": 1, "x": None}

        def unknown(name):
            number = self.book.atom(SIZE)
            self.names[next(iter(number))[0]] = name
            return self.cells.bits(number, SIZE)

        for name, bits in ports(unknown).items():
            values |= dict(zip(circuit.ports[name], bits, strict=True))
        self.values_of = values
        for name, type_, inputs, out in circuit.cells:
            pins = {p: tuple(values.get(b) for b in bits) for p, bits in inputs.items()}
            values |= dict(zip(out, output(self.cells, type_, circuit.numbers[name], pins, len(out)), strict=True))

    def bits(self, nets):
        return tuple(self.values_of.get(b) for b in nets)

    def values(self, given):
        book, known = self.book, {}
        functions = {next(iter(book.polys[bits[0][0]]))[0]: (w, of) for (w, of), bits in self.cells._functions.items()}

        def atom(n):
            if n not in known:
                if book.atoms[n] is not None:
                    word, bits = book.atoms[n]
                    known[n] = number(book.polys[word]) >> bits
                elif n in self.names:
                    known[n] = given[self.names[n]]
                else:
                    width, of = functions[n]
                    known[n] = of_bits(of, bit) & (1 << width) - 1
            return known[n]

        def number(poly):
            total = 0
            for m, c in poly.items():
                for a in m:
                    c *= atom(a)
                total += c
            return total

        def bit(b):
            return b if isinstance(b, int) else number(book.polys[b[0]]) >> b[1] & 1

        return bit


def differences(net, wanted, writing):
    """The outputs with a bit that is another one than Verilator's, and the number of bits that were compared."""
    drivers = net.module["netnames"]["y"]["bits"]
    control = {"rst": (0,), "i_valid": (1,), "o_ready": (1,)}
    found, compared = set(), 0

    def compare(run, given, result):
        nonlocal compared
        bit = run.values(given)
        for k, b in enumerate(run.bits(drivers)):
            if b is not None:
                compared += 1
                if bit(b) != result >> k & 1:
                    found.add(k)

    for (a, b), result in wanted[::3]:
        words = {n: tuple(x >> k & 1 for k in range(SIZE)) for n, x in zip(OPERANDS, (a, b), strict=True)}
        compare(writing(net, lambda _: control | words), {}, result)  # noqa: B023
    for half in (False, True):  # in one of both all bits are of expressions, in the other some are unknown

        def ports(unknown):
            words = {n: unknown(n) for n in OPERANDS}
            if half:  # noqa: B023
                words = {n: (*bits[:23], *(None,) * (SIZE - 23)) for n, bits in words.items()}
            return control | words

        run = writing(net, ports)
        for (a, b), result in wanted:
            compare(run, dict(zip(OPERANDS, (a, b), strict=True)), result)
    return found, compared


@pytest.mark.parametrize("writing", [Prover, Checker])
def test_rules_give_what_verilator_computes(net, wanted, writing):
    types = {cell["type"] for cell in net.cells.values()}
    rules = word_rules.RULES.keys() - {"$xor3", "$majority", "$eqx", "$nex", "$pos", "$reduce_xnor"}
    assert rules - types <= {"$sshl", "$reduce_bool", "$xnor"}, rules - types
    found, compared = differences(net, wanted, writing)
    assert found == set()
    assert compared > 1.2 * len(wanted) * sum(WIDTHS)


def without_sign(rule):
    """Planted: what comes below an unknown bit has no sign."""

    def arithmetic(cells, type_, signed, words, width):
        return rule(cells, type_, signed and not any(None in bits for bits in words), words, width)

    return arithmetic


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("arithmetic", without_sign),
        ("compare", lambda rule: lambda cells, type_, _, a, b: rule(cells, type_, False, a, b)),
        ("choose", lambda rule: lambda cells, select, one, zero, place="": rule(cells, select, zero, one, place)),
        ("_adder_words", lambda rule: lambda cells, free, one: rule(cells, free, not one)),
        ("any", lambda rule: lambda cells, bits: rule(cells, bits[1:])),
    ],
)  # fmt: skip
def test_a_wrong_rule_of_the_checker_is_found(net, wanted, monkeypatch, name, fault):
    monkeypatch.setattr(Cells, name, fault(getattr(Cells, name)))
    assert differences(net, wanted[::4], Checker)[0]


def test_a_lost_sign_in_the_prover_is_found(net, wanted, monkeypatch):
    """Planted: an operand that ends below the first unknown bit of the other one is not extended."""
    rule = word_rules.Words._arithmetic

    def arithmetic(words, cell, operands, combine, width):
        unknown = any(None in bits for bits in operands)
        return rule(words, cell if not unknown else unsigned(cell), operands, combine, width)

    def unsigned(cell):
        made = word_rules.WordCell(cell.name, cell.type, cell.inputs, cell.output, cell.parameters, cell.evaluate)
        made.number |= dict.fromkeys(("A_SIGNED", "B_SIGNED"), 0)
        return made

    monkeypatch.setattr(word_rules.Words, "_arithmetic", arithmetic)
    assert differences(net, wanted[4:6], Prover)[0]
