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

from marks import long
from modmill.designs import DESIGNS
from modmill.report.engine_rows import measured_engines
from modmill.report.pages import NAVIGATION
from modmill.report.rows import read
from modmill.studies.papers.reproduce import PAPERS

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no chromium with chromedriver is installed")

ENGINES = Path(__file__).with_name("engines.jsonl")

USUAL = ("hbe", "sor-2m", "tenca-koc", "channel-reduce")
"""Designs with few and with many cycles, with and without rowers; the pages of the others are tested with the long
tests."""
PAGES = (
    *(name for name, _ in NAVIGATION), "rows.html", *(f"paper-{name}.html" for name in PAPERS),
    *(f"design-{d.name}.html" for d in DESIGNS),
)  # fmt: skip
VIEWS = (("light", 1600), ("light", 1024), ("dark", 390))
"""The colour scheme and the width of each view: colours do not change widths, so no scheme meets every width."""
WHOLE = {"index.html", "rows.html", "paper-multistep.html", "design-hbe.html"}
"""A page of each kind, which the suite sees in every view; it sees others in the first or the last, by turns."""


def viewed():
    """Pages with the views in which they are tested."""
    unusual = {f"design-{d.name}.html" for d in DESIGNS if d.name not in USUAL}
    for number, page in enumerate(PAGES):
        if page not in WHOLE | unusual:
            yield page, VIEWS[::2][number % 2 :][:1]
        yield (pytest.param if page in WHOLE else long)(page, VIEWS)


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
    driver.set_script_timeout(300)  # axe on the longest page, on a loaded machine
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


def wait(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


ALIKE = """
const links = '.sidebar-tree li:nth-child(n+6):not(.current), .toc-tree li:nth-child(n+6)';
for (const e of document.querySelectorAll(`tbody tr:nth-child(n+10), ${links}`)) e.remove();
const seen = {}, named = (e) => `${e.tagName} ${e.getAttribute('class')}`;
const enough = (kind) => (seen[kind] = (seen[kind] || 0) + 1) > 5;
for (const e of document.querySelectorAll('pre span, math')) if (enough(named(e))) e.replaceWith(e.textContent);
const drawn = 'svg .point, svg .js-line, svg .annotation, svg .step';
for (const e of document.querySelectorAll(`tbody tr:nth-child(n+3), .row, .erratum, .notes > li, ${drawn}`))
  if (enough(`${named(e.parentNode)} > ${named(e)}`)) e.remove();
"""
"""Leaves some of what is alike on a page: rows, links to pages, words of one colour in programs, formulas, errata,
points of plots. axe takes minutes for hundreds of them."""


def violations(browser):
    """What axe finds, with the places."""
    browser.execute_script(ALIKE)
    browser.execute_script(axe.AXE_SCRIPT)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => done(r.violations));"
    )
    return [(v["id"], [n["target"][0] for n in v["nodes"]][:3], v["nodes"][0]["failureSummary"][:300]) for v in found]


def sized(browser, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )


OVER = """
const room = document.documentElement.clientWidth, out = [];
if (document.documentElement.scrollWidth > room) out.push(`the page is ${document.documentElement.scrollWidth} wide`);
for (const e of document.querySelectorAll('main *')) {
  if (e.closest('.scroll, pre, svg, .hidden, [hidden], details:not([open]), .canvas')) continue;
  const box = e.getBoundingClientRect();
  if (box.width && box.right > room + 1) out.push(`${e.tagName} ${e.className} ends at ${box.right}`);
  if (e.tagName === 'CODE' && box.width < 60 && box.height > 200) out.push(`${e.textContent} is ${box.height} tall`);
}
return out;
"""


