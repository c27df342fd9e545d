// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Interaction on the pages: theme, plots, the race, sorting, cycle charts, copying. Without it every number is still in
// a table. Plots take their colours from the style sheet and are redrawn when the theme changes.
"use strict";

const root = document.documentElement;
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const count = (x, digits = 4) => Number(x.toPrecision(digits)).toLocaleString("en-US", { maximumSignificantDigits: digits });

// ---- theme -------------------------------------------------------------------------------------------------------

const kept = (() => { try { return localStorage; } catch { return null; } })();
if (kept?.getItem("theme")) root.dataset.theme = kept.getItem("theme");
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

function themeSwitch() {
  const button = document.querySelector("[data-theme-switch]");
  const say = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept?.setItem("theme", root.dataset.theme);
    say();
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { say(); drawAll(); });
  say();
}

// ---- plots -------------------------------------------------------------------------------------------------------

const drawn = [];
const drawAll = () => drawn.forEach((draw) => draw());
const OPTIONS = { responsive: true, displayModeBar: false };
const ORDER = ["rns-montgomery", "sum-of-residues", "digits", "bits", "special"];

function layout(x, y, more = {}) {
  const axis = (title) => ({
    title: { text: title, standoff: 10 }, gridcolor: colour("rule"), zerolinecolor: colour("rule"), linecolor: colour("quiet"),
    tickcolor: colour("rule"), automargin: true,
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(root).getPropertyValue("--sans"), size: 13, color: colour("ink") },
    margin: { l: 64, r: 16, t: 12, b: 56 }, hovermode: "closest", legend: { orientation: "h", y: -0.22, font: { size: 12 } },
    hoverlabel: { bgcolor: colour("tint"), bordercolor: colour("quiet"), font: { color: colour("ink") } },
    xaxis: { ...axis(x), ...more.xaxis }, yaxis: { ...axis(y), ...more.yaxis }, ...more.rest,
  };
}

function plot(element) {
  const data = JSON.parse(document.getElementById(element.dataset.plot).textContent);
  const names = data.series.every((s) => s.points.every(([x]) => typeof x === "string"));
  const key = (s) => s.family || s.name.split(",")[0]; // printed and measured series of one design have one colour
  const order = [...new Set(data.series.map(key))];
  drawn.push(() => {
    const told = new Set(); // one entry of the legend for a family's lines, one for its points
    const traces = data.series.map((s) => {
      const entry = s.group && `${s.group}, ${s.kind}`;
      const first = !entry || !told.has(entry);
      told.add(entry);
      const tone = colour(s.family || ORDER[order.indexOf(key(s)) % ORDER.length]);
      const bars = data.style === "bars";
      const points = data.style === "points" || s.kind === "measured";
      return {
        name: entry && data.series.length > 6 ? entry : s.name, showlegend: first || data.series.length <= 6,
        legendgroup: entry || s.name, meta: s.name, x: s.points.map(([x]) => x), y: s.points.map(([, y]) => y), type: bars ? "bar" : "scatter",
        mode: bars ? undefined : points && s.points.length < 2 ? "markers" : points && s.family ? "markers" : "lines+markers",
        marker: {
          color: tone, symbol: s.symbol, size: s.kind === "measured" ? 10 : 4,
          line: { width: s.kind === "measured" ? 1 : 0, color: colour("paper") },
          ...(bars && s.kind !== "printed" ? { opacity: 0.55, line: { width: s.kind === "measured" ? 2 : 0, color: colour("ink") } } : {}),
        },
        line: { color: tone, width: 1.6 },
        hovertemplate: `<b>%{meta}</b><br>${data.x}: %{x}<br>${data.y}: %{y:,.5~g}<br>${s.kind}<extra></extra>`,
      };
    });
    const log = (axis) => data.log.includes(axis) ? { type: "log", dtick: axis === "y" ? 1 : undefined } : {};
    const widths = !names && data.log.includes("x") ? { tickvals: [...new Set(data.series.flatMap((s) => s.points.map(([x]) => x)))].filter((x) => (x & (x - 1)) === 0) } : {};
    if (widths.tickvals) widths.ticktext = widths.tickvals.map(String);
    const more = { xaxis: { ...log("x"), ...widths }, yaxis: log("y"), rest: { barmode: "group", showlegend: data.series.length > 1 } };
    Plotly.react(element, traces, layout(data.x, data.y, more), OPTIONS);
  });
}

// ---- races of cores and of engines ----------------------------------------------------------------------------------------------------

