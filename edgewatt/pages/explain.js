"use strict";
/* A time of an axis that ends at `end`, with the prefix that suits the whole axis. */
const seconds = (at, end) => {
  const [by, unit] = end < 1e-3 ? [1e6, "µs"] : end < 1 ? [1e3, "ms"] : [1, "s"];
  return `${Number((at * by).toPrecision(3))} ${unit}`;
};
const data = JSON.parse(document.getElementById("data").textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const number = n => Math.round(n).toLocaleString("en");
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
function add(parent, tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  parent.append(made);
  return made;
}
// Cividis (Nunez, Anderton, Renslow 2018), five stops: readable with every kind of colour vision.
const stops = [[0, 34, 78], [66, 78, 108], [124, 123, 120], [183, 168, 107], [254, 232, 56]];
function shade(t) {
  const x = Math.min(0.9999, Math.max(0, t)) * 4, i = Math.floor(x), f = x - i;
  return stops[i].map((c, k) => c + f * (stops[i + 1][k] - c));
}
function paint(canvas, grid, colour) {
  canvas.width = grid.columns; canvas.height = grid.rows;
  const context = canvas.getContext("2d"), image = context.createImageData(grid.columns, grid.rows);
  grid.values ??= bytes(grid.data);
  grid.values.forEach((value, i) => { const c = colour(value); image.data.set([c[0], c[1], c[2], 255], 4 * i); });
  context.putImageData(image, 0, 0);
}
const tip = document.getElementById("tip");
function explain(canvas, grid, words) {
  canvas.addEventListener("mousemove", event => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(grid.columns - 1, Math.floor((event.clientX - box.left) / box.width * grid.columns));
    const y = Math.min(grid.rows - 1, Math.floor((event.clientY - box.top) / box.height * grid.rows));
    tip.textContent = words(x, y, grid.values[y * grid.columns + x]);
    tip.style.display = "block"; tip.style.left = Math.min(event.clientX + 14, innerWidth - 260) + "px"; tip.style.top = event.clientY + 14 + "px";
  });
  canvas.addEventListener("mouseleave", () => { tip.style.display = "none"; });
}
function costs() {
  const table = document.getElementById("costs"), [found, plain] = data.sides;
  const head = add(table, "tr");
  ["", found.title, plain.title, "difference", ""].forEach(text => add(head, "th", text));
  const widest = Math.max(1, ...found.costs.map((row, i) => Math.abs(plain.costs[i][1] - row[1])));
  [...found.costs.map((row, i) => [row[0], row[1], plain.costs[i][1]]), ["all I/Os", found.total, plain.total],
   ["runs (stretches of one target)", found.runs, plain.runs]].forEach(([name, now, was], i) => {
    const line = add(table, "tr"), change = now - was;
    add(line, "td", name); add(line, "td", number(now)); add(line, "td", number(was));
    add(line, "td", change === 0 ? "0" : (change < 0 ? "−" : "+") + number(Math.abs(change)), { class: change < 0 ? "good" : change > 0 ? "bad" : "soft" });
    const cell = add(line, "td", "", { style: "width:26%;text-align:left" });
    if (i < found.costs.length && change) add(cell, "span", "", { class: "bar",
      style: `width:${Math.max(1, 100 * Math.abs(change) / widest)}%;background:var(${change < 0 ? "--a" : "--b"})` });
  });
}
function pictures() {
  const palette = [0, 1, 2, 3, 4].map(k => rgb(css("--k" + k))), empty = rgb(css("--k0"));
  document.querySelectorAll("#slots canvas").forEach((canvas, i) => paint(canvas, data.sides[i].slots, v => palette[v]));
  document.querySelectorAll("#edges canvas").forEach((canvas, i) => paint(canvas, data.sides[i].edges, v => v ? shade((v - 1) / 254) : empty));
  const ramp = { rows: 1, columns: 64, values: Uint8Array.from({ length: 64 }, (_, i) => i) };
  paint(document.getElementById("ramp"), ramp, v => shade(v / 63));
}
function build() {
  const key = document.getElementById("kinds");
  data.kinds.forEach((kind, k) => { const entry = add(key, "span"); add(entry, "i", "", { style: `background:var(--k${k})` }); entry.append(kind); });
  for (const side of data.sides) {
    const panel = add(document.getElementById("slots"), "div", undefined, { class: "panel" });
    add(panel, "h3", side.title);
    const canvas = add(panel, "canvas", undefined, { class: "slots", role: "img", "aria-label": "moves along the order, " + side.title });
    const axis = add(panel, "div", undefined, { class: "axis" });
    ["first connection", "of extra moves: " + side.shares.map((share, k) => k ? `${data.kinds[k]}s ${(100 * share).toFixed(0)} %` : "").filter(Boolean).join(", "), "last"].forEach(text => add(axis, "span", text));
    explain(canvas, side.slots, (x, y, v) => `connection ${number(x / Math.max(1, side.slots.columns - 1) * (data.connections - 1))}: ${data.kinds[v]}`);
    const other = add(document.getElementById("edges"), "div", undefined, { class: "panel" });
    add(other, "h3", side.title);
    const map = add(other, "canvas", undefined, { class: "edges", role: "img", "aria-label": "time of each connection, " + side.title });
    add(other, "div", "source neurons across, target neurons down, by depth", { class: "axis" });
    explain(map, side.edges, (x, y, v) => v ? `processed after ${((v - 1) / 2.54).toFixed(0)} % of the work` : "no connection");
    const most = add(document.getElementById("spilled"), "div", undefined, { class: "panel scroll" });
    add(most, "h3", side.title);
    const table = add(most, "table"), head = add(table, "tr");
    ["neuron", "depth", "in", "out", "reads", "spill writes"].forEach(text => add(head, "th", text));
    side.spilled.forEach(row => { const line = add(table, "tr"); row.forEach(value => add(line, "td", value)); });
  }
}
const LEFT = 74, BOTTOM = 34, phone = matchMedia("(max-width: 600px)");
let W = 1040;
function svg(parent, height) {
  parent.replaceChildren();
  W = phone.matches ? 330 : 1040; // of a drawing, so that its words stay as large as others
  const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  made.setAttribute("class", "plot"); made.setAttribute("viewBox", `0 0 ${W} ${height}`); parent.append(made);
  return (tag, attributes, text) => {
    const part = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) part.setAttribute(name, attributes[name]);
    if (text !== undefined) part.textContent = text;
    made.append(part);
    return part;
  };
}
function histogram() {
  const height = 230, bins = data.sides[0].reads.length;
  const draw = svg(document.getElementById("histogram"), height);
  const columns = Math.max(7, ...data.sides.flatMap(side => side.reads.map((n, k) => n ? k + 1 : 0)));
  const most = Math.max(1, ...data.sides.flatMap(side => side.reads)), y = n => 30 + (height - 30 - BOTTOM) * (1 - n / most);
  const step = (W - LEFT - 10) / columns;
  data.sides.forEach((side, i) => {
    const colour = i ? "var(--b)" : "var(--a)";
    side.reads.slice(0, columns).forEach((n, k) => {
      const x = LEFT + k * step + 4 + i * (step - 8) / 2;
      draw("rect", { x, y: y(n), width: (step - 10) / 2, height: height - BOTTOM - y(n), fill: colour });
      if (n) draw("text", { x: x + step / 4 - 2, y: y(n) - 4, "text-anchor": "middle" }, number(n));
    });
    const x = phone.matches ? 4 + i * 165 : W - 420 + i * 230;
    draw("rect", { x, y: 4, width: 11, height: 11, fill: colour });
    draw("text", { x: x + 17, y: 14 }, side.title);
  });
  for (let k = 0; k < columns; k++) draw("text", { x: LEFT + (k + 0.5) * step, y: height - 16, "text-anchor": "middle" }, k + 1 === bins ? k + " or more" : k);
  draw("text", { x: W / 2, y: height - 2, "text-anchor": "middle" }, "reads of the neuron");
  draw("text", { x: 4, y: 40 }, "neurons");
  draw("line", { x1: LEFT, x2: W - 6, y1: height - BOTTOM, y2: height - BOTTOM, stroke: "var(--line)" });
}
function curve(column) {
  const height = 260, points = data.curve.map(point => [point[column], point[2]]);
  const draw = svg(document.getElementById("curve"), height);
  const end = Math.max(1e-9, ...points.map(p => p[0])), values = points.map(p => p[1]);
  // Under another objective than these I/Os, neither two-optimal's count nor the bound belongs on this axis.
  const marks = data.comparable ? [[data.start, "two-optimal", "var(--b)"], [data.lower, "W + N + S", "var(--soft)"]] : [];
  if (data.comparable && data.bound > data.lower) marks.push([data.bound, "best lower bound", "var(--soft)"]);
  const heights = [...values, ...marks.map(mark => mark[0])];
  const low = Math.min(...heights), high = Math.max(...heights), span = high - low || 1;
  const x = v => LEFT + (W - LEFT - 14) * v / end, y = v => 16 + (height - 16 - BOTTOM) * (high - v) / span;
  for (const [value, name, colour] of marks) {
    draw("line", { x1: LEFT, x2: W - 14, y1: y(value), y2: y(value), stroke: colour, "stroke-dasharray": "5 4" });
    draw("text", { x: W - 16, y: y(value) + (value <= data.bound ? -5 : 14), "text-anchor": "end" }, `${name} ${number(value)}`);
  }
  let path = "";
  points.forEach(([at, value], i) => { path += i ? `H${x(at)}V${y(value)}` : `M${x(at)} ${y(value)}`; });
  draw("path", { d: path, fill: "none", stroke: "var(--a)", "stroke-width": 2 });
  const last = points[points.length - 1];
  draw("circle", { cx: x(last[0]), cy: y(last[1]), r: 4, fill: "var(--a)" });
  const below = y(last[1]) > 40 && y(last[1]) + 36 < height - BOTTOM;
  draw("text", { x: x(last[0]) - 8, y: y(last[1]) + (below ? 18 : -8), "text-anchor": "end" }, number(last[1]));
  for (let k = 0; k <= 4; k++) {
    const at = end * k / 4, value = low + span * k / 4;
    draw("text", { x: x(at), y: height - 14, "text-anchor": k === 4 ? "end" : "middle" }, column ? seconds(at, end) : number(at));
    draw("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, number(value));
  }
  document.getElementById("by-time").setAttribute("aria-pressed", column === 1);
  document.getElementById("by-work").setAttribute("aria-pressed", column === 0);
}
build(); costs(); pictures(); histogram();
let shown = 1;
if (data.curve.length > 1) {
  curve(shown);
  document.getElementById("by-time").onclick = () => curve(shown = 1);
  document.getElementById("by-work").onclick = () => curve(shown = 0);
} else {
  const place = document.getElementById("searched");
  place.replaceChildren();
  add(place, "p", "This order is a construction: made at once, without a search.", { class: "soft" });
}
document.addEventListener("themechange", pictures);
phone.addEventListener("change", () => { histogram(); if (data.curve.length > 1) curve(shown); });
