# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The simulator reports results, times and every planted fault of the handshake."""

import random
from pathlib import Path

import pytest

from cores import (
    EXTRA_RESULT,
    FULL_NOT_RESET,
    GOOD,
    NO_RESET,
    READY_IGNORED,
    RESULT_CHANGED,
    SLOW_RESET,
    VALID_DROPPED,
    VALID_WAITS_FOR_READY,
    WIDTHS,
    WRONG_VALUE,
    P,
)
from modmill.flow import library, tools
from modmill.flow.library import Start
from modmill.flow.simulate import Simulator, Widths
from modmill.flow.tools import ToolError


def compared(count: int) -> str:
    """A core with a counter that is compared with ``count`` numbers, each in many conditions."""
    wires = "".join(f"  wire at_{k} = at == 12'd{5 * k};\n" for k in range(count))
    every = "".join(
        f"    hit[{j}] <= {' | '.join(f'at_{k}' for k in range(j, count, 1 + j % 3))};\n" for j in range(10)
    )
    return (
        "module core(input wire clk, input wire rst, output reg [9:0] hit);\n  reg [11:0] at;\n"
        f"{wires}  always @(posedge clk) begin\n    at <= rst ? 12'd0 : at + 12'd1;\n{every}  end\nendmodule\n"
    )


@pytest.mark.parametrize(("count", "most", "tables"), [(100, 2000, True), (600, 2000, False), (600, 10_000, True)])
def test_conditions_do_not_read_large_tables(count, most, tables, tmp_path, monkeypatch):
    """For such expressions GCC takes minutes and gigabytes."""
    monkeypatch.setattr(library, "_MOST_READS", most)
    (tmp_path / "core.v").write_text(compared(count))
    files = library._translated(tmp_path, "core")
    assert any("hit" in file.read_text() for file in files)
    assert any(library._TABLE in file.read_text() for file in files) == tables


N = 500
RANDOM = random.Random(5)
A = [0, P - 1, P - 1, *(RANDOM.randrange(P) for _ in range(N - 3))]
B = [P - 1, P - 1, 1, *(RANDOM.randrange(P) for _ in range(N - 3))]
EXPECTED = [a * b % P for a, b in zip(A, B, strict=True)]


@pytest.fixture(scope="module")
def good() -> Simulator:
    return Simulator(GOOD, widths=WIDTHS)


def test_results_and_times_at_full_rate(good: Simulator) -> None:
    run = good.run(A, B)
    assert run.results == EXPECTED
    assert run.violations == []
    assert set(run.latencies) == {2}
    assert run.accepted == list(range(1, N + 1))
    assert run.taken == run.valid
    assert run.cycles == N + 3


@pytest.mark.parametrize("seed", range(8))
def test_good_core_survives_pauses_and_stalls(good: Simulator, seed: int) -> None:
    run = good.run(A, B, gap=0.3, stall=0.3, seed=seed)
    assert run.results == EXPECTED
    assert run.violations == []
    assert run.accepted[-1] > N * 1.3
    assert run.taken != run.valid


def test_same_seed_same_run(good: Simulator) -> None:
    runs = [good.run(A, B, gap=0.2, stall=0.2, seed=seed) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize("first", [0, 1, 7])
@pytest.mark.parametrize("reset", [1, 3, 40])
def test_operands_come_in_the_cycle_that_is_asked_for(good: Simulator, first: int, reset: int) -> None:
    run = good.run(A, B, start=Start(reset, first, noise=first == 1))
    assert run.results == EXPECTED
    assert run.accepted[0] == first


def test_a_run_that_is_cut_off_begins_anew(good: Simulator) -> None:
    runs = [good.run(A, B, gap=0.3, stall=0.3, start=Start(restart=cycle)) for cycle in (0, 1, 100)]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0].results == EXPECTED


def _faulty_starts(verilog: str, start: Start) -> int:
    simulator = Simulator(verilog, widths=WIDTHS)
    runs = [simulator.run(A[:20], B[:20], seed=seed, start=start, timeout=1000) for seed in range(16)]
    return sum(bool(run.violations) or run.results != EXPECTED[:20] for run in runs)


def test_faults_of_the_start_are_seen() -> None:
    assert _faulty_starts(SLOW_RESET, Start(reset=1, noise=False))
    assert not _faulty_starts(SLOW_RESET, Start(reset=2, noise=False))
    assert _faulty_starts(FULL_NOT_RESET, Start(noise=False))  # from the contents at power-up
    assert _faulty_starts(FULL_NOT_RESET, Start(restart=10, noise=False)) == 16  # from a product under way
    with pytest.raises(ValueError, match="reset must last at least 1 cycle"):
        Start(reset=0)


