// SPDX-License-Identifier: Apache-2.0
// Copyright The Modmill authors
//
// Interaction on the pages: theme, plots, the race, filters, sorting, cycle charts, copying. Without it every number is
// still in a table. Plots take their colours from the style sheet and are redrawn when the theme or the width changes.
// Choices are kept in the fragment of the address (#work=P-256&x=rate), so that a link shows what its sender saw.
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

// ---- state in the address -------------------------------------------------------------------------------------------

const state = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

const valueOf = (control) => control.type === "checkbox" ? String(control.checked) : control.value;
const usualOf = (control) => control.type === "checkbox" ? String(control.defaultChecked)
  : control.options ? ([...control.options].find((option) => option.defaultSelected) ?? control.options[0]).value : control.defaultValue;
const nameOf = (control) => control.name === "family" ? control.value : control.name;
const controls = (form) => [...form.elements].filter((control) => control.name);

function keep(form, more = {}) { // what differs from the page's own choice
  const found = new URLSearchParams();
  for (const control of controls(form)) if (valueOf(control) !== usualOf(control)) found.set(nameOf(control), valueOf(control));
  for (const [name, value] of Object.entries(more)) if (value) found.set(name, value);
  history.replaceState(null, "", `#${found}`);
}

function restore(form) {
  const found = state();
  for (const control of controls(form)) {
    const value = found.get(nameOf(control)) ?? usualOf(control);
    if (control.type === "checkbox") control.checked = value === "true";
    else control.value = value;
    if (control.options && control.selectedIndex < 0) control.value = usualOf(control);
  }
}

// ---- plots -------------------------------------------------------------------------------------------------------

const drawn = [];
const drawAll = () => drawn.forEach((draw) => draw());
const OPTIONS = { responsive: true, displayModeBar: false };
const ORDER = ["rns-montgomery", "sum-of-residues", "digits", "bits", "special"];

function steps(low, high, about) { // round numbers from low to high
  const size = (high - low) / about, unit = 10 ** Math.floor(Math.log10(size));
  const step = unit * [1, 2, 5, 10].find((k) => k * unit >= size);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return found;
}

const brief = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });

function logAxis(values, about = 6) { // a logarithmic axis with numbers even if it is shorter than a decade
  const some = values.filter((v) => v > 0);
  if (!some.length) return { type: "log" };
  const [least, most] = [Math.log10(Math.min(...some)), Math.log10(Math.max(...some))];
  const edge = Math.max((most - least) * 0.08, 0.02);
  const [low, high] = [10 ** (least - edge), 10 ** (most + edge)];
  const powers = (digits) => {
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++)
      for (const digit of digits) if (digit * 10 ** k >= low && digit * 10 ** k <= high) found.push(digit * 10 ** k);
    return found;
  };
  const choices = [[1], [1, 3], [1, 2, 5]].map(powers).filter((found) => found.length > 2);
  const tickvals = choices.filter((found) => found.length <= about + 2).at(-1) ?? choices[0] ?? steps(low, high, 5);
  return { type: "log", range: [Math.log10(low), Math.log10(high)], tickvals, ticktext: tickvals.map((v) => brief.format(v)) };
}

const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text, size) => { pen.font = `${size}px ${getComputedStyle(document.body).getPropertyValue("--sans")}`; return pen.measureText(text).width; };
const apart = (a, b) => a.x1 <= b.x0 || b.x1 <= a.x0 || a.y1 <= b.y0 || b.y1 <= a.y0;

function labels(element, points, named) { // text of the named points where no point, no line between them and no other label is
  const { xaxis, yaxis } = element._fullLayout, size = 11;
  const at = (p) => [xaxis.d2p(p.x), yaxis.d2p(p.y)];
  const taken = points.map((p) => { const [x, y] = at(p); return { x0: x - 7, x1: x + 7, y0: y - 7, y1: y + 7 }; });
  named.slice(1).forEach((p, k) => {
    const [[x0, y0], [x1, y1]] = [at(named[k]), at(p)], parts = Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 6);
    for (let i = 1; i < parts; i++) {
      const [x, y] = [x0 + (x1 - x0) * i / parts, y0 + (y1 - y0) * i / parts];
      taken.push({ x0: x - 2, x1: x + 2, y0: y - 2, y1: y + 2 });
    }
  });
  const found = [];
  for (const p of named) {
    const [x, y] = at(p), wide = widthOf(p.label, size) + 4, high = size + 4;
    for (const [dx, dy] of [[1, 0], [0, -1], [0, 1], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1], [0, -2], [0, 2]]) {
      const cx = x + dx * (wide / 2 + 9), cy = y + dy * (high / 2 + 9);
      const box = { x0: cx - wide / 2, x1: cx + wide / 2, y0: cy - high / 2, y1: cy + high / 2 };
      if (box.x0 < 0 || box.x1 > xaxis._length || box.y0 < 0 || box.y1 > yaxis._length || !taken.every((other) => apart(box, other))) continue;
      taken.push(box);
      found.push({ text: p.label, x: Math.log10(p.x), y: yaxis.type === "log" ? Math.log10(p.y) : p.y, xshift: cx - x, yshift: y - cy, showarrow: false, font: { size, color: colour("ink") } });
      break;
    }
  }
  return found;
}