@pytest.mark.parametrize(("page", "views"), viewed())
def test_a_page_has_no_errors_and_no_requests_fits_and_passes_axe(browser, site, page, views):
    """At every width and in both colour schemes; axe for a phone and a wide screen."""
    try:
        for mode, width in views:
            scheme(browser, mode)
            sized(browser, width)
            opened(browser, site, page)
            assert browser.get_log("browser") == [], (mode, width)
            messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
            fetched = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
            assert fetched and [url for url in fetched if not url.startswith(("file:", "data:", "blob:"))] == []
            assert browser.execute_script(OVER) == [], (mode, width)
            if width != 1024:
                assert violations(browser) == [], (mode, width)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_does_not_fit_is_caught(browser, site, tmp_path):
    planted = (
        '<p style="width: 500px">wide</p><p style="width: 40px"><code style="display: inline-block; width: 30px">'
        + ("word " * 40 + "</code></p></main>")
    )
    for asset in ("style.css", "site.js"):
        shutil.copy(site / asset, tmp_path)
    (tmp_path / "papers.html").write_text((site / "papers.html").read_text().replace("</main>", planted))
    sized(browser, 390)
    opened(browser, tmp_path, "papers.html")
    found = browser.execute_script(OVER)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert any("P  ends at" in text for text in found) and any("tall" in text for text in found)


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
    found = set(labels(race))
    assert {"kbe", "kbe rowers=4", "kbe w=34"} <= found and all("kbe" in name for name in found)
    race.find_element("css selector", "input[name=loaded]").click()
    choose(race, "find", "loaded")
    assert labels(race) == []
    choose(race, "find", "")
    race.find_element("css selector", "input[name=loaded]").click()
    choose(race, "find", "")
    choose(race, "work", "Ed25519")
    assert len(labels(race)) > 15
    race.find_element("css selector", "input[name=predicted]").click()
    assert sorted(labels(race)) == ["karatsuba", "karatsuba-two-level", "pseudo-mersenne"]
    assert "3 of" in race.find_element("id", "shown").text


def test_the_front_is_that_of_the_chosen_weight(race):
    choose(race, "x", "rate")
    values = race.execute_script(
        "return [...document.querySelectorAll('#cores tbody tr')].filter((r) => !r.hidden && !r.dataset.predicted)"
        ".map((r) => [r.dataset.label, JSON.parse(r.dataset.values)])"
    )
    for weight in (0, 100, 5000):
        choose(race, "weight", str(weight))
        cores = [(name, v["rate"], v["lut"] + weight * v["dsp"]) for name, v in values if v["rate"]]
        best = {a for a, x, y in cores if not any(u >= x and w <= y and (u, w) != (x, y) for _, u, w in cores)}
        assert set(drawn(race)[1].split(", ")) == best
    script = "return document.getElementById('scatter').data.find((t) => t.name === 'limit of the slots').x"
    ends = race.execute_script(script)
    shares = {v["rate"]: v["share"] for _, v in values if v["share"]}
    assert len(ends) == 3 * sum(v["share"] is not None for _, v in values) > 12
    assert all(
        limit == pytest.approx(100 * rate / shares[rate]) for rate, limit in zip(ends[::3], ends[1::3], strict=True)
    )
    choose(race, "x", "us")
    assert race.execute_script(script) == []


BARS = """
const rows = [...document.querySelectorAll('#cores tbody tr')].filter((r) => !r.hidden), found = [];
for (const trace of document.getElementById('scatter').data)
  (trace.customdata ?? []).forEach(([label], k) => {
    const bar = trace.error_x, { spread = '', values } = rows.find((r) => r.dataset.label === label).dataset;
    found.push([spread, JSON.parse(values), trace.x[k], bar.array?.[k], bar.arrayminus?.[k]]);
  });
return found;
"""


HOLLOW = """
const found = [];
for (const trace of document.getElementById('scatter').data)
  (trace.customdata ?? []).forEach(([label], k) => {
    const up = trace.error_y;
    found.push([label, trace.marker.symbol[k], trace.y[k], up.array?.[k] ?? 0, up.arrayminus?.[k] ?? 0]);
  });
return found;
"""


def test_predicted_cores_are_hollow_with_error_bars_and_not_on_the_front(race):
    choose(race, "work", "P-256")
    choose(race, "y", "lut")
    found = race.execute_script(HOLLOW)
    hollow = {label for label, symbol, *_ in found if symbol.endswith("-open")}
    assert hollow == {label for label, *_ in found if label.endswith(", predicted")} and len(hollow) > 8
    barred = {label for label, _, y, more, less in found if more > 0 and 0 < less < y}
    bare = {label for label, *_, more, less in found if more == less == 0}
    assert barred <= hollow and bare == {label for label, *_ in found} - barred
    elsewhere = "//tr[@data-label='{}' and not(@hidden)]//span[contains(@data-formula, 'measured on')]"
    assert len(barred) > 8 and all(race.find_elements("xpath", elsewhere.format(label)) for label in bare & hollow)
    assert drawn(race)[1] and not hollow & set(drawn(race)[1].split(", "))
    race.find_element("css selector", "input[name=predicted]").click()
    assert not hollow & set(labels(race)) and drawn(race)[0] == len(found) - len(hollow)


