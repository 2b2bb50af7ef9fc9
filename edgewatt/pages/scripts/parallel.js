/* -- parallel coordinates: a line a point through what was swept and what it costs -------------------------------- */
const panel = document.getElementById("parallel"), canvas = panel.querySelector("canvas");
const SHADES = [[0, 114, 178], [86, 180, 233], [150, 150, 150], [230, 159, 0], [213, 94, 0]];
const BUCKETS = 24;
function shadeOf(t) {
  const x = Math.min(0.9999, t) * 4, i = Math.floor(x), f = x - i;
  return `rgb(${SHADES[i].map((c, k) => Math.round(c + f * (SHADES[i + 1][k] - c))).join()})`;
}
const engineering = (value, factor, unit) => {
  if (!unit) return value >= 1e4 ? Intl.NumberFormat("en", { notation: "compact" }).format(value) : String(+value.toPrecision(4));
  const scaled = value * factor, power = scaled ? Math.floor(Math.log10(Math.abs(scaled)) / 3 + 1e-9) : 0;
  const prefix = { "-5": "f", "-4": "p", "-3": "n", "-2": "µ", "-1": "m", 0: "", 1: "k", 2: "M", 3: "G" }[power] ?? "";
  return `${+(scaled / 1000 ** power).toPrecision(3)} ${prefix}${unit}`;
};
const size = (value, title) => (title.endsWith("(bytes)") && value % 1024 === 0 ? `${value / 1024} KiB` : engineering(value, 1, ""));
const lanes = data.parallel.map((key) => {
  const values = valuesOf(key), number = numbers[key];
  const scaled = number && !(key in fieldTitles && values.length <= 12) && values.every((v) => typeof v === "number");
  const low = values[0], high = values[values.length - 1], log = scaled && low > 0 && high / low > 30;
  const at = scaled ? (v) => (high === low ? 0.5 : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low))
    : ((places) => (v) => (values.length > 1 ? places.get(v) / (values.length - 1) : 0.5))(new Map(values.map((v, i) => [v, i])));
  const ticks = scaled ? [low, high] : values.length <= 12 ? values : [values[0], values[values.length - 1]];
  return { key, title: fieldTitles[key] ?? number?.title ?? key, at, ticks, text: (v) => (typeof v !== "number" ? String(v) : key in fieldTitles ? size(v, fieldTitles[key]) : engineering(v, number?.factor ?? 1, number?.unit ?? "")) };
});
const usable = points.filter((row) => lanes.every((lane) => row[lane.key] !== undefined));
const cost = lanes.find((lane) => lane.key === "energy_pj") ?? lanes[lanes.length - 1];
let bucketOf = [];
if (lanes.length > 2 && usable.length > 1) {
  panel.hidden = false;
  const ranked = [...usable].sort((a, b) => a[cost.key] - b[cost.key]);
  ranked.forEach((row, i) => { bucketOf[row.id] = Math.min(BUCKETS - 1, Math.floor((BUCKETS * i) / ranked.length)); });
}
const LANE = 84; /* pixels of a lane at least: the panel scrolls on a phone */
const HEIGHT = 270, TOP = 44, BOTTOM = 14;
let boxes = [];
function drawParallel() {
  if (panel.hidden) return;
  const width = Math.max(lanes.length * LANE, inside(panel)), ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  canvas.style.height = `${HEIGHT}px`;
  canvas.style.width = `${width}px`;
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink"), soft = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line"), page = style.getPropertyValue("--page"), mark = style.getPropertyValue("--mark");
  pen.scale(ratio, ratio);
  const left = 24, right = width - Math.min(90, width / lanes.length), x = (k) => left + ((right - left) * k) / Math.max(1, lanes.length - 1);
  const span = HEIGHT - TOP - BOTTOM, y = (lane, v) => HEIGHT - BOTTOM - span * lane.at(v);
  const draw = (rows, colours, alpha) => {
    pen.globalAlpha = alpha;
    const paths = Array.from({ length: BUCKETS }, () => new Path2D());
    for (const row of rows) {
      const path = paths[bucketOf[row.id]];
      lanes.forEach((lane, k) => (k ? path.lineTo(x(k), y(lane, row[lane.key])) : path.moveTo(x(0), y(lane, row[lane.key]))));
    }
    paths.forEach((path, i) => { pen.strokeStyle = colours ? shadeOf(i / (BUCKETS - 1)) : line; pen.stroke(path); });
    pen.globalAlpha = 1;
  };
  const some = (rows, most) => (rows.length <= most ? rows : rows.filter((_, i) => i % Math.ceil(rows.length / most) === 0));
  pen.lineWidth = 1;
  if (mask) draw(some(usable.filter((row) => !mask[row.id]), 200), false, 0.4);
  const lit = mask ? usable.filter((row) => mask[row.id]) : usable;
  pen.lineWidth = lit.length > 300 ? 1 : 1.6;
  draw(some(lit, 500).reverse(), true, lit.length > 2000 ? 0.35 : lit.length > 200 ? 0.5 : 0.85);
  pen.font = "12px system-ui, sans-serif";
  boxes = lanes.map((lane, k) => {
    pen.strokeStyle = soft;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(k), TOP);
    pen.lineTo(x(k), HEIGHT - BOTTOM);
    pen.stroke();
    const room = (lanes.length > 1 ? x(1) - x(0) : width) - 8;
    const clip = (text) => { let t = text; while (t.length > 2 && pen.measureText(t).width > room) t = `${t.slice(0, -2)}…`; return t; };
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.fillText(clip(lane.title.replace(/ \(.*\)$/, "")), x(k) - 6, k % 2 && room < 90 ? 28 : 14);
    for (const tick of lane.ticks) {
      const text = clip(lane.text(tick)), at = y(lane, tick);
      pen.globalAlpha = 0.8;
      pen.fillStyle = page;
      pen.fillRect(x(k) + 4, at - 8, pen.measureText(text).width + 4, 14);
      pen.globalAlpha = 1;
      pen.fillStyle = soft;
      pen.fillText(text, x(k) + 6, at + 3);
    }
    const range = ranges[lane.key];
    if (range) {
      pen.fillStyle = mark;
      pen.globalAlpha = 0.35;
      pen.fillRect(x(k) - 7, Math.min(...range), 14, Math.max(4, Math.abs(range[1] - range[0])));
      pen.globalAlpha = 1;
    }
    return { lane, x: x(k), y };
  });
}
const ranges = {};
let dragged = null;
canvas.addEventListener("pointerdown", (event) => {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left;
  const near = boxes.reduce((best, found) => (Math.abs(found.x - px) < Math.abs((best?.x ?? 1e9) - px) ? found : best), null);
  if (!near || Math.abs(near.x - px) > 40) return;
  dragged = { ...near, from: event.clientY - box.top };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!dragged) return;
  const to = event.clientY - canvas.getBoundingClientRect().top;
  if (Math.abs(to - dragged.from) < 4) return;
  setRange(dragged, dragged.from, to);
});
canvas.addEventListener("pointerup", (event) => {
  if (dragged && Math.abs(event.clientY - canvas.getBoundingClientRect().top - dragged.from) < 4) {
    delete ranges[dragged.lane.key];
    delete choice.ranges[dragged.lane.key];
    choose();
  }
  dragged = null;
});
function setRange({ lane, y }, from, to) {
  const low = Math.min(from, to) - 2, high = Math.max(from, to) + 2;
  ranges[lane.key] = [low, high];
  choice.ranges[lane.key] = (row) => row[lane.key] !== undefined && y(lane, row[lane.key]) >= low && y(lane, row[lane.key]) <= high;
  choose();
}
clearing.push(() => { for (const key of Object.keys(ranges)) delete ranges[key]; });
listeners.push(() => setTimeout(drawParallel, 0));
document.addEventListener("themechange", drawParallel);
window.addEventListener("resize", () => requestAnimationFrame(drawParallel));
drawParallel();