function ends(element, lines) { // names of lines beside their ends, in the margin, none over another
  const { xaxis, yaxis } = element._fullLayout, size = 11, step = size + 3;
  const places = lines.map((s) => { const [x, y] = s.points.at(-1); return { ...s, x, y, px: xaxis.d2p(x), py: yaxis.d2p(y) }; });
  places.sort((a, b) => a.py - b.py);
  places.forEach((p, k) => { p.at = Math.max(p.py, k ? places[k - 1].at + step : -Infinity); });
  for (let k = places.length - 1, limit = yaxis._length; k >= 0; k--, limit -= step) places[k].at = Math.min(places[k].at, limit);
  return places.map((p) => ({
    text: p.name, x: Math.log10(p.x), y: yaxis.type === "log" ? Math.log10(p.y) : p.y, ax: xaxis._length - p.px + 26, ay: p.at - p.py,
    xanchor: "left", showarrow: true, arrowhead: 0, arrowwidth: 0.7, arrowcolor: colour("step-rule"), standoff: 4, font: { size, color: p.tone },
  }));
}

function layout(x, y, more = {}) {
  const axis = (title) => ({
    title: { text: title, standoff: 10, font: { size: 14 } }, gridcolor: colour("rule"), zerolinecolor: colour("rule"), linecolor: colour("quiet"),
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
    const log = (axis) => !data.log.includes(axis) ? {} : axis === "x" && names ? { type: "log" } : logAxis(data.series.flatMap((s) => s.points.map((point) => point[axis === "x" ? 0 : 1])));
    const widths = !names && data.log.includes("x") ? { tickvals: [...new Set(data.series.flatMap((s) => s.points.map(([x]) => x)))].filter((x) => (x & (x - 1)) === 0) } : {};
    if (widths.tickvals) widths.ticktext = widths.tickvals.map(String);
    const lines = data.style === "lines" && element.clientWidth > 640
      ? data.series.filter((s) => s.kind === "predicted" && s.family).map((s) => ({ ...s, tone: colour(s.family) })) : [];
    const direct = lines.length > 2; // with few lines the legend is enough
    const rest = { barmode: "group", showlegend: data.series.length > 1 };
    if (direct) {
      traces.forEach((trace, k) => { trace.showlegend &&= data.series[k].kind !== "predicted"; });
      element.style.height = `${Math.max(430, 14 * lines.length + 130)}px`;
      rest.margin = { l: 64, r: 44 + Math.max(...lines.map((s) => widthOf(s.name, 11))), t: 12, b: 56 };
    } else if (element.clientWidth <= 640) { // the legend has a line for each entry, above the plot, where nothing else is
      const top = 12 + (rest.showlegend ? 29 * traces.filter((trace) => trace.showlegend).length : 0);
      element.style.height = `${(names ? 400 : 300) + top}px`;
      rest.margin = { l: 64, r: 16, t: top, b: 56 };
      rest.legend = { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: 12 } };
    } else {
      element.style.height = "";
    }
    const more = { xaxis: { ...log("x"), ...widths }, yaxis: log("y"), rest };
    Plotly.react(element, traces, layout(data.x, data.y, more), OPTIONS);
    if (direct) Plotly.relayout(element, { annotations: ends(element, lines) });
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
      && families.includes(r.family) && (!r.loaded || f.loaded.checked) && (!r.predicted || f.predicted.checked) && (!find || r.label.toLowerCase().includes(find)));
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

  function bars(some, x) { // from the slowest seed to the fastest, on an axis that depends on the clock
    const rate = x === "rate";
    if (!rate && x !== "us" && x !== "ms") return { visible: false };
    const [slow, fast] = [0, 1].map((end) => some.map((p) => p.spread ? Number(p.spread.split(" ")[end]) : 1));
    const more = some.map((p, k) => p.x * (rate ? fast[k] - 1 : 1 / slow[k] - 1));
    const less = some.map((p, k) => p.x * (rate ? 1 - slow[k] : 1 - 1 / fast[k]));
    return { type: "data", symmetric: false, array: more, arrayminus: less, thickness: 1, width: 3, color: colour(some[0].family) };
  }

  function heights(some, y) { // error bars of predicted LUTs
    const ends = [0, 1].map((end) => some.map((p) => p.area && y !== "dsp" ? p.values.lut * (Number(p.area.split(" ")[end]) - 1) : 0));
    if (!ends[1].some(Boolean)) return { visible: false };
    return { type: "data", symmetric: false, array: ends[1], arrayminus: ends[0].map((end) => -end), thickness: 1, width: 3, color: colour(some[0].family) };
  }

  function show() {
    const f = form.elements;
    const here = chosen();
    rows.forEach((r) => { r.tr.hidden = !here.includes(r); });
    const x = f.x.value;
    const points = here.map((r) => ({ ...r, x: r.values[x], y: area(r.values) })).filter((p) => p.x !== null && p.y !== null);
    const best = front(points.filter((p) => !p.predicted), x === "rate");
    seen = [];
    const traces = ORDER.map((family) => {
      const some = points.filter((p) => p.family === family);
      if (some.length) seen.push(some);
      return some.length && {
        name: document.querySelector(`.controls .${family}`).textContent.trim().slice(1).trim(), type: "scatter", mode: "markers",
        x: some.map((p) => p.x), y: some.map((p) => p.y), customdata: some.map((p) => [p.label, p.core]),
        cliponaxis: false, error_x: bars(some, x), error_y: heights(some, f.y.value),
        marker: {
          color: colour(family), symbol: some.map((p) => p.predicted ? `${p.symbol}-open` : p.symbol), size: 12,
          line: { width: 1, color: some.map((p) => colour(p.predicted ? family : "paper")) },
        },
        hovertemplate: `<b>%{customdata[0]}</b><br>${wordsOf(f.x)}: %{x:,.4~g}<br>area: %{y:,.5~g}<extra></extra>`,
      };
    }).filter(Boolean);
    const line = {
      name: "Pareto front", type: "scatter", mode: "lines", hoverinfo: "skip", x: best.map((p) => p.x), y: best.map((p) => p.y),
      line: { color: colour("quiet"), width: 1.2, dash: "dot", shape: "linear" },
    };
    const limited = x === "rate" ? points.filter((p) => p.values.share) : [];
    const slots = {
      name: "limit of the slots", type: "scatter", mode: "lines+markers", hoverinfo: "skip", cliponaxis: false, line: { color: colour("quiet"), width: 0.8 },
      x: limited.flatMap((p) => [p.x, p.x * 100 / p.values.share, null]), y: limited.flatMap((p) => [p.y, p.y, null]),
      marker: { symbol: "line-ns-open", color: colour("quiet"), size: limited.flatMap(() => [0, 8, 0]) },
    };
    const y = f.y.value === "sum" ? `LUT + ${f.weight.value || 0} × DSP` : wordsOf(f.y);
    const none = points.length ? [] : [{ text: "nothing here has both numbers: choose cycles, or another device", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }];
    const more = { xaxis: logAxis([...points.map((p) => p.x), ...slots.x]), yaxis: f.y.value === "dsp" ? { rangemode: "tozero" } : logAxis(points.map((p) => p.y)), rest: { annotations: none } };
    Plotly.react(scatter, [line, ...traces, slots], layout(wordsOf(f.x), y, more), OPTIONS);
    if (points.length) Plotly.relayout(scatter, { annotations: labels(scatter, points, best) });
    scatter.dataset.points = points.length;
    scatter.dataset.front = best.map((p) => p.label).join(", ");
    document.getElementById("shown").textContent = `${here.length} of ${rows.length} ${form.dataset.things}.`;
  }

  const tell = (name, x, y) => { // the page below must not move under the pointer
    said.style.minHeight = `${said.offsetHeight}px`;
    said.textContent = `${name}: ${wordsOf(form.elements.x)} ${count(x)}, area ${count(y)}`;
  };
  const untell = () => { said.textContent = words; said.style.minHeight = ""; };
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
    scatter.on("plotly_unhover", () => { light(null); untell(); });
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
    r.tr.addEventListener("mouseleave", () => { Plotly.Fx.unhover(scatter); untell(); });
  });
  form.addEventListener("input", () => { drawAll(); keep(form, { sort: table.dataset.sorted }); });
  form.addEventListener("submit", (event) => event.preventDefault());
  table.addEventListener("sorted", () => keep(form, { sort: table.dataset.sorted }));
  form.elements.work.addEventListener("input", () => { // select a device with measurements for it
    const some = rows.filter((r) => r.works.split(" ").includes(form.elements.work.value));
    if (!some.some((r) => r.target === form.elements.target.value)) form.elements.target.value = some[0].target;
  }, { capture: true });
  const goTo = () => { // a linked row may be hidden by the current choice
    if (state().size) { restore(form); drawAll(); }
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

// ---- filters of lists and tables ----------------------------------------------------------------------------------

function filter(form) {
  const items = all(form.dataset.filters).map((item) => ({ item, text: `${item.textContent} ${item.dataset.words ?? ""}`.toLowerCase() }));
  const shown = form.querySelector(".shown"), more = form.querySelector(".more");
  let every = false; // whether more than data-most are wanted
  more.addEventListener("click", () => { every = true; show(); });
  function show() {
    const words = form.elements.find.value.toLowerCase().split(/\s+/);
    const only = state().get("rows")?.split(",").map((id) => `r-${id}`); // the rows behind one number
    const most = form.dataset.most && !only && !every && matchMedia("(max-width: 40rem)").matches ? Number(form.dataset.most) : Infinity;
    let count = 0;
    for (const { item, text } of items) {
      const chosen = controls(form).every((c) => c.name === "find" || !c.value || item.dataset[c.name] === c.value);
      item.hidden = only ? !only.includes(item.id) : !(chosen && words.every((word) => text.includes(word)));
      count += !item.hidden;
      item.hidden ||= count > most;
    }
    more.hidden = count <= most;
    more.textContent = `Show all ${count}`;
    shown.textContent = `${count} of ${items.length} ${form.dataset.things}${only ? ": those behind one number. Choose anything to see others." : count > most ? `, the first ${most} shown.` : "."}`;
    all("main section").forEach((s) => { if (s.querySelector(form.dataset.filters)) s.hidden = !s.querySelector(`${form.dataset.filters}:not([hidden])`); });
  }
  const read = () => { if (!location.hash || location.hash.includes("=")) restore(form); show(); };
  form.addEventListener("input", () => { keep(form); show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    const named = location.hash.includes("=") ? null : document.getElementById(location.hash.slice(1));
    if (named?.closest("[hidden]")) { form.reset(); every = true; show(); named.scrollIntoView(); } else read();
  });
  read();
}

function behind(event) { // a number that several rows stand behind leads to all of them
  const link = event.target.closest?.("a.m[data-rows]");
  const ids = link?.dataset.rows.split(" ") ?? [];
  if (ids.length > 1) link.href = `rows.html#rows=${ids.join(",")}`;
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
    table.dataset.sorted = `${up ? "" : "-"}${column}`;
    table.dispatchEvent(new Event("sorted"));
  }));
  const wanted = table.id === "cores" && state().get("sort");
  const head = wanted && heads[Math.abs(wanted)]?.querySelector("button");
  if (head) { head.click(); if (wanted.startsWith("-")) head.click(); }
}