def test_bars_go_from_the_slowest_seed_to_the_fastest(race):
    for axis in ("us", "rate"):
        choose(race, "x", axis)
        found = race.execute_script(BARS)
        assert any(spread for spread, *_ in found) and any(not spread for spread, *_ in found)
        for spread, v, x, more, less in found:
            ends = [float(end) * v["mhz"] for end in (spread or "1 1").split()]
            times = [v["latency"] / mhz if axis == "us" else mhz * 1e6 / v["interval"] for mhz in ends]
            assert [x - less, x + more] == pytest.approx(sorted(times), rel=1e-3)
    choose(race, "x", "latency")
    assert {(more, less) for *_, more, less in race.execute_script(BARS)} == {(None, None)}


def test_the_table_sorts_and_unmeasured_cells_stay_last(race):
    head = race.find_element("xpath", "//table[@id='cores']//th[.='µs a product']")
    for order in ("ascending", "descending"):
        head.find_element("tag name", "button").click()
        assert head.get_attribute("aria-sort") == order
        column = race.execute_script(
            "const k = arguments[0].cellIndex; return [...document.querySelectorAll('#cores tbody tr')]"
            ".filter((r) => !r.hidden).map((r) => r.cells[k].textContent)", head,
        )  # fmt: skip
        numbers = [float(text.removeprefix("≈ ").replace(",", "")) for text in column if text != "–"]
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
    _, figure = browser.find_elements("css selector", "section[data-section^='Figure 6'] .canvas")
    bars = browser.execute_script(
        "return [...arguments[0].querySelectorAll('.bars .point path')].map((p) =>"
        " [getComputedStyle(p).fill.startsWith('rgb'), p.getBoundingClientRect().height > 0])", figure,
    )  # fmt: skip
    series = browser.execute_script("return arguments[0].data.length", figure)
    assert series == 6 and len(bars) >= 15 + 9 and all(fill and high for fill, high in bars)


LABELS = """
return [...document.querySelectorAll(arguments[0] + ' .annotation-text')].map((e) => {
  const b = e.getBoundingClientRect();
  return [e.textContent, b.left, b.top, b.right, b.bottom];
});
"""


def overlapping(boxes):
    return [
        (a[0], b[0])
        for k, a in enumerate(boxes)
        for b in boxes[:k]
        if a[1] < b[3] - 1 and b[1] < a[3] - 1 and a[2] < b[4] - 1 and b[2] < a[4] - 1
    ]


def test_labels_in_plots_do_not_lie_on_one_another(race, site):
    sized(race, 1600)
    for x in ("us", "rate", "latency", "interval"):
        choose(race, "x", x)
        labels_here = race.execute_script(LABELS, "#scatter")
        assert len(labels_here) > 2 and overlapping(labels_here) == [], x
    opened(race, site, "scaling.html")
    for k in (1, 2, 3):
        names = race.execute_script(LABELS, f"#plot{k}")
        assert {"hbe", "kbe", "wide"} <= {name for name, *_ in names} and overlapping(names) == []
    assert overlapping([["a", 0, 0, 9, 9], ["b", 5, 5, 14, 14]])
    race.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


TITLES = """
return [...document.querySelectorAll('.canvas')].flatMap((canvas) => {
  const room = canvas.getBoundingClientRect();
  const boxes = ['.xtitle', '.ytitle', '.legend'].map((name) => canvas.querySelector(name)).filter(Boolean).map((e) => {
    const b = e.getBoundingClientRect();
    return [`${e.textContent.slice(0, 30)} of ${canvas.id}`, b.left, b.top, b.right, b.bottom];
  });
  const within = ([, x0, y0, x1, y1]) =>
    x0 > room.left - 2 && y0 > room.top - 2 && x1 < room.right + 2 && y1 < room.bottom + 2;
  return [[boxes, boxes.filter((box) => !within(box)).map(([name]) => name)]];
});
"""