function race(form) {
  const table = document.getElementById("cores");
  table.classList.add("filtered");
  const rows = all("tbody tr", table).map((tr) => ({ tr, ...tr.dataset, values: JSON.parse(tr.dataset.values) }));
  const scatter = document.getElementById("scatter");
  const said = document.getElementById("scatter-said");
  const words = said.textContent;
  const wordsOf = (select) => select.selectedOptions[0].textContent;
  let seen = [];

  const chosen = () => {
    const f = form.elements;
    const families = all("input[name=family]:checked", form).map((input) => input.value);
    const find = f.find.value.trim().toLowerCase();
    return rows.filter((r) => r.works.split(" ").includes(f.work.value) && r.target === f.target.value
      && families.includes(r.family) && (!find || r.label.toLowerCase().includes(find)));
  };
  const area = (v) => {
    const y = form.elements.y.value;
    return y === "sum" ? v.lut + Number(form.elements.weight.value || 0) * v.dsp : v[y];
  };

  function front(points, more) { // from the best speed on: each point is smaller than all before it
    const sorted = [...points].sort((a, b) => more ? b.x - a.x || a.y - b.y : a.x - b.x || a.y - b.y);
    const best = [];
    for (const p of sorted) if (!best.length || p.y < best[best.length - 1].y) best.push(p);
    return best;
  }

  function show() {
    const f = form.elements;
    const here = chosen();
    rows.forEach((r) => { r.tr.hidden = !here.includes(r); });
    const x = f.x.value;
    const points = here.map((r) => ({ ...r, x: r.values[x], y: area(r.values) })).filter((p) => p.x !== null && p.y !== null);
    const best = front(points, x === "rate");
    const xs = points.map((p) => Math.log(p.x));
    const along = (p) => (Math.log(p.x) - Math.min(...xs)) / (Math.max(...xs) - Math.min(...xs) || 1);
    const place = (p) => along(p) < 0.2 ? "top right" : along(p) > 0.8 ? "top left" : "top center"; // of a label, inside the chart
    seen = [];
    const traces = ORDER.map((family) => {
      const some = points.filter((p) => p.family === family);
      if (some.length) seen.push(some);
      return some.length && {
        name: document.querySelector(`.controls .${family}`).textContent.trim().slice(1).trim(), type: "scatter", mode: "markers+text",
        x: some.map((p) => p.x), y: some.map((p) => p.y), customdata: some.map((p) => [p.label, p.core]),
        text: some.map((p) => scatter.clientWidth > 640 && best.some((b) => b.core === p.core) ? p.label : ""), textposition: some.map(place), cliponaxis: false,
        textfont: { size: 11, color: colour("quiet") },
        marker: { color: colour(family), symbol: some[0].symbol, size: 12, line: { width: 1, color: colour("paper") } },
        hovertemplate: `<b>%{customdata[0]}</b><br>${wordsOf(f.x)}: %{x:,.4~g}<br>area: %{y:,.5~g}<extra></extra>`,
      };
    }).filter(Boolean);
    const line = {
      name: "Pareto front", type: "scatter", mode: "lines", hoverinfo: "skip", x: best.map((p) => p.x), y: best.map((p) => p.y),
      line: { color: colour("quiet"), width: 1.2, dash: "dot", shape: "linear" },
    };
    const y = f.y.value === "sum" ? `LUT + ${f.weight.value || 0} × DSP` : wordsOf(f.y);
    const log = { type: "log", dtick: "D2", tickformat: "~s" };
    const none = points.length ? [] : [{ text: "nothing here has both numbers: choose cycles, or another device", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }];
    const more = { xaxis: { ...log, tickformat: ["us", "ms"].includes(x) ? "~g" : "~s" }, yaxis: f.y.value === "dsp" ? {} : log, rest: { annotations: none } };
    Plotly.react(scatter, [line, ...traces], layout(wordsOf(f.x), y, more), OPTIONS);
    scatter.dataset.points = points.length;
    scatter.dataset.front = best.map((p) => p.label).join(", ");
    document.getElementById("shown").textContent = `${here.length} of ${rows.length} ${form.dataset.things}.`;
  }

  const tell = (name, x, y) => { said.textContent = `${name}: ${wordsOf(form.elements.x)} ${count(x)}, area ${count(y)}`; };
  const light = (core) => rows.forEach((r) => r.tr.classList.toggle("lit", r.core === core));
  drawn.push(() => {
    show();
    scatter.removeAllListeners?.("plotly_hover");
    scatter.removeAllListeners?.("plotly_unhover");
    scatter.removeAllListeners?.("plotly_click");
    scatter.on("plotly_hover", ({ points: [p] }) => {
      if (!p.customdata) return;
      light(p.customdata[1]);
      tell(p.customdata[0], p.x, p.y);
    });
    scatter.on("plotly_unhover", () => { light(null); said.textContent = words; });
    scatter.on("plotly_click", ({ points: [p] }) => {
      if (p.customdata) location.href = rows.find((r) => r.core === p.customdata[1]).tr.querySelector("a").href;
    });
  });
  rows.forEach((r) => {
    const point = () => {
      const curve = seen.findIndex((some) => some.some((p) => p.core === r.core));
      if (curve < 0) return;
      const place = seen[curve].findIndex((p) => p.core === r.core);
      Plotly.Fx.hover(scatter, [{ curveNumber: curve + 1, pointNumber: place }]); // shows the label without an event
      tell(r.label, seen[curve][place].x, seen[curve][place].y);
    };
    r.tr.addEventListener("mouseenter", point);
    r.tr.querySelector("a").addEventListener("focus", point);
    r.tr.addEventListener("mouseleave", () => { Plotly.Fx.unhover(scatter); said.textContent = words; });
  });
  form.addEventListener("input", drawAll);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.work.addEventListener("input", () => { // select a device with measurements for it
    const some = rows.filter((r) => r.works.split(" ").includes(form.elements.work.value));
    if (!some.some((r) => r.target === form.elements.target.value)) form.elements.target.value = some[0].target;
  }, { capture: true });
  const goTo = () => { // a linked row may be hidden by the current choice
    const named = location.hash && rows.find((r) => r.tr.id === location.hash.slice(1));
    if (!named) return;
    if (!named.works.split(" ").includes(form.elements.work.value)) form.elements.work.value = named.works.split(" ")[0];
    form.elements.target.value = named.target;
    form.elements.find.value = "";
    all("input[name=family]", form).forEach((input) => { input.checked = true; });
    drawAll();
    named.tr.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", goTo);
  addEventListener("load", goTo);
}

// ---- tables ------------------------------------------------------------------------------------------------------

function sortable(table) {
  const heads = all("thead th", table);
  heads.forEach((th, column) => th.querySelector("button")?.addEventListener("click", () => {
    const up = th.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const key = (tr) => {
      const cell = tr.cells[column];
      const text = cell.dataset.sort ?? cell.textContent.trim();
      if (!th.classList.contains("number")) return text;
      const number = parseFloat(text.replaceAll(",", ""));
      return Number.isNaN(number) ? null : number;
    };
    const sorted = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null); // unmeasured values stay last
      return (typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true })) * (up ? 1 : -1);
    });
    body.append(...sorted);
  }));
}

