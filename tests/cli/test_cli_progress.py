# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Progress: lines without a terminal, a bar on one; -q and -v; the message of Ctrl-C."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from command import SOURCE, modmill

from modmill.cli import progress
from modmill.flow import tools

PROGRAM = """
import sys, time
from modmill.cli import progress
progress.EVERY, progress.FIRST = 0.2, 0.1
with progress.display(quiet={quiet}, verbose=False):
    for n in range(5):
        progress.show("counting [x]", n, 5)
        time.sleep(0.3)
    print("result " + "word " * 40)
"""


def program(quiet=False, **options):
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "80"}
    return subprocess.Popen([sys.executable, "-c", PROGRAM.format(quiet=quiet)], env=environment, **options)


def test_lines_without_a_terminal_say_how_much_is_done_and_left():
    run = program(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert out == f"result {'word ' * 40}\n"
    lines = err.splitlines()
    assert len(lines) >= 3
    assert all(re.fullmatch(r"modmill: \d s: counting \[x\] \(\d of 5(, about \d s left)?\)", line) for line in lines)
    assert "left" in lines[-1]


def test_quiet_says_nothing():
    run = program(quiet=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert out.startswith("result") and err == ""


def terminal(out=None):
    """What a terminal receives from the program; ``out``: where stdout goes, by default there too."""
    ours, theirs = pty.openpty()
    run = program(stdout=out or theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert run.wait(60) == 0
    return b"".join(parts).decode()


def test_a_bar_on_a_terminal_gives_way_to_the_result():
    text = terminal()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "━" in text and "of 5, about" in plain and "counting [x]" in plain
    last = text.rindex("━")
    assert "\x1b[2K" in text[last:], "the bar was not cleared"
    assert f"result {'word ' * 40}" in text[last:].replace("\r\n", "\n"), "the result was changed"


def test_the_result_goes_into_a_file_and_the_bar_to_the_terminal(tmp_path):
    with (tmp_path / "out").open("w") as out:
        text = terminal(out)
    assert "━" in text and "result" not in text
    assert (tmp_path / "out").read_text() == f"result {'word ' * 40}\n"


def test_verbose_shows_each_step_and_command(capsys):
    with progress.display(quiet=False, verbose=True):
        progress.show("checking")
        assert tools.run(["echo", "hello"], name="yosys") == "hello\n"
        progress.note("noted")
    said = [re.sub(r"\d+ s", "N s", line) for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "modmill: N s: checking",
        "modmill: N s: running Yosys",
        "modmill: N s: echo hello",
        "modmill: noted",
    ]
    with progress.display(quiet=True, verbose=False):
        progress.show("checking")
        tools.step("more")
        progress.note("noted")
    tools.step("outside")
    progress.show("outside")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [("-q", "bases"), ("bases", "-q"), ("bases", "-v"), ("-v", "bases")])
def test_the_options_stand_before_or_behind_the_command(words):
    done = modmill(*words, "-m", "97", "-w", "12")
    assert done.returncode == 0 and done.stdout
    assert ("searching moduli of 12 bits" in done.stderr) == ("-v" in words)


def interrupted(*words, after, seconds=60):
    """Stderr of a command that gets Ctrl-C once its stderr holds ``after``."""
    command = [sys.executable, "-m", "modmill", *words]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (lines and after in lines[-1]):
        lines.append(run.stderr.readline())
    run.send_signal(signal.SIGINT)
    _, rest = run.communicate(timeout=60)
    assert run.returncode == 130
    return [line for line in rest.splitlines() if not re.match(r"modmill: \d+ s: ", line)]


def test_control_c_in_reproduce_says_one_line():
    """While cores are elaborated: Amaranth would warn of each component that is not used."""
    said = interrupted("reproduce", "sor", "--emit", "-v", after="emitting")
    assert said == ["modmill: interrupted; rows that were measured are kept; the same command goes on from them"]


def test_control_c_in_build_leaves_no_folder(tmp_path):
    said = interrupted("build", "sor-ring", "-m", "P-256", "-v", "-o", str(tmp_path / "core"), after="emitting")
    assert said == [f"modmill: interrupted; {tmp_path / 'core'} was not written"]
    assert not list(tmp_path.iterdir())


def test_control_c_while_modmill_starts_says_one_line():
    code = (
        "import modmill.cli, os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['modmill', 'designs']\n"
        "modmill.cli.main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "modmill: interrupted\n")
