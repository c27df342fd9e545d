# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The seal of a folder finds an edit of any byte of any file."""

import json

import pytest

from modmill.report.seal import folder_texts, record_text, seal_differences, sealed

FILES = {"core.v": "module core;\nendmodule\n", "README.md": "A core.\n"}
RECORD = {"modmill": "1.0", "given": {"w": 3}}


def folder(record=RECORD, files=FILES):
    return {**files, "core.json": record_text(sealed(record, files))}


def test_an_untouched_folder_has_no_difference():
    assert seal_differences(folder(), "core.json") == []


@pytest.mark.parametrize("name", [*FILES, "core.json"])
def test_an_edit_of_any_byte_is_found(name):
    texts = folder()
    text = texts[name]
    for place in range(len(text)):
        other = chr(ord(text[place]) ^ 1)
        try:
            found = seal_differences({**texts, name: text[:place] + other + text[place + 1 :]}, "core.json")
        except ValueError as error:
            assert "core.json is malformed" in str(error)
        else:
            assert found


@pytest.mark.parametrize("edit", [lambda t: t + " ", lambda t: t.replace("\n", "\r\n"), lambda t: t + "\n"])
@pytest.mark.parametrize("name", [*FILES, "core.json"])
def test_space_and_line_ends_count(name, edit):
    texts = folder()
    assert seal_differences({**texts, name: edit(texts[name])}, "core.json")


def test_a_key_that_stands_twice_is_found():
    texts = folder()
    twice = texts["core.json"].replace('"modmill"', '"modmill": "0.9",\n  "modmill"', 1)
    assert json.loads(twice) == json.loads(texts["core.json"])
    assert seal_differences({**texts, "core.json": twice}, "core.json")


def test_files_that_come_and_go_are_found():
    texts = folder()
    assert "list" in seal_differences({**texts, "new.v": ""}, "core.json")[0]
    assert "missing" in seal_differences({"core.json": texts["core.json"]}, "core.json")[0]


def test_a_record_without_a_seal_is_found():
    assert seal_differences({**FILES, "core.json": record_text(RECORD)}, "core.json")


def test_sealing_again_changes_nothing():
    once = sealed(RECORD, FILES)
    assert sealed(once, FILES) == once


def test_files_are_read_with_their_line_ends(tmp_path):
    (tmp_path / "a").write_bytes(b"x\r\n")
    assert folder_texts(tmp_path, ["a", "b"]) == {"a": "x\r\n"}
    (tmp_path / "b").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="not a text"):
        folder_texts(tmp_path, ["b"])
