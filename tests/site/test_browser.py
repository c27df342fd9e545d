# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The site in a real browser, from the file system: no errors, axe, the race, hovering, the keyboard, phone and print.

Skipped where no Chromium with its driver is installed (Debian: ``apt install chromium chromium-driver``)."""

import json
import shutil
import time
from pathlib import Path

import pytest
from axe_core_python import base as axe
from selenium import webdriver

from modmill.report.engine_rows import measured_engines
from modmill.report.rows import read

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed")

ENGINES = Path(__file__).with_name("engines.jsonl")

PAGES = (
    "index.html", "designs.html", "design-sor-2m.html", "design-kbe.html", "design-channel-reduce.html", "papers.html",
    "paper-sor.html", "errata.html", "scaling.html", "method.html",
)  # fmt: skip
"""One of each kind, and of the pages of designs one with few and one with many cycles."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    options = webdriver.chrome.options.Options()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000",
        f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.chrome.service.Service(DRIVER))
    yield driver
    driver.quit()


def scheme(browser, name):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]}
    )


def opened(browser, site, page):
    """Open a page; its plots are drawn when this returns."""
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get((site / page).as_uri())
    wait(lambda: browser.execute_script(
        "return [...document.querySelectorAll('.canvas')].every((e) => e.querySelector('.main-svg'))"
    ))  # fmt: skip


def wait(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def violations(browser):
    """What axe finds, with the places."""
    browser.execute_script(axe.AXE_SCRIPT)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => done(r.violations));"
    )
    return [(v["id"], [n["target"][0] for n in v["nodes"]][:3], v["nodes"][0]["failureSummary"][:300]) for v in found]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_errors_no_requests_and_passes_axe(browser, site, page):
    scheme(browser, "light" if PAGES.index(page) % 2 else "dark")
    opened(browser, site, page)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    fetched = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert fetched and [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))] == []
    assert violations(browser) == []
    wide, room = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room


def test_axe_and_the_log_catch_planted_faults(browser, site, tmp_path):
    text = (
        (site / "papers.html").read_text().replace("</main>", '<p style="color:#eee"><img src="x.png">pale</p></main>')
    )
    for asset in ("style.css", "site.js"):
        shutil.copy(site / asset, tmp_path)
    (tmp_path / "papers.html").write_text(text.replace("</body>", "<script>throw Error('planted')</script></body>"))
    scheme(browser, "light")
    opened(browser, tmp_path, "papers.html")
    assert {"image-alt", "color-contrast"} <= {name for name, *_ in violations(browser)}
    assert any("planted" in entry["message"] for entry in browser.get_log("browser"))


@pytest.fixture
def race(browser, site):
    scheme(browser, "light")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened(browser, site, "index.html")
    return browser


def choose(browser, name, value):
    browser.execute_script(
        "const e = document.querySelector(`#race [name=${arguments[0]}]`); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', { bubbles: true }));", name, value,
    )  # fmt: skip


