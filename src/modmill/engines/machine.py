# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The exponentiation engine in hardware: a slot memory, a sequencer and any multiplier, behind two streams of words.

    words i -> number register -> slot memory -> a, b -> multiplier -> slot memory -> number register -> words o
               digits of the exponents ----^ addresses

Several exponentiations, the contexts, run in step: each step of the programme is done for all of them before the next,
so that a multiplier with several products in flight has work in every interval. The programme lies in a table; the
exponents' digits choose slots to read, and nothing else depends on them. A design with a slot machine of its own keeps
the numbers itself (numbered.py) instead of the slot memory.

Messages at ``i``, in words; numbers least significant word first, each filled up to whole words:

    SETUP                the modulus and the words of stream k, where it is loaded; then each number of ``commons``
    1 + programme        passes of the loop, number of digits; then for each context its digits, one a word, the first
                         used first, and its base
    at ``o``             for each context the power

All bases and powers are at the ports as the multiplier has them: binary, or residues in one vector. A binary power is
the least one: p is subtracted word by word as often as the programme's bounds ask for, always in the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, wiring
from amaranth.lib.wiring import In, Out

from modmill.contract import Binary, Contract, Refusal
from modmill.design import Multiplier
from modmill.engines.exponentiation import EITHER, ENTRY, Exponentiation
from modmill.rtl.memory import BITS_MAX, DEPTHS, WIDTH_MAX, BlockRam

if TYPE_CHECKING:
    from modmill.engines.numbered import NumberedSequencer

SETUP = 0
FETCH = 9
"""Cycles from the start of a step to its operands at the multiplier's port, at least; no two starts are closer. They
pass while the operands before wait to be accepted."""
WRITE = 1
"""Cycles from a result at the multiplier's port to the start of a step that reads it."""
READ = 5
"""Cycles from the address of a power to the power in its register."""
_COUNT_BITS = 16


def words_of(number: int, count: int, word: int) -> list[int]:
    """A number as ``count`` words, least significant first."""
    return [number >> (word * k) & ((1 << word) - 1) for k in range(count)]


