# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A block RAM in Verilog, as plain arrays or as ECP5's blocks, does what it does in Amaranth's simulator."""

import json
import random
import re
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from components import run_bench
from cores import icarus_complaints
from marks import long
from modmill.flow import emit, memories, route, targets, tools
from modmill.flow.library import Start
from modmill.flow.lint import lint
from modmill.flow.memories import BlockRam
from modmill.flow.simulate import Simulator, Widths
from modmill.flow.synthesise import synthesise
from modmill.proofs.handshake.constant_time import constant_time
from modmill.proofs.netlist import Netlist
from modmill.rtl import memory

# The part of Lattice's block that the block RAMs use: words of 18 bits, both registers, no cascades (FPGA-TN-02204).
# Words lie in INITVAL as Yosys lays them there, which a test below compares.
_PINS = {"DI": 18, "AD": 14, "CS": 3, "DO": 18}
DP16KD = (
    "module DP16KD("
    + ", ".join(
        f"{'output' if pin == 'DO' else 'input'} {pin}{side}{k}"
        for side in "AB"
        for pin, bits in _PINS.items()
        for k in range(bits)
    )
    + "".join(f", input CLK{s}, CE{s}, OCE{s}, WE{s}, RST{s}" for s in "AB")
    + ");\n"
    + "".join(
        f'  parameter {name}_{side} = "";\n'
        for side in "AB"
        for name in ("DATA_WIDTH", "REGMODE", "WRITEMODE", "CSDECODE")
    )
    + '  parameter GSR = ""; parameter RESETMODE = "";\n'
    + "".join(f"  parameter [319:0] INITVAL_{row:02X} = 320'd0;\n" for row in range(64))
    + "  wire [20479:0] all = {" + ", ".join(f"INITVAL_{row:02X}" for row in reversed(range(64))) + "};\n"
    + "  reg [17:0] words [0:1023];\n  integer k;\n"
    + "  initial for (k = 0; k < 1024; k = k + 1) words[k] = all[20 * k +: 18];\n"
    + "".join(
        f"  wire [{bits - 1}:0] {pin.lower()}_{side} = {{"
        + ", ".join(f"{pin}{side}{k}" for k in reversed(range(bits)))
        + "};\n"
        for side in "AB"
        for pin, bits in _PINS.items()
        if pin != "DO"
    )
    + "".join(
        f"""  reg [17:0] first_{s}, second_{s};
  always @(posedge CLK{s}) if (CE{s} && cs_{s} == 0 && !RST{s}) begin
    if (!WE{s}) first_{s} <= words[ad_{s}[13:4]];
    else words[ad_{s}[13:4]] <= {{ad_{s}[1] ? di_{s}[17:9] : words[ad_{s}[13:4]][17:9],
                                 ad_{s}[0] ? di_{s}[8:0] : words[ad_{s}[13:4]][8:0]}};
    if (OCE{s} && REGMODE_{s} == "OUTREG" && DATA_WIDTH_{s} == 18 && WRITEMODE_{s} == "NORMAL")
      second_{s} <= first_{s};
  end
  assign {{{", ".join(f"DO{s}{k}" for k in reversed(range(18)))}}} = REGMODE_{s} == "NOREG" ? first_{s} : second_{s};
"""
        for s in "AB"
    )
    + "endmodule\n"
)  # fmt: skip


def _words(width: int, depth: int) -> list[int]:
    rnd = random.Random(width * depth)
    return [rnd.getrandbits(width) for _ in range(depth)]


def _packed(words: list[int], width: int) -> int:
    return sum(word << k * width for k, word in enumerate(words))


def _bench(ram: BlockRam, contents: int) -> str:
    """A core that hands addresses (i_a: of A, i_b: of B, write, word) to a block RAM and returns both its outputs."""
    address, bits = ram.address_bits, ram.width * ram.depth
    return f"""module core(input clk, input rst, input i_valid, output i_ready, output o_valid, input o_ready,
    input [{address - 1}:0] i_a, input [{address + ram.width}:0] i_b, output [{2 * ram.width - 1}:0] o_r);
  reg [1:0] valid; assign i_ready = 1'b1; assign o_valid = valid[{ram.registers - 1}];
  always @(posedge clk) valid <= rst ? 2'd0 : {{valid[0], i_valid}};
  {ram.name} #(.INIT({bits}'h{contents:x})) ram(
    .clk(clk), .a_address(i_a), .b_address(i_b[{address - 1}:0]), .b_write(i_b[{address}] & i_valid),
    .b_d(i_b[{address + ram.width}:{address + 1}]), .a_q(o_r[{ram.width - 1}:0]),
    .b_q(o_r[{2 * ram.width - 1}:{ram.width}]));
endmodule
"""