// ---- cycle charts ------------------------------------------------------------------------------------------------

function zoom(region) { // the chart at any width of a cycle; the names of units stay where they are
  const svg = region.querySelector("svg"), tools = region.closest("figure").querySelector(".zoom");
  const own = Number(svg.dataset.cell), cycles = Number(svg.dataset.cycles), at = tools.querySelector("output");
  const places = all("[x], [x1]", svg).map((e) => [e, Object.fromEntries(["x", "x1", "x2", "width"].filter((a) => e.hasAttribute(a)).map((a) => [a, Number(e.getAttribute(a))]))]);
  let cell = own;
  function draw(size, middle = (region.scrollLeft + region.clientWidth / 2) / cell) {
    cell = Math.min(Math.max(size, 1.5), 120);
    const times = cell / own;
    for (const [e, was] of places) {
      for (const [name, value] of Object.entries(was)) e.setAttribute(name, name === "width" && e.tagName === "rect" ? Math.max((value + 1) * times - 1, 1) : value * times);
    }
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((n) => n * cell >= 26);
    all(".tick", svg).forEach((tick) => { tick.style.display = Number(tick.textContent) % every ? "none" : ""; });
    for (const g of all(".step", svg)) {
      const text = g.querySelector("text"), room = Math.floor((g.querySelector(".busy").width.baseVal.value - 4) / 6.6), name = g.dataset.name;
      text.textContent = name.length <= room ? name : room > 2 ? `${name.slice(0, room - 1)}…` : "";
    }
    const wide = cycles * cell + 1;
    svg.setAttribute("width", wide);
    svg.setAttribute("viewBox", `0 0 ${wide} ${svg.getAttribute("height")}`);
    region.scrollLeft = middle * cell - region.clientWidth / 2;
    say();
  }
  function say() {
    const first = Math.floor(region.scrollLeft / cell), last = Math.min(cycles, Math.ceil((region.scrollLeft + region.clientWidth) / cell)) - 1;
    at.textContent = `cycles ${first} to ${last} of ${cycles}`;
    region.classList.toggle("more-left", region.scrollLeft > 2);
    region.classList.toggle("more-right", region.scrollLeft + region.clientWidth < region.scrollWidth - 2);
  }
  const fit = () => (region.clientWidth - 2) / cycles;
  tools.hidden = false;
  tools.addEventListener("click", ({ target }) => {
    const wanted = { in: cell * 1.5, out: cell / 1.5, fit: fit(), names: own }[target.dataset.zoom];
    if (wanted) draw(wanted);
  });
  region.addEventListener("wheel", (event) => { if (event.ctrlKey) { event.preventDefault(); draw(cell * (event.deltaY < 0 ? 1.25 : 0.8)); } }, { passive: false });
  region.addEventListener("scroll", say);
  new ResizeObserver(say).observe(region);
  if (fit() > own) draw(Math.min(fit(), 60), 0);
  return (event) => { if (event.key === "+" || event.key === "-") draw(cell * (event.key === "+" ? 1.5 : 1 / 1.5)); };
}