@dataclass(frozen=True)
class Layout:
    """Slots, table and messages of a machine for some programmes.

    ``engines``: the programmes with their bounds, all for one contract (that of any modulus, if it is loaded).
    ``contexts``: exponentiations in step. ``word``: bits of a word of the streams.
    Raises Refusal when the programmes do not fit together.
    """

    engines: tuple[Exponentiation, ...]
    contexts: int
    word: int

    def __post_init__(self) -> None:
        if self.contexts < 1:
            raise Refusal(f"a machine has at least 1 context, not {self.contexts}")
        if not 8 <= self.word <= 64:
            raise Refusal(f"words have 8 to 64 bits, not {self.word}")
        places: dict[int, str] = {}
        for slot, number in chain.from_iterable(e.programme.loads for e in self.engines):
            if number != "base" and places.setdefault(slot, number) != number:
                raise Refusal(f"two programmes keep {places[slot]} and {number} in slot {slot}")
        for engine in self.engines:
            p = engine.programme
            steps = chain(p.before, p.loop, p.after)
            written = {*(s.destination for s in steps), *(slot for slot, number in p.loads if number == "base")}
            if lost := written & places.keys():
                raise Refusal(f"programme {p.name} writes slot {min(lost)}, in which a number must stay")

    @property
    def contract(self) -> Contract:
        """The multiplier's contract."""
        return self.engines[0].contract

    @property
    def commons(self) -> tuple[tuple[int, str], ...]:
        """(slot, number) of the numbers that stay: they are sent with the modulus."""
        found = chain.from_iterable(e.programme.loads for e in self.engines)
        return tuple(sorted({(slot, number) for slot, number in found if number != "base"}))

    @property
    def slots(self) -> int:
        """Slots of one context."""
        return max(e.programme.slots for e in self.engines)

    @property
    def depth(self) -> int:
        """Addresses of the slot memory."""
        return max(DEPTHS[0], 1 << (self.slots * self.contexts - 1).bit_length())

    def require_memory(self) -> None:
        """Raise Refusal when the slots of all contexts do not fit the sequencer's memory."""
        if self.depth > DEPTHS[-1]:
            raise Refusal(
                f"{self.slots} slots of {self.contexts} contexts do not fit {DEPTHS[-1]} addresses; take a smaller "
                f"window or fewer contexts"
            )

    def place(self, slot: int) -> int:
        """Address of a slot in the first context; the others follow."""
        return slot * self.contexts

    @property
    def binary(self) -> bool:
        """Whether numbers stand at the ports as themselves."""
        return isinstance(self.contract.operand, Binary)

    @property
    def number_words(self) -> int:
        """Words of a number."""
        return -(-self.contract.operand.width // self.word)

    @property
    def key_words(self) -> int:
        """Words of the stream i for one of stream k."""
        return -(-self.contract.load.width // self.word) if self.contract.load else 0

    @property
    def digit_bits(self) -> int:
        """Bits of the widest digit."""
        return max(1, *(e.programme.window for e in self.engines))

    @property
    def digits(self) -> int:
        """Digits of the longest exponent, rounded up to a power of two."""
        return 1 << (max(2, *(e.programme.digit_count(e.bits) for e in self.engines)) - 1).bit_length()

    @property
    def subtractions(self) -> int:
        """How often p is subtracted at the end: not where the ports have residues."""
        return int(max(e.subtractions for e in self.engines)) * self.binary

    def setup(self, contract: Contract) -> list[int]:
        """The message that sets the modulus and its numbers.

        Raises Refusal when a programme could overflow with this modulus, or needs more subtractions than there are.
        """
        for e in self.engines:
            engine = e if contract == e.contract else Exponentiation(e.programme, contract, e.bits)
            if self.binary and engine.subtractions > self.subtractions:
                raise Refusal(
                    f"this modulus needs {engine.subtractions} subtractions at the end, not {self.subtractions}"
                )
        out = [SETUP]
        if load := contract.load:
            out += words_of(contract.p, self.number_words, self.word)
            out += chain.from_iterable(words_of(w, self.key_words, self.word) for w in load.words)
        for _, name in self.commons:
            out += self.number(engine.numbers[name])
        return out

    def job(self, programme: int, pairs: Sequence[tuple[int, int]], bits: int = 0) -> list[int]:
        """The message for one (base, exponent) for each context, exponents of ``bits`` bits (default: the longest)."""
        if len(pairs) != self.contexts:
            raise Refusal(f"this machine takes {self.contexts} powers at once, not {len(pairs)}")
        engine = self.engines[programme]
        bits = bits or engine.bits
        if bits > engine.bits:
            raise Refusal(f"this machine takes exponents of up to {engine.bits} bits, not {bits}")
        p = engine.programme
        out = [1 + programme, p.passes(bits), p.digit_count(bits)]
        for base, exponent in pairs:
            out += p.digits(exponent, bits)
            out += self.number(base)
        return out

    def number(self, x: int) -> list[int]:
        """The words of a number."""
        return words_of(self.contract.operand.encode(x), self.number_words, self.word)

    def powers(self, words: Sequence[int], p: int) -> list[int]:
        """The numbers that the words at ``o`` stand for, least ones."""
        n = self.number_words
        packets = [words[k : k + n] for k in range(0, len(words), n)]
        ports = [sum(w << (self.word * k) for k, w in enumerate(packet)) for packet in packets]
        return [port if self.binary else self.contract.operand.decode(port) % p for port in ports]

    def cycles(self, programme: int, bits: int, sequencer: Sequencer | NumberedSequencer) -> int:
        """Cycles from the last word of a job to the first word of its powers, at most.

        A step takes ``rate``, for which the multiplier or the fetch of operands is busy with all contexts; ``round``
        where the next step needs its product, which comes after the multiplier's latency.
        """
        rate, longest = sequencer.rate, sequencer.round
        engine = self.engines[programme]
        p, passes = engine.programme, engine.programme.passes(bits)
        before, loop = len(p.before), len(p.before) + len(p.loop)
        far = [distance > 1 for distance in p.distances]
        overlapped = sum(far[:before]) + passes * sum(far[before:loop]) + sum(far[loop:])
        steps = p.products(bits) + 1
        subtracting = 2 * self.subtractions * (self.number_words + 1)
        return (steps - overlapped) * longest + overlapped * rate + subtracting + sequencer.access


class _Slice(wiring.Component):
    """Some bits of the slot memory and of the operands, with controls of their own, so that none drives all bits.

    ``q``: the word at ``read`` three cycles later. ``write``: one cycle later the bits of ``number`` or of the result
    ``r`` go to ``place``. ``take``: one cycle later q is kept. ``move``: what was kept and q become a and b where
    nothing is offered or it is being accepted; with ``square_a`` or ``square_b`` one of them becomes both.
    """

    def __init__(self, width: int, depth: int) -> None:
        self.width, self.depth = width, depth
        address = depth.bit_length() - 1
        super().__init__({
            "read": In(address), "q": Out(width),
            "write": In(1), "place": In(address), "from_number": In(1), "number": In(width), "r": In(width),
            "take": In(1), "move": In(1), "offering": In(1), "ready": In(1), "square_a": In(1), "square_b": In(1),
            "a": Out(width), "b": Out(width),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = BlockRam(self.width, self.depth, ())
        kept = Signal(self.width, reset_less=True)
        read, place = (Signal(len(self.read), name=name, reset_less=True) for name in ("read_here", "place_here"))
        write, take = Signal(name="write_here"), Signal(name="take_here")
        data_here = Signal(self.width, reset_less=True)
        m.d.sync += [
            read.eq(self.read), place.eq(self.place), write.eq(self.write), take.eq(self.take),
            data_here.eq(Mux(self.from_number, self.number, self.r)),
        ]  # fmt: skip
        m.d.comb += [
            ram.a_address.eq(read), ram.b_address.eq(place), ram.b_write.eq(write), ram.b_d.eq(data_here),
            self.q.eq(ram.a_q),
        ]  # fmt: skip
        with m.If(take):
            m.d.sync += kept.eq(self.q)
        with m.If(self.move & (~self.offering | self.ready)):
            m.d.sync += [self.a.eq(Mux(self.square_b, self.q, kept)), self.b.eq(Mux(self.square_a, kept, self.q))]
        return m


def sequencer_ports(layout: Layout, address: int) -> dict[str, Any]:
    """Members of a sequencer's interface, for addresses of so many bits."""
    width = layout.contract.operand.width
    return {
        "start": In(1), "busy": Out(1),
        "programme": In(range(max(2, len(layout.engines)))), "passes": In(_COUNT_BITS),
        "s_write": In(1), "s_ready": Out(1), "s_address": In(address), "s_data": In(width),
        "s_ask": In(1), "s_valid": Out(1), "s_read": In(address), "s_q": Out(width),
        "d_write": In(1), "d_address": In(range(layout.contexts * layout.digits)), "d_data": In(layout.digit_bits),
    }  # fmt: skip


def table_shape(address: int) -> data.StructLayout:
    """A row of the table: one step, for addresses of so many bits."""
    return data.StructLayout({
        "destination": address, "a": address, "b": address, "entry": 1, "either": 1, "advance": 1, "far": 1,
        "again": 1, "last": 1,
    })  # fmt: skip


def rows_of(layout: Layout) -> tuple[list[dict[str, int]], list[int], list[int]]:
    """Rows of the table, and for each programme its first row and the first row of its loop."""
    rows: list[dict[str, int]] = []
    firsts, loops = [], []
    place = layout.place
    for engine in layout.engines:
        p = engine.programme
        firsts.append(len(rows))
        loops.append(len(rows) + len(p.before))
        body = (*p.before, *p.loop, *p.after)
        for k, (step, distance) in enumerate(zip(body, p.distances, strict=True)):
            rows.append({
                "destination": place(step.destination), "a": place(step.a), "b": place(step.b),
                "entry": step.pick == ENTRY, "either": step.pick == EITHER, "advance": step.advance,
                "far": distance > 1, "again": bool(p.loop) and k == len(p.before) + len(p.loop) - 1,
                "last": k == len(body) - 1,
            })  # fmt: skip
    return rows, firsts, loops


class Sequencer(wiring.Component):
    """Slot memory, multiplier, table and digits: runs one programme for all contexts when ``start`` is high.

    While not ``busy``: ``s_write`` stores ``s_data`` at ``s_address`` when ``s_ready`` is high; ``s_ask`` asks for what
    stands at ``s_read``, which is at ``s_q`` when ``s_valid`` is high, and stays high until then; ``d_write`` stores a
    digit. ``programme`` and ``passes`` must stand while it is busy.

    A step starts when what it needs is there. Its two operands are read one after the other and wait until the
    multiplier has taken those before, so that the next are offered in the cycle after. Cost: 4 registers as wide as a
    number, ceil(width / 18) block RAMs on ECP5, a table, the digits' memory.
    """

    def __init__(self, core: Multiplier, layout: Layout, *, multiplex: bool) -> None:
        self.core, self.layout, self.multiplex = core, layout, multiplex
        super().__init__(sequencer_ports(layout, layout.depth.bit_length() - 1))

    @property
    def rate(self) -> int:
        """Cycles of a step of all contexts that waits for no product, at most."""
        core, interval = self.core, self.layout.contract.timing.interval
        each = interval if interval >= FETCH else FETCH + core.lead
        return self.layout.contexts * -(-each // core.period) * core.period

    @property
    def round(self) -> int:
        """Cycles of a step that waits for products of the step before, at most."""
        timing, core = self.layout.contract.timing, self.core
        return max(self.rate, -(-(timing.latency + FETCH + WRITE + core.lead) // core.period) * core.period)

    access = READ + FETCH
    """Cycles for a base to be stored and a power to be read, at most."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, core = self.layout, self.core
        m.submodules.core = core
        rows, firsts, loops = rows_of(lay)
        address = len(self.s_read)
        m.submodules.table = table = memory.Memory(shape=table_shape(address), depth=max(2, len(rows)), init=rows)
        at = table.read_port(domain="sync")
        row = at.data
        m.submodules.digits = digits = memory.Memory(shape=lay.digit_bits, depth=lay.contexts * lay.digits, init=[])
        digit_write, digit_read = digits.write_port(), digits.read_port(domain="sync")
        context, index = Signal(range(max(2, lay.contexts))), Signal(range(lay.digits))
        left = Signal(_COUNT_BITS, reset_less=True)
        number_of_row = Signal(range(max(2, len(rows))))
        m.d.comb += [
            at.addr.eq(number_of_row), at.en.eq(1),
            digit_write.en.eq(self.d_write), digit_write.addr.eq(self.d_address), digit_write.data.eq(self.d_data),
            digit_read.addr.eq(Cat(index, context)), digit_read.en.eq(1),
        ]  # fmt: skip

        # ---- fetch
        digit = Signal(lay.digit_bits, reset_less=True)
        first, second, reading = (
            Signal(address, name=name, reset_less=True) for name in ("first", "second", "reading")
        )
        destination = Signal(address, reset_less=True)
        offering, move, again = Signal(), Signal(), Signal()
        taking, moving = Signal(), Signal()
        one_of_two = row.either & (not self.multiplex)
        both = row.either & bool(self.multiplex)
        asked = Signal(READ - 2)
        m.d.sync += asked.eq(Mux(self.s_ask & ~self.s_valid, Cat(self.s_ask, asked), 0))
        m.d.comb += [self.s_ready.eq(1), self.s_valid.eq(asked[-1])]
        arrived = core.o_valid & core.o_ready
        under_way = Signal(range(2 * lay.contexts + 1))
        m.d.sync += under_way.eq(under_way + move - arrived)
        m.d.comb += [core.i_valid.eq(offering), again.eq(row.again & (left != 0))]
        with m.If(core.i_ready):
            m.d.sync += offering.eq(0)
        with m.FSM(name="fetch") as fetch:
            with m.State("IDLE"):
                m.d.sync += [left.eq(self.passes - 1), context.eq(0), index.eq(0), reading.eq(self.s_read)]
                m.d.sync += number_of_row.eq(choice(self.programme, firsts))
                with m.If(self.start):
                    m.next = "ROW"
            with m.State("ROW"):  # the row and the digit are being read
                m.next = "START"
            with m.State("START"):
                m.d.sync += [
                    digit.eq(digit_read.data), destination.eq(row.destination + context),
                    first.eq(row.a + context), second.eq(row.b + context),
                ]  # fmt: skip
                with m.If(under_way < Mux(row.far, 2 * lay.contexts, lay.contexts)):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += [
                    reading.eq(Mux(one_of_two & ~digit[0], second, first)),
                    second.eq(Mux(one_of_two & digit[0], first, second) + Mux(row.entry, digit * lay.contexts, 0)),
                ]
                m.next = "A"
            with m.State("A"):
                m.d.sync += reading.eq(second)
                m.next = "B"
            with m.State("B"):
                m.next = "TAKE A"
            with m.State("TAKE A"):
                m.d.comb += taking.eq(1)
                m.next = "TAKE B"
            with m.State("TAKE B"):
                m.next = "MOVE"
            with m.State("MOVE"):
                m.d.comb += moving.eq(1)
                with m.If(~offering | core.i_ready):
                    m.d.comb += move.eq(1)
                    m.d.sync += [offering.eq(1), context.eq(context + 1)]
                    m.next = "ROW"
                    with m.If(context == lay.contexts - 1):
                        m.d.sync += [context.eq(0), index.eq(index + row.advance), number_of_row.eq(number_of_row + 1)]
                        with m.If(again):
                            m.d.sync += [left.eq(left - 1), number_of_row.eq(choice(self.programme, loops))]
                        with m.If(row.last & ~again):
                            m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(under_way == 0):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(self.start | ~fetch.ongoing("IDLE"))

        # ---- results: they come in order, and their places wait in a queue
        m.submodules.places = places = fifo.SyncFIFO(width=address, depth=2 * lay.contexts)
        m.d.comb += [
            places.w_data.eq(destination), places.w_en.eq(move), places.r_en.eq(arrived), core.o_ready.eq(1),
        ]  # fmt: skip

        # ---- the numbers, slice by slice
        width = lay.contract.operand.width
        size = min(WIDTH_MAX, BITS_MAX // lay.depth)
        for k, low in enumerate(range(0, width, size)):
            part = slice(low, min(low + size, width))
            m.submodules[f"slice_{k}"] = piece = _Slice(part.stop - part.start, lay.depth)
            m.d.comb += [
                piece.read.eq(reading), self.s_q[part].eq(piece.q),
                piece.write.eq(arrived | self.s_write), piece.from_number.eq(self.s_write),
                piece.place.eq(Mux(self.s_write, self.s_address, places.r_data)),
                piece.number.eq(self.s_data[part]), piece.r.eq(core.o_r[part]),
                piece.take.eq(taking), piece.move.eq(moving), piece.offering.eq(offering),
                piece.ready.eq(core.i_ready), piece.square_a.eq(both & digit[0]), piece.square_b.eq(both & ~digit[0]),
                core.i_a[part].eq(piece.a), core.i_b[part].eq(piece.b),
            ]  # fmt: skip
        return m


class Machine(wiring.Component):
    """The engine around a sequencer. Streams of words ``i`` and ``o`` as described above; one message at a time.

    ``multiplex``: where a step squares one of two slots, both are read and a multiplexer chooses, so that no address
    depends on the exponent there.

    Cost beside the multiplier: 2 registers as wide as a number, ceil(width / 18) block RAMs on ECP5, a table and the
    digits' memory. Latency: below ``Layout.cycles``, and the same for all exponents of one length.
    """

    def __init__(self, sequencer: Sequencer | NumberedSequencer) -> None:
        self.sequencer, self.core, self.layout = sequencer, sequencer.core, sequencer.layout
        self.kept = (*getattr(self.core, "kept", ()), "slice")
        layout = sequencer.layout
        word = layout.word
        super().__init__({
            "i_valid": In(1), "i_ready": Out(1), "i_data": In(word),
            "o_valid": Out(1), "o_ready": In(1), "o_data": Out(word),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lay, word, words = self.layout, self.layout.word, self.layout.number_words
        m.submodules.sequencer = run = self.sequencer
        count = Signal(range(max(2, words, lay.key_words)))
        context = Signal(range(max(2, lay.contexts)))
        index = Signal(_COUNT_BITS)
        digits = Signal(_COUNT_BITS, reset_less=True)
        take = self.i_valid & self.i_ready
        last_word, last_context = count == words - 1, context == lay.contexts - 1
        bases = [lay.place({n: s for s, n in e.programme.loads}["base"]) for e in lay.engines]
        results = [lay.place(e.programme.result) for e in lay.engines]
        commons = [lay.place(slot) for slot, _ in lay.commons]
        storing = Signal(len(run.s_address))
        programme, passes = (Signal(len(x), reset_less=True) for x in (run.programme, run.passes))

        # ---- the number: it shifts, or is loaded, one cycle after it is told to
        number = Signal(words * word, reset_less=True)
        shift, load, shifting, loading = Signal(), Signal(), Signal(), Signal()
        entering, held = Signal(word), Signal(word, reset_less=True)
        comparing, subtracting = Signal(), Signal()
        m.d.sync += [shifting.eq(shift), loading.eq(load), held.eq(self.i_data)]
        m.d.comb += entering.eq(held)
        with m.If(shift):
            m.d.sync += count.eq(Mux(last_word, 0, count + 1))
        with m.If(shifting):
            m.d.sync += number.eq(Cat(number[word:], entering))
        with m.If(loading):
            m.d.sync += number.eq(run.s_q)
        m.d.comb += [
            run.s_data.eq(number), run.s_address.eq(storing + context), run.programme.eq(programme),
            run.s_read.eq(choice(programme, results) + context), run.passes.eq(passes),
            run.d_data.eq(self.i_data), run.d_address.eq(Cat(index[: (lay.digits - 1).bit_length()], context)),
            self.o_data.eq(number[:word]),
        ]  # fmt: skip
        if lay.contract.load or lay.subtractions:
            init = () if lay.contract.load else words_of(lay.contract.p, words, word)
            m.submodules.modulus = modulus = memory.Memory(shape=word, depth=max(2, words), init=init)
        if lay.subtractions:
            self._subtract(m, modulus.read_port(domain="comb"), number, shifting, comparing, subtracting, entering)
        if lay.contract.load:
            write = modulus.write_port()
            m.d.comb += [write.addr.eq(count), write.data.eq(self.i_data)]

        with m.FSM(name="message"):
            with m.State("COMMAND"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(take):
                    m.d.sync += programme.eq(self.i_data - 1)
                    m.next = "PASSES"
                    with m.If(self.i_data == SETUP):
                        m.next = "MODULUS" if lay.contract.load else "COMMON"
            with m.State("COMMON"):
                m.d.comb += [self.i_ready.eq(1), shift.eq(take)]
                with m.If(take & last_word):
                    m.next = "COMMON IN"
            with m.State("COMMON IN"):
                m.next = "SPREAD"
            with m.State("SPREAD"):  # one number to the same slot of all contexts
                m.d.comb += [run.s_write.eq(1), storing.eq(choice(index, commons))]
                with m.If(run.s_ready):
                    m.d.sync += context.eq(context + 1)
                    with m.If(last_context):
                        m.d.sync += [context.eq(0), index.eq(index + 1)]
                        m.next = "COMMON"
                        with m.If(index == len(lay.commons) - 1):
                            m.d.sync += index.eq(0)
                            m.next = "COMMAND"
            with m.State("PASSES"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(take):
                    m.d.sync += passes.eq(self.i_data)
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.d.comb += self.i_ready.eq(1)
                with m.If(take):
                    m.d.sync += digits.eq(self.i_data)
                    m.next = "DIGITS"
            with m.State("DIGITS"):
                m.d.comb += self.i_ready.eq(index != digits)
                with m.If(index == digits):
                    m.d.sync += index.eq(0)
                    m.next = "BASE"
                with m.Elif(take):
                    m.d.comb += run.d_write.eq(1)
                    m.d.sync += index.eq(index + 1)
            with m.State("BASE"):
                m.d.comb += [self.i_ready.eq(1), shift.eq(take)]
                with m.If(take & last_word):
                    m.next = "BASE IN"
            with m.State("BASE IN"):
                m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += [run.s_write.eq(1), storing.eq(choice(programme, bases))]
                with m.If(run.s_ready):
                    m.d.sync += context.eq(Mux(last_context, 0, context + 1))
                    m.next = "DIGITS"
                    with m.If(last_context):
                        m.next = "START"
            with m.State("START"):
                m.d.comb += run.start.eq(1)
                m.next = "RUN"
            with m.State("RUN"):
                with m.If(~run.busy):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += [run.s_ask.eq(1), load.eq(run.s_valid)]
                with m.If(run.s_valid):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.next = "COMPARE" if lay.subtractions else "GIVE"
            with m.State("GIVE"):
                m.d.comb += [self.o_valid.eq(1), shift.eq(self.o_ready)]
                with m.If(self.o_ready):
                    m.next = "GIVEN"
                    with m.If(last_word):
                        m.d.sync += context.eq(Mux(last_context, 0, context + 1))
                        m.next = "READ"
                        with m.If(last_context):
                            m.next = "COMMAND"
            with m.State("GIVEN"):
                m.next = "GIVE"
            if lay.contract.load:
                self._load(m, write, take, count, last_word, index)
            if lay.subtractions:
                done = Signal(range(lay.subtractions + 1))
                with m.State("COMPARE"):
                    m.d.comb += shift.eq(1)
                    m.d.sync += comparing.eq(1)
                    with m.If(last_word):
                        m.next = "COMPARED"
                with m.State("COMPARED"):
                    m.d.sync += comparing.eq(0)
                    m.next = "SUBTRACT"
                with m.State("SUBTRACT"):
                    m.d.comb += shift.eq(1)
                    m.d.sync += subtracting.eq(1)
                    with m.If(last_word):
                        m.next = "SUBTRACTED"
                with m.State("SUBTRACTED"):
                    m.d.sync += [subtracting.eq(0), done.eq(done + 1)]
                    m.next = "COMPARE"
                    with m.If(done == lay.subtractions - 1):
                        m.d.sync += done.eq(0)
                        m.next = "GIVE"
        return m

    def _load(
        self, m: Module, modulus: memory.WritePort, take: Value, count: Signal, last_word: Value, index: Signal
    ) -> None:
        """States that keep the modulus and pass the multiplier's own words on to it."""
        lay, core = self.layout, self.core
        assert lay.contract.load is not None
        key = Signal(lay.key_words * lay.word, reset_less=True)
        with m.State("MODULUS"):
            m.d.comb += [self.i_ready.eq(1), modulus.en.eq(take)]
            with m.If(take):
                m.d.sync += count.eq(Mux(last_word, 0, count + 1))
                with m.If(last_word):
                    m.next = "KEY"
        with m.State("KEY"):
            m.d.comb += self.i_ready.eq(1)
            with m.If(take):
                m.d.sync += [key.eq(Cat(key[lay.word :], self.i_data)), count.eq(count + 1)]
                with m.If(count == lay.key_words - 1):
                    m.d.sync += count.eq(0)
                    m.next = "PASS"
        with m.State("PASS"):
            m.d.comb += [core.k_valid.eq(1), core.k_m.eq(key)]
            with m.If(core.k_ready):
                m.d.sync += index.eq(index + 1)
                m.next = "KEY"
                with m.If(index == len(lay.contract.load.words) - 1):
                    m.d.sync += index.eq(0)
                    m.next = "COMMON"

    def _subtract(
        self, m: Module, modulus: memory.ReadPort, number: Signal, shifting: Signal, comparing: Signal,
        subtracting: Signal, entering: Signal,
    ) -> None:  # fmt: skip
        """Subtract p where it goes into the number, as it shifts round: once to compare, once to subtract p or 0."""
        word, words = self.layout.word, self.layout.number_words
        borrow, small = Signal(), Signal(reset_less=True)
        turn = Signal(range(max(2, words)))
        difference = Signal(word + 1)
        m.d.comb += [
            modulus.addr.eq(turn),
            difference.eq(number[:word] - Mux(subtracting & small, 0, modulus.data) - borrow),
        ]
        with m.If(comparing):
            m.d.comb += entering.eq(number[:word])
        with m.If(subtracting):
            m.d.comb += entering.eq(difference[:word])
        with m.If(shifting & (comparing | subtracting)):
            m.d.sync += [turn.eq(turn + 1), borrow.eq(difference[-1])]
            with m.If(turn == words - 1):
                m.d.sync += [turn.eq(0), borrow.eq(0)]
                with m.If(comparing):
                    m.d.sync += small.eq(difference[-1])


def choice(which: Signal, values: Sequence[int]) -> Value:
    """The constant for a number, the last one beyond the end."""
    found: Value = Const(values[-1])
    for k, value in enumerate(values[:-1]):
        found = Mux(which == k, value, found)
    return found