// ---- cycle charts ------------------------------------------------------------------------------------------------

function cycleChart(region) {
  const said = document.getElementById(region.dataset.chart);
  const steps = all(".step", region);
  const named = new Map(steps.map((g) => [g.dataset.name, g]));
  let at = -1;
  function light(g) {
    steps.forEach((other) => other.classList.remove("lit", "source"));
    if (!g) return;
    g.classList.add("lit");
    g.dataset.reads.split(", ").forEach((name) => named.get(name)?.classList.add("source"));
    const { name, unit, when, reads } = g.dataset;
    said.textContent = `${name} on ${unit}, ${when}${reads ? `, reads ${reads}` : ", reads operands from outside or nothing"}`;
  }
  steps.forEach((g, k) => g.addEventListener("mouseenter", () => { at = k; light(g); }));
  region.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    at = Math.min(Math.max(at + move, 0), steps.length - 1);
    light(steps[at]);
    const box = steps[at].getBBox();
    region.scrollLeft = Math.max(0, box.x - region.clientWidth / 2);
  });
}

// ---- copying -----------------------------------------------------------------------------------------------------

async function copy(button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch { // some browsers have no clipboard for pages from files: select the text instead
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Marked";
  }
  setTimeout(() => { button.textContent = words; }, 1500);
}

themeSwitch();
all("[data-plot]").forEach(plot);
all("form#race").forEach(race);
all("table.sortable").forEach(sortable);
all("[data-chart]").forEach(cycleChart);
all("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
if (window.Plotly) {
  drawAll();
  addEventListener("beforeprint", () => { root.dataset.wasTheme = root.dataset.theme ?? ""; root.dataset.theme = "light"; drawAll(); });
  addEventListener("afterprint", () => {
    if (root.dataset.wasTheme) root.dataset.theme = root.dataset.wasTheme; else delete root.dataset.theme;
    drawAll();
  });
}