@pytest.mark.parametrize("width", [width for _, width in VIEWS])
@pytest.mark.parametrize("page", ["index.html", "scaling.html", "paper-sor.html", "design-hbe.html"])
def test_titles_and_legends_of_plots_are_whole_and_do_not_collide(browser, site, page, width):
    sized(browser, width)
    opened(browser, site, page)
    found = browser.execute_script(TITLES)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert found and [[out, overlapping(boxes)] for boxes, out in found if out or overlapping(boxes)] == []


def test_every_axis_has_numbers(race, engines):
    ticks = "return ['x', 'y'].map((a) => document.querySelectorAll(`#scatter .${a}tick text`).length)"
    for x in ("us", "rate", "latency", "interval"):
        for y in ("sum", "dsp", "lut"):
            choose(race, "x", x)
            choose(race, "y", y)
            assert min(race.execute_script(ticks)) >= 2, (x, y)
    for page in ("rsa.html", "ecc.html"):
        opened(race, engines, page)
        assert min(race.execute_script(ticks)) >= 2


def test_choices_are_in_the_address(race, site):
    choose(race, "work", "P-256")
    choose(race, "find", "kbe")
    race.find_element("css selector", "input[name=loaded]").click()
    race.find_element("xpath", "//table[@id='cores']//button[.='LUT']").click()
    before, address = labels(race), race.current_url
    assert "work=P-256" in address and "find=kbe" in address and "loaded=false" in address and "sort=" in address
    race.get("about:blank")
    race.get(address)
    wait(lambda: race.execute_script("return !!document.querySelector('#scatter .main-svg')"))
    assert labels(race) == before and before
    opened(race, site, "errata.html")
    choose_in(race, "verdict", "misprint")
    shown = race.execute_script("return document.querySelectorAll('.erratum:not([hidden])').length")
    assert f"{shown} of " in race.find_element("css selector", ".shown").text and "verdict=misprint" in race.current_url
    assert 0 < shown < race.execute_script("return document.querySelectorAll('.erratum').length")


def choose_in(browser, name, value):
    browser.execute_script(
        "const e = document.querySelector(`.filter [name=${arguments[0]}]`); e.value = arguments[1];"
        "e.dispatchEvent(new Event('input', { bubbles: true }));", name, value,
    )  # fmt: skip


def test_a_number_with_several_rows_leads_to_all_of_them(race):
    link = race.find_element("xpath", "//tr[@data-label='hbe' and not(@hidden)]//a[contains(@data-rows, ' ')]")
    wanted = link.get_attribute("data-rows").split()
    link.click()
    wait(lambda: "rows.html" in race.current_url and race.find_elements("css selector", ".shown"))
    wait(lambda: race.find_element("css selector", ".shown").text)
    rows = race.execute_script(
        "return [...document.querySelectorAll('tr[id]:not([hidden])')].map((r) => r.id.slice(2))"
    )
    assert sorted(rows) == sorted(wanted)


def test_a_cycle_chart_says_where_it_ends_and_zooms(browser, site):
    scheme(browser, "light")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened(browser, site, "design-hbe.html")
    at = browser.find_element("css selector", ".zoom output")
    first, last, of = (int(word) for word in at.text.split() if word.isdigit())
    assert first == 0 and last < of == 180
    assert browser.find_elements("css selector", ".lanes .more-right")
    widths = []
    for press in ("fit", "in", "in", "out", "names"):
        browser.find_element("css selector", f"[data-zoom={press}]").click()
        widths.append(browser.execute_script("return document.querySelector('.cycles').getBoundingClientRect().width"))
        if press == "fit":
            wait(lambda: at.text == "cycles 0 to 179 of 180")
    assert widths[0] < widths[1] < widths[2] > widths[3] == widths[1]
    names = browser.execute_script("return document.querySelector('.units').getBoundingClientRect().left")
    browser.execute_script("document.querySelector('[data-chart]').scrollLeft = 1e6")
    wait(lambda: at.text.endswith("to 179 of 180"))
    assert names == browser.execute_script("return document.querySelector('.units').getBoundingClientRect().left")


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
