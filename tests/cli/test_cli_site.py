# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands reproduce and view: what they refuse, and that a folder is served."""

import json
import subprocess
import sys
import threading
import urllib.request

import pytest
from command import modmill

from modmill.contract import UnsupportedError
from modmill.studies.site.site import MARK, require_replaceable


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "sorr", "-o", "x"), "no paper is called 'sorr'; there are sor, hbe, rsa64k, multistep"),
        (("reproduce", "sor", "-o", "x", "--json"), "--json prints the tables"),
        (("view", "tests"), "tests holds no site"),
    ],
)
def test_refusals_are_one_line(arguments, words):
    done = modmill(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_only_a_site_is_replaced(tmp_path):
    require_replaceable(tmp_path / "new")
    require_replaceable(tmp_path)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(UnsupportedError, match="exists and is not a site"):
        require_replaceable(tmp_path)
    (tmp_path / MARK).write_text(json.dumps({"files": ["index.html", MARK]}))
    require_replaceable(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UnsupportedError, match=r"holds notes\.txt"):
        require_replaceable(tmp_path)
    with pytest.raises(UnsupportedError, match="not a folder"):
        require_replaceable(tmp_path / "notes.txt")


def test_view_serves_a_folder_to_this_machine(tmp_path):
    (tmp_path / "index.html").write_text("<p>here</p>")
    command = [sys.executable, "-u", "-m", "modmill", "view", str(tmp_path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        deadline = threading.Timer(60, server.kill)
        deadline.start()
        try:
            address = server.stdout.readline().split(" at ")[1].split(";")[0]
            assert address.startswith("http://127.0.0.1:")
            assert urllib.request.urlopen(address).read() == b"<p>here</p>"
        finally:
            server.terminate()
            server.wait()
            deadline.cancel()
