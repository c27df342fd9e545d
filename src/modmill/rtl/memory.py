# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A block RAM with two ports and explicit registers, so that a flow can use the registers inside the block.

port   in each cycle                                    b_write   first register          second register: q
A      reads                                            -         word at a_address       first register
B      reads, or writes b_d at b_address                0         word at b_address       first register
                                                        1         keeps its value         first register

With one register, for loops with little latency, q is the first register.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

WIDTH_MAX = 72
"""Most bits of a word."""
DEPTHS = tuple(1 << k for k in range(4, 11))
"""Accepted numbers of words."""
BITS_MAX = 1 << 16
"""Most bits of a block RAM: IEEE 1364 guarantees numbers of this size, and Verilator accepts no larger ones."""


def with_parity(word: Value) -> Value:
    """``word`` and, as its highest bit, an odd parity: a word of zeros is never right."""
    return Cat(word, ~word.xor())


def even(word: Value) -> Value:
    """Whether a word of `with_parity` is wrong: it has an even number of ones."""
    return ~word.xor()


class BlockRam(wiring.Component):
    """Block RAM of ``depth`` words: port A reads, port B reads or writes.

    The word at the address of cycle t is at ``a_q`` or ``b_q`` in cycle t + 2. A word that is written in cycle t can be
    read from cycle t + 1 on, through either port. While port B writes, it does not read: its first register keeps its
    value, so ``b_q`` repeats in cycle t + 2 after a write in cycle t. **If port A reads the word that port B writes in
    the same cycle, the value is undefined**; the model in Amaranth's simulator returns the inverse of the old word.

    ``init``: the words at configuration; the rest are zeros. No reset restores them, and no register has a reset. In
    Verilog the block is an instance of module block_ram_<width>x<depth>; its parameter INIT has word k at bits
    k * width. The module is in the same file, and flows replace it by the target's primitive. With ``registers`` = 1
    there are no second registers, and the module's name ends in _r1.

    Cost on ECP5: ceil(width / 18) DP16KD, no logic. Latency: ``registers`` cycles. Raises ValueError for a size that is
    not supported and for contents that do not fit.
    """

    def __init__(self, width: int, depth: int, init: Sequence[int], *, registers: int = 2) -> None:
        if registers not in (1, 2):
            raise ValueError(f"a block RAM has 1 or 2 registers behind a port, not {registers}")
        if not 1 <= width <= WIDTH_MAX:
            raise ValueError(f"a block RAM has words of 1 to {WIDTH_MAX} bits, not {width}")
        if depth not in DEPTHS:
            raise ValueError(f"a block RAM has 2^k words, from {DEPTHS[0]} to {DEPTHS[-1]}, not {depth}")
        if width * depth > BITS_MAX:
            raise ValueError(f"a block RAM has at most {BITS_MAX} bits, not {width} x {depth}")
        if len(init) > depth:
            raise ValueError(f"contents of {len(init)} words do not fit a block RAM of {depth} words")
        for k, word in enumerate(init):
            if word < 0 or word >> width:
                raise ValueError(f"word {k} of the contents, {word}, does not fit {width} bits")
        self.width, self.depth, self.init, self.registers = width, depth, tuple(init), registers
        address = depth.bit_length() - 1
        super().__init__({
            "a_address": In(address), "a_q": Out(width),
            "b_address": In(address), "b_write": In(1), "b_d": In(width), "b_q": Out(width),
        })  # fmt: skip

    @property
    def module_name(self) -> str:
        """Name of the Verilog module."""
        return f"block_ram_{self.width}x{self.depth}{'_r1' if self.registers == 1 else ''}"

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if platform == "verilog":
            contents = sum(word << k * self.width for k, word in enumerate(self.init))
            m.submodules.block = Instance(
                self.module_name, p_INIT=Const(contents, self.width * self.depth), i_clk=ClockSignal(),
                i_a_address=self.a_address, i_b_address=self.b_address, i_b_write=self.b_write, i_b_d=self.b_d,
                o_a_q=self.a_q, o_b_q=self.b_q,
            )  # fmt: skip
            return m
        m.submodules.words = words = memory.Memory(shape=self.width, depth=self.depth, init=self.init)
        # asynchronous ports and registers without reset, because the library's synchronous ports are reset
        read_a, read_b, write = words.read_port(domain="comb"), words.read_port(domain="comb"), words.write_port()
        a_first, a_second, b_first, b_second = (
            Signal(self.width, name=name, reset_less=True) for name in ("a_first", "a_second", "b_first", "b_second")
        )
        collision = self.b_write & (self.a_address == self.b_address)
        m.d.comb += [
            read_a.addr.eq(self.a_address), read_b.addr.eq(self.b_address),
            write.addr.eq(self.b_address), write.data.eq(self.b_d), write.en.eq(self.b_write),
            self.a_q.eq(a_second if self.registers == 2 else a_first),
            self.b_q.eq(b_second if self.registers == 2 else b_first),
        ]  # fmt: skip
        m.d.sync += a_first.eq(Mux(collision, ~read_a.data, read_a.data))
        if self.registers == 2:
            m.d.sync += [a_second.eq(a_first), b_second.eq(b_first)]
        with m.If(~self.b_write):
            m.d.sync += b_first.eq(read_b.data)
        return m