def _traffic(ram: BlockRam, *, collisions: bool) -> list[tuple[int, int, int, int]]:
    """Every address read on both ports, then random traffic, then every address again."""
    rnd = random.Random(ram.depth)
    few = min(ram.depth, 8)
    sweep = [(k, ram.depth - 1 - k, 0, 0) for k in range(ram.depth)]
    mixed = [
        (rnd.randrange(few), rnd.randrange(few), rnd.getrandbits(1), rnd.getrandbits(ram.width)) for _ in range(300)
    ]
    return [*sweep, *((a, b, write, d) for a, b, write, d in mixed if collisions or not write or a != b), *sweep]


def _expected(ram: BlockRam, words: list[int], traffic: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Outputs of Amaranth's model, as many cycles after each operation as it has registers."""
    found = []
    model = memory.BlockRam(ram.width, ram.depth, words, registers=ram.registers)

    async def bench(context) -> None:
        for operation in [*traffic, *[(0, 0, 0, 0)] * ram.registers]:
            found.append((context.get(model.a_q), context.get(model.b_q)))
            ports = (model.a_address, model.b_address, model.b_write, model.b_d)
            for port, value in zip(ports, operation, strict=True):
                context.set(port, value)
            await context.tick()

    run_bench(model, bench)
    return found[ram.registers :]


def _outputs(verilog: str, ram: BlockRam, traffic: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    address = ram.address_bits
    widths = Widths(address, address + 1 + ram.width, 2 * ram.width)
    simulator = Simulator(verilog, widths=widths)
    packed = [b | write << address | d << address + 1 for _, b, write, d in traffic]
    run = simulator.run([a for a, *_ in traffic], packed, start=Start(noise=False))  # noise would be written
    assert run.violations == []
    assert set(run.latencies) == {ram.registers}
    return [(r & (1 << ram.width) - 1, r >> ram.width) for r in run.results]


def _as_ecp5(ram: BlockRam) -> str:
    return memories.ecp5(memories.behavioural(ram)) + DP16KD


@pytest.mark.parametrize(
    ("ram", "blocks"),
    [
        (BlockRam(18, 256), None), (BlockRam(1, 16), None), (BlockRam(40, 32), None),
        (BlockRam(18, 1024), 1), (BlockRam(17, 64), 1), (BlockRam(72, 16), 4),
        (BlockRam(18, 256, 1), None), (BlockRam(18, 256, 1), 1), (BlockRam(20, 64, 1), 2),
    ],
)  # fmt: skip
def test_verilog_does_what_amaranth_does(ram: BlockRam, blocks: int | None) -> None:
    modules = memories.behavioural(ram) if blocks is None else _as_ecp5(ram)
    assert modules.count("DP16KD #(") == (blocks or 0)
    words = _words(ram.width, ram.depth)
    traffic = _traffic(ram, collisions=False)  # a block may give any value there
    found = _outputs(_bench(ram, _packed(words, ram.width)) + modules, ram, traffic)
    assert found == _expected(ram, words, traffic)


def test_simulation_catches_swapped_words() -> None:
    ram = BlockRam(18, 64)
    modules = _as_ecp5(ram)
    assert (swapped := _with_words_swapped(modules)) != modules
    words, traffic = _words(18, 64), _traffic(ram, collisions=False)
    assert _outputs(_bench(ram, _packed(words, 18)) + swapped, ram, traffic) != _expected(ram, words, traffic)


def _with_words_swapped(overrides: str) -> str:
    """Words 5 and 6 of 18 bits change their places."""
    other = {"INIT[107:90]": "INIT[125:108]", "INIT[125:108]": "INIT[107:90]"}
    return re.sub(r"INIT\[\d+:\d+\]", lambda match: other.get(match.group(), match.group()), overrides)


def _initial_values(verilog: str, overrides: str, folder: Path) -> list[tuple[int, ...]]:
    """All 64 INITVAL of each DP16KD that Yosys makes of a core."""
    (folder / "core.v").write_text(verilog)
    (folder / "tiles.v").write_text(overrides)
    script = "read_verilog core.v; read_verilog -overwrite tiles.v; synth_ecp5 -top core; write_json out.json"
    tools.run(tools.yosys("-q", "-p", script), name="yosys", cwd=folder)
    return _blocks(folder / "out.json")


def _blocks(netlist: Path) -> list[tuple[int, ...]]:
    cells = json.loads(netlist.read_text())["modules"]["core"]["cells"].values()
    return sorted(
        tuple(int(cell["parameters"].get(f"INITVAL_{row:02X}", "0"), 2) for row in range(64))
        for cell in cells
        if cell["type"] == "DP16KD"
    )


@pytest.mark.parametrize("ram", [BlockRam(18, 256), BlockRam(36, 512), BlockRam(17, 128)])
def test_contents_lie_where_yosys_puts_them(ram: BlockRam, tmp_path: Path) -> None:
    plain = _bench(ram, _packed(_words(ram.width, ram.depth), ram.width)) + memories.behavioural(ram)
    inferred = _initial_values(plain, "", tmp_path)
    overrides = memories.ecp5(plain)
    assert len(inferred) == -(-ram.width // 18)
    assert _initial_values(plain, overrides, tmp_path) == inferred
    if ram.width == 18:
        assert _initial_values(plain, _with_words_swapped(overrides), tmp_path) != inferred


class Lookup(wiring.Component):
    """(FIRST[a] xor SECOND[b] xor HISTORY[a]) after four cycles; then HISTORY[b] becomes the result.

    Three block RAMs, of which two have equal size. With ``leaky`` the result's lowest bit costs a cycle.
    """

    FIRST, SECOND, HISTORY = _words(12, 32), _words(12, 32)[::-1], _words(12, 16)

    def __init__(self, *, leaky: bool = False) -> None:
        self.leaky = leaky
        super().__init__(
            {
                "i_valid": In(1), "i_ready": Out(1), "i_a": In(5), "i_b": In(5),
                "o_valid": Out(1), "o_ready": In(1), "o_r": Out(12),
            }
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = memory.BlockRam(12, 32, self.FIRST)
        m.submodules.second = second = memory.BlockRam(12, 32, self.SECOND)
        m.submodules.history = history = memory.BlockRam(12, 16, self.HISTORY)
        a, b, held = Signal(5), Signal(5), Signal(12, reset_less=True)
        m.d.comb += [
            first.a_address.eq(a),
            second.b_address.eq(b),
            history.a_address.eq(a),
            history.b_address.eq(b),
            history.b_d.eq(held),
            self.o_r.eq(held),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.i_ready.eq(1)
                m.d.sync += [a.eq(self.i_a), b.eq(self.i_b)]
                with m.If(self.i_valid):
                    m.next = "READ"
            with m.State("READ"):
                m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "SUM"
            with m.State("SUM"):
                m.d.sync += held.eq(first.a_q ^ second.b_q ^ history.a_q)
                m.next = "LEAK" if self.leaky else "DONE"
            if self.leaky:
                with m.State("LEAK"):
                    with m.If(~held[0]):
                        m.next = "DONE"
                    m.d.sync += held[0].eq(0)
            with m.State("DONE"):
                m.d.comb += self.o_valid.eq(1)
                with m.If(self.o_ready):
                    m.d.comb += history.b_write.eq(1)
                    m.next = "IDLE"
        return m


@pytest.fixture(scope="module")
def text() -> str:
    return emit.verilog(Lookup())


def test_emitted_text_has_one_module_for_each_size(text: str) -> None:
    names = re.findall(r"^module (\w+)", text, re.MULTILINE)
    assert names[0] == "core"
    assert sorted(name for name in names if "block_ram" in name) == ["core_block_ram_12x16", "core_block_ram_12x32"]
    assert list(memories.find(text).values()) == [BlockRam(12, 16), BlockRam(12, 32)]
    for words, depth in ((Lookup.FIRST, 32), (Lookup.SECOND, 32), (Lookup.HISTORY, 16)):
        assert text.count(f".INIT({12 * depth}'h{_packed(words, 12):0{3 * depth}x})") == 1
    assert lint(text) == []
    assert icarus_complaints(text) == ""


@pytest.mark.parametrize("primitive", [False, True])
def test_emitted_core_starts_with_its_contents(text: str, primitive: bool) -> None:
    if primitive:
        plain = re.split(r"(?=^module core_block_ram)", text, flags=re.MULTILINE)[0]
        text = plain + memories.ecp5(text) + DP16KD
    rnd = random.Random(3)
    a, b = ([rnd.randrange(32) for _ in range(200)] for _ in range(2))
    history, results = list(Lookup.HISTORY), []
    for x, y in zip(a, b, strict=True):
        results.append(Lookup.FIRST[x] ^ Lookup.SECOND[y] ^ history[x % 16])
        history[y % 16] = results[-1]
    simulator = Simulator(text, widths=Widths(5, 5, 12))
    run = simulator.run(a, b, gap=0.2, stall=0.2, start=Start(noise=False))  # its history stays
    assert run.violations == []
    assert run.results == results
    assert set(run.latencies) == {4}


def test_latency_is_proved_through_block_rams(text: str) -> None:
    assert not constant_time(Netlist.read(text, "core")).path
    assert constant_time(Netlist.read(emit.verilog(Lookup(leaky=True)), "core")).path


@pytest.mark.parametrize("hierarchy", [False, True])
def test_ecp5_blocks_hold_the_contents_and_the_registers(text: str, tmp_path: Path, hierarchy: bool) -> None:
    found = synthesise(text, "core", targets.target(), tmp_path, hierarchy=hierarchy)
    assert found.bram == found.cells["DP16KD"] == 3
    assert found.ff < 5 + 5 + 12 + 12  # none for the outputs
    assert _blocks(found.netlist) == sorted(
        tuple(_packed(words[row * 16 : row * 16 + 16], 20) for row in range(64))
        for words in (Lookup.FIRST, Lookup.SECOND, Lookup.HISTORY)
    )


@pytest.mark.parametrize("target", [long("xc7z020"), "cyclonev", "gowin", long("nexus")])
def test_other_targets_infer_their_blocks(tmp_path: Path, target: str) -> None:
    ram = BlockRam(18, 256)
    verilog = _bench(ram, _packed(_words(18, 256), 18)) + memories.behavioural(ram)
    found = synthesise(verilog, "core", targets.target(target), tmp_path, delay=False)
    assert found.bram == (2 if target == "cyclonev" else 1)  # a block of 10 kbit there has one port for each direction
    assert found.ff == 2 * 18 + 2
    assert found.lut <= 1


def test_a_block_ram_is_as_fast_as_its_limit(tmp_path: Path) -> None:
    found = route.route(emit.verilog(Counter()), "core", targets.target("ecp5-25k"), tmp_path)
    assert found.utilisation["DP16KD"] == (1, 56)
    assert found.mhz_reported > 240  # 212 MHz is the block's documented limit
    assert found.mhz == found.cap_mhz == 212


class Counter(wiring.Component):
    """Reads a block RAM in a row on port A, and reads or writes it on port B, with registers on all sides."""

    i_valid: In(1)
    i_ready: Out(1)
    i_a: In(18)
    i_b: In(8)
    o_valid: Out(1)
    o_ready: In(1)
    o_r: Out(36)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.ram = ram = memory.BlockRam(18, 256, _words(18, 256))
        count = Signal(8)
        m.d.sync += [count.eq(count + 1), self.o_r[:18].eq(ram.a_q), self.o_r[18:].eq(ram.b_q)]
        m.d.sync += [ram.b_address.eq(self.i_b), ram.b_write.eq(self.i_valid), ram.b_d.eq(self.i_a)]
        m.d.comb += [ram.a_address.eq(count), self.i_ready.eq(1), self.o_valid.eq(count[0])]
        return m


def test_names_and_refusals() -> None:
    assert memories.parse_name("core_block_ram_18x256") == BlockRam(18, 256)
    assert memories.parse_name(BlockRam(7, 16).name) == BlockRam(7, 16)
    assert memories.parse_name("core_block_ram_7x16_r1") == BlockRam(7, 16, 1)
    assert memories.parse_name("block_ram_18") is None
    plain = memories.behavioural(BlockRam(18, 256))
    assert memories.find(plain.replace("[17:0] b_d", "[16:0] b_d")) == {}
    assert memories.find(plain.replace("INIT", "FIRST")) == {}
    assert memories.ecp5(memories.behavioural(BlockRam(18, 2048))) == ""
    with pytest.raises(ValueError, match="power of two, not 24"):
        memories.parse_name("block_ram_8x24")
    with pytest.raises(ValueError, match="at least 1 bit, not 0"):
        BlockRam(0, 16)