def labels(browser):
    """The cores that the table shows."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#cores tbody tr')].filter((r) => !r.hidden).map((r) => r.dataset.label)"
    )


def drawn(browser):
    return browser.execute_script("const d = document.getElementById('scatter').dataset; return [+d.points, d.front]")


def test_the_race_filters_by_modulus_family_and_words(race):
    here = labels(race)
    assert {"hbe", "kbe", "montgomery-array", "pseudo-mersenne", "multistep loaded s=1"} <= set(here)
    points, front = drawn(race)
    assert 5 < points <= len(here) and "mcivor" in front
    race.find_element("css selector", "input[value=bits]").click()
    assert not any("multistep" in name for name in labels(race)) and drawn(race)[0] < points
    choose(race, "find", "kbe")
    assert set(labels(race)) == {"kbe", "kbe rowers=4", "kbe rowers=8", "kbe w=24", "kbe w=28", "kbe w=34"}
    choose(race, "find", "")
    choose(race, "work", "Ed25519")
    assert labels(race) == ["pseudo-mersenne"]
    assert "1 of" in race.find_element("id", "shown").text


def test_the_front_is_that_of_the_chosen_weight(race):
    choose(race, "x", "rate")
    values = race.execute_script(
        "return [...document.querySelectorAll('#cores tbody tr')].filter((r) => !r.hidden).map((r) =>"
        " [r.dataset.label, JSON.parse(r.dataset.values)])"
    )
    for weight in (0, 100, 5000):
        choose(race, "weight", str(weight))
        cores = [(name, v["rate"], v["lut"] + weight * v["dsp"]) for name, v in values if v["rate"]]
        best = {a for a, x, y in cores if not any(u >= x and w <= y and (u, w) != (x, y) for _, u, w in cores)}
        assert set(drawn(race)[1].split(", ")) == best


def test_the_table_sorts_and_unmeasured_cells_stay_last(race):
    head = race.find_element("xpath", "//table[@id='cores']//th[.='µs a product']")
    for order in ("ascending", "descending"):
        head.find_element("tag name", "button").click()
        assert head.get_attribute("aria-sort") == order
        column = race.execute_script(
            "const k = arguments[0].cellIndex; return [...document.querySelectorAll('#cores tbody tr')]"
            ".filter((r) => !r.hidden).map((r) => r.cells[k].textContent)", head,
        )  # fmt: skip
        numbers = [float(text.replace(",", "")) for text in column if text != "–"]
        assert numbers == sorted(numbers, reverse=order == "descending") and len(numbers) > 5
        assert set(column[len(numbers) :]) == {"–"}


def test_hovering_a_point_and_focusing_a_core_show_its_values(race):
    action = webdriver.ActionChains(race)
    point = race.find_element("css selector", "#scatter .scatterlayer .points path")
    action.move_to_element(point).perform()
    wait(lambda: race.find_elements("css selector", "#scatter .hovertext"))
    said = race.find_element("id", "scatter-said").text
    assert "latency, µs" in said and race.find_elements("css selector", "tr.lit")
    action.move_to_element(race.find_element("tag name", "h1")).perform()
    link = race.find_element("css selector", "#cores tbody tr:not([hidden]) a[href='design-hbe.html']")
    race.execute_script("arguments[0].focus({ preventScroll: true })", link)
    wait(lambda: "hbe" in race.find_element("id", "scatter-said").text)


def test_a_cycle_chart_tells_step_operands_and_unit(browser, site):
    opened(browser, site, "design-sor-2m.html")
    said = browser.find_element("id", "cycles-said")
    step = browser.find_element("css selector", ".step[data-name=L3]")
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", step)
    webdriver.ActionChains(browser).move_to_element(step).perform()
    assert said.text == "L3 on mul1, cycles 6 to 7, reads G"
    region = browser.find_element("css selector", "[data-chart]")
    browser.execute_script("arguments[0].focus({ preventScroll: true })", region)
    webdriver.ActionChains(browser).send_keys(webdriver.Keys.ARROW_RIGHT).perform()
    assert said.text.startswith("L5 on mul1")


def test_keyboard_and_theme(browser, site):
    scheme(browser, "light")
    opened(browser, site, "scaling.html")
    body = browser.find_element("tag name", "body")
    body.send_keys(webdriver.Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the text"
    before = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    browser.find_element("css selector", "[data-theme-switch]").send_keys(webdriver.Keys.ENTER)
    after = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    browser.execute_script("localStorage.clear()")
    assert before != after


def test_figure_6_shows_what_is_printed_and_what_is_ours(browser, site):
    opened(browser, site, "paper-sor.html")
    bars = browser.execute_script(
        "return [...document.querySelectorAll('#plot6-1 .bars .point path')].map((p) =>"
        " [getComputedStyle(p).fill.startsWith('rgb'), p.getBoundingClientRect().height > 0])"
    )
    series = browser.execute_script("return document.getElementById('plot6-1').data.length")
    assert series == 6 and len(bars) >= 15 + 9 and all(fill and high for fill, high in bars)


@pytest.mark.parametrize("page", ["index.html", "design-kbe.html", "paper-sor.html", "scaling.html", "errata.html"])
def test_a_phone_scrolls_in_one_direction(browser, site, page):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        opened(browser, site, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_print_is_light_and_has_no_controls(browser, site):
    scheme(browser, "dark")
    opened(browser, site, "index.html")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return document.documentElement.dataset.theme") == "light"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not browser.find_element("id", "race").is_displayed()
        assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


# ---------------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize(("page", "mode"), [("ecc.html", "light"), ("rsa.html", "dark")])
def test_pages_of_engines_pass_as_the_others_do(browser, engines, page, mode):
    scheme(browser, mode)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened(browser, engines, page)
    assert browser.get_log("browser") == [] and violations(browser) == []
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 380, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    opened(browser, engines, page)
    try:
        wide, room = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= room
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_race_of_engines_filters_and_sorts(browser, engines):
    scheme(browser, "light")
    opened(browser, engines, "ecc.html")
    works = [option.text for option in browser.find_elements("css selector", "select[name=work] option")]
    here = [e for e in measured_engines(read(ENGINES)) if e.kind == "ecc"]
    for k, words in enumerate(works):
        choose(browser, "work", str(k))
        mine = [e for e in here if e.work.title == words]
        assert sorted(labels(browser)) == sorted(e.label for e in mine) and mine
        for x in ("rate", "ms", "latency", "cycles"):
            for y in ("lut", "dsp"):
                choose(browser, "x", x)
                choose(browser, "y", y)
                assert drawn(browser)[0] == sum(e.numbers[x] is not None for e in mine)
    choose(browser, "work", str(works.index("P-256, any point, scalars of 256 bits")))
    assert f"of {len(here)} engines" in browser.find_element("id", "shown").text
    choose(browser, "find", "hbe")
    assert labels(browser) == ["hbe, 4 interleaved"]
    choose(browser, "find", "")
    button = browser.find_element("xpath", "//table[@id='cores']//button[.='one job, cycles']")
    button.click()
    p256 = sorted((e for e in here if e.work.subject == "P-256"), key=lambda e: e.numbers["latency"])
    assert labels(browser) == [e.label for e in p256]
    button.click()
    assert labels(browser) == [e.label for e in reversed(p256)]
    row = browser.find_element("css selector", "#cores tbody tr:not([hidden]) a[href='design-hbe.html']")
    browser.execute_script("arguments[0].focus()", row)
    assert "hbe, 4 interleaved: cycles an operation" in browser.find_element("id", "scatter-said").text


def test_a_link_to_an_engine_chooses_its_work(browser, engines):
    opened(browser, engines, "design-pseudo-mersenne.html")
    link = browser.find_element("xpath", "//a[starts-with(@href, 'ecc.html#e-')][contains(., '8 × 12')]")
    anchor = link.get_attribute("href").split("#")[1]
    link.click()
    wait(lambda: browser.execute_script("return !!document.querySelector('.canvas .main-svg')"))
    wait(lambda: browser.find_element("id", anchor).is_displayed())
    assert "pseudo-mersenne, 8 × 12 interleaved" in labels(browser)
    assert "Curve25519" in browser.find_element("css selector", "select[name=work] option:checked").text