function cycleChart(region) {
  const said = document.getElementById(region.dataset.chart);
  const byKey = zoom(region);
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
    byKey(event);
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    at = Math.min(Math.max(at + move, 0), steps.length - 1);
    light(steps[at]);
    const box = steps[at].getBBox();
    region.scrollLeft = Math.max(0, box.x - region.clientWidth / 2);
  });
}

// ---- parts that narrow screens close --------------------------------------------------------------------------------

function fold() { // without a script all are open; a link to one opens it
  const narrow = matchMedia("(max-width: 40rem)"), parts = all("details[data-narrow]");
  const reveal = () => {
    const named = location.hash.length > 1 && !location.hash.includes("=") && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = named && (named.closest("details[data-narrow]") ?? named.querySelector(":scope > details[data-narrow], :scope > div > details[data-narrow]"));
    if (part && !part.open) { part.open = true; named.scrollIntoView(); }
  };
  const set = () => { parts.forEach((part) => { part.open = !narrow.matches; }); reveal(); };
  parts.forEach((part) => part.addEventListener("toggle", () => { if (part.open && part.querySelector("[data-plot]")) drawAll(); }));
  narrow.addEventListener("change", set);
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => parts.forEach((part) => { part.open = true; }));
  if (narrow.matches) set();
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
fold();
all("[data-plot]").forEach(plot);
all("form#race").forEach((form) => { restore(form); race(form); });
all("form[data-filters]").forEach(filter);
document.addEventListener("click", behind, true);
document.addEventListener("auxclick", behind, true);
all("table.sortable").forEach(sortable);
all("[data-chart]").forEach(cycleChart);
all("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
if (window.Plotly) {
  drawAll();
  let last = innerWidth, soon;
  addEventListener("resize", () => { clearTimeout(soon); if (innerWidth !== last) soon = setTimeout(() => { last = innerWidth; drawAll(); }, 150); });
  addEventListener("beforeprint", () => { root.dataset.wasTheme = root.dataset.theme ?? ""; root.dataset.theme = "light"; drawAll(); });
  addEventListener("afterprint", () => {
    if (root.dataset.wasTheme) root.dataset.theme = root.dataset.wasTheme; else delete root.dataset.theme;
    drawAll();
  });
}
