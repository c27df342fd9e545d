# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The documentation in a real browser, from the file system: no overflow, no errors, axe, a search that finds pages."""

import shutil

import pytest
from test_browser import BROWSER, DRIVER, VIEWS, browser, scheme, sized, violations, wait  # noqa: F401

from marks import long

pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed")


@pytest.fixture
def folder(site):
    """The documentation in the site."""
    return site / "docs"


def too_wide(browser, width):  # noqa: F811
    """By how many pixels the page is wider than a screen of this width."""
    sized(browser, width)
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.slow
@pytest.mark.parametrize("every", [6, long(1)])
def test_no_page_is_wider_than_the_screen_or_has_an_error_and_axe_finds_nothing(browser, folder, every):  # noqa: F811
    """axe for a phone or a wide screen, by turns, in the suite on every sixth page: the pages have one frame."""
    browser.get_log("browser")
    faults = {}
    for number, page in enumerate(sorted(folder.rglob("*.html"))):
        browser.get(page.as_uri())
        turn, more = divmod(number, every)
        views = VIEWS if turn % 2 else VIEWS[::-1]
        if over := [excess for _, width in views if (excess := too_wide(browser, width))]:
            faults[page.name] = over
        scheme(browser, views[-1][0])
        if not more and (found := violations(browser)):
            faults[page.name] = found
    assert faults == {}
    assert [entry["message"] for entry in browser.get_log("browser")] == []


@pytest.mark.slow
def test_axe_catches_what_cannot_be_reached_and_landmarks_without_names(browser, folder, tmp_path):  # noqa: F811
    text = (folder / "guide.html").read_text()
    shutil.copytree(folder / "_static", tmp_path / "_static")
    for lost in (' tabindex="0"', ' aria-label="Pages"', ' aria-label="On this page"'):
        assert lost in text
        text = text.replace(lost, "")
    (tmp_path / "page.html").write_text(text)
    sized(browser, 390)
    browser.get((tmp_path / "page.html").as_uri())
    assert {"scrollable-region-focusable", "landmark-unique"} <= {name for name, *_ in violations(browser)}


def test_a_page_that_is_too_wide_is_found(browser, tmp_path):  # noqa: F811
    (tmp_path / "wide.html").write_text("<!doctype html><div style='width: 2000px'>wide</div>")
    browser.get((tmp_path / "wide.html").as_uri())
    assert too_wide(browser, 1024) > 900


@pytest.mark.slow
def test_search_works_from_the_file_system(browser, folder):  # noqa: F811
    browser.get((folder / "search.html").as_uri() + "?q=montgomery")
    found = "return document.querySelectorAll('#search-results li a').length"
    wait(lambda: browser.execute_script(found) > 10)
