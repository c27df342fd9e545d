# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The documentation in a real browser, from the file system: no overflow, no errors, a search that finds pages."""

import pytest
from test_browser import BROWSER, DRIVER, browser, wait  # noqa: F401

pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed")


@pytest.fixture
def folder(site):
    """The documentation in the site."""
    return site / "docs"


def too_wide(browser, page, width):  # noqa: F811
    """By how many pixels a page is wider than a screen of this width."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page.as_uri())
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1024, 1600])
def test_no_page_is_wider_than_the_screen_or_has_an_error(browser, folder, width):  # noqa: F811
    browser.get_log("browser")
    pages = sorted(folder.rglob("*.html"))
    assert {page.name: over for page in pages if (over := too_wide(browser, page, width))} == {}
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_page_that_is_too_wide_is_found(browser, tmp_path):  # noqa: F811
    (tmp_path / "wide.html").write_text("<!doctype html><div style='width: 2000px'>wide</div>")
    assert too_wide(browser, tmp_path / "wide.html", 1024) > 900


@pytest.mark.slow
def test_search_works_from_the_file_system(browser, folder):  # noqa: F811
    browser.get((folder / "search.html").as_uri() + "?q=montgomery")
    found = "return document.querySelectorAll('#search-results li a').length"
    wait(lambda: browser.execute_script(found) > 10)