def _violations(verilog: str) -> str:
    simulator = Simulator(verilog, widths=WIDTHS)
    runs = [simulator.run(A, B, gap=0.2, stall=0.3, seed=seed, timeout=1000) for seed in range(8)]
    return "\n".join(line for run in runs for line in run.violations)


def test_faults_of_the_handshake_are_reported() -> None:
    assert "o_valid dropped" in _violations(VALID_DROPPED)
    assert f"results of {N} operands" in _violations(READY_IGNORED)
    assert "o_r changed" in _violations(RESULT_CHANGED)
    assert "straight after reset" in _violations(NO_RESET)
    assert "timeout" in _violations(VALID_WAITS_FOR_READY)
    assert "without an operand" in _violations(EXTRA_RESULT)


def test_a_core_that_always_shows_a_result_and_takes_no_operands_ends_the_run() -> None:
    stuck = """
    module core(input clk, input rst, input i_valid, output i_ready, input [7:0] i_a, input [7:0] i_b,
      output o_valid, input o_ready, output [7:0] o_r);
      assign i_ready = 0, o_valid = 1, o_r = 0;
    endmodule"""
    run = Simulator(stuck, widths=Widths(8, 8, 8)).run([1], [1], stall=0.5, timeout=50)
    assert run.results == []
    assert "timeout: 0 results of 1 operands" in "\n".join(run.violations)


def test_wrong_value_is_seen_in_the_results() -> None:
    run = Simulator(WRONG_VALUE, widths=WIDTHS).run(A, B)
    assert run.violations == []
    assert run.results != EXPECTED


def test_two_instances_run_independently() -> None:
    simulator = Simulator(GOOD, widths=WIDTHS, instances=2)
    one, two = simulator.run_pair((A, B), (B[:100], A[:100][::-1]), gap=0.2, stall=0.2)
    assert one.results == EXPECTED
    assert two.results == [b * a % P for b, a in zip(B[:100], A[:100][::-1], strict=True)]
    assert one.violations == two.violations == []
    assert one.accepted[:100] != two.accepted


@pytest.mark.parametrize("bits", [1, 8, 9, 33, 64, 65, 1000])
def test_every_kind_of_width(bits: int) -> None:
    verilog = f"""
    module core(input clk, input rst, input i_valid, output i_ready, input [{bits - 1}:0] i_a, input [{bits}:0] i_b,
      output o_valid, input o_ready, output [{2 * bits}:0] o_r);
      assign i_ready = o_ready, o_valid = i_valid, o_r = {{i_a, i_b}};
    endmodule"""
    simulator = Simulator(verilog, widths=Widths(bits, bits + 1, 2 * bits + 1))
    a = [RANDOM.getrandbits(bits) for _ in range(50)]
    b = [RANDOM.getrandbits(bits + 1) for _ in range(50)]
    run = simulator.run(a, b, gap=0.3, stall=0.3)
    assert run.violations == []
    assert run.results == [x << bits + 1 | y for x, y in zip(a, b, strict=True)]
    assert max(run.latencies) <= 0  # no register: a result can be valid before it is accepted


def test_refusals(good: Simulator) -> None:
    with pytest.raises(ValueError, match=r"operand b\[1\] = 4294967296 does not fit 32 bits"):
        good.run([1, 2], [1, 1 << 32])
    with pytest.raises(ValueError, match="stall must be in"):
        good.run([1], [1], stall=1.0)
    with pytest.raises(ToolError, match=r"verilator: .*log:"):
        Simulator("module core(; endmodule", widths=WIDTHS)
    assert good.run([], []).results == []


def test_what_is_compiled_once_has_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled header holds its path: caches that share the runtime through links must give the same one."""
    (tmp_path / "real").mkdir()
    found = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "verilator-runtime").symlink_to(tmp_path / "real")
        monkeypatch.setenv("MODMILL_CACHE", str(tmp_path / name))
        found.add(library._once(["key"]))
    assert len(found) == 1


def test_each_installation_of_zig_keeps_its_own_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = []
    for place in ("one", "two", "one"):
        zig = tools.Compiler(("zig", "c++"), "zig 1", tmp_path / place / "zig", gnu=False)
        monkeypatch.setattr(tools, "compiler", lambda zig=zig: zig)
        found.append(library._zig_caches(tmp_path)["ZIG_GLOBAL_CACHE_DIR"])
    assert found[0] == found[2] != found[1]
