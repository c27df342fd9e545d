# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The picture of the house shows the imports that there are."""

from pathlib import Path

import pytest

from modmill.report.architecture import direct, picture, redrawn

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_in_the_docs_is_that_of_the_imports():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert text == redrawn(text, ROOT / "src" / "modmill"), "run ./mill readme"


def test_a_new_import_changes_the_picture(tmp_path):
    package = tmp_path / "house"
    (package / "attic").mkdir(parents=True)
    (package / "attic" / "__init__.py").write_text("")
    (package / "cellar.py").write_text("")
    before = picture(package)
    assert 'attic["<b>attic</b>"]' in before and "-->" not in before
    (package / "attic" / "box.py").write_text("def f():\n    from house import cellar\n")
    assert "attic --> cellar" in picture(package)


def test_an_arrow_that_follows_from_others_is_left_out():
    assert direct({"c": {"a", "b"}, "b": {"a"}, "a": set()}) == {"c": {"b"}, "b": {"a"}, "a": set()}


def test_a_page_without_marks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the page lacks"):
        redrawn("no picture", ROOT / "src" / "modmill")
