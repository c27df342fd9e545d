# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Wrong inputs of `soc demo` and `bitstream`: one line, and nothing is written."""

from command import refused

from modmill.cores.multiplier.build import build


def test_a_board_takes_an_engine_and_a_known_name(tmp_path):
    core = build("multistep", "29", s=2, word=3).write(tmp_path / "core", check=False)
    assert f"{core} holds a multiplier" in refused("bitstream", core)
    assert "the nearest is ulx3s-85f" in refused("bitstream", core, "--board", "ulx3s-85")
    assert "is not a folder" in refused("bitstream", tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["core"]


def test_a_folder_of_somebody_else_is_kept(tmp_path):
    (tmp_path / "mine").write_text("text")
    assert "holds mine, which no build wrote" in refused("-q", "soc", "demo", "--seed", "1", "-o", tmp_path)
