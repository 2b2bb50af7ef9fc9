const data = JSON.parse(document.getElementById("data").textContent);

/* Columns back to rows; texts that repeat come as levels and codes. */
function rowsOf(columns) {
  const plain = Object.entries(columns).map(([key, c]) => [key, Array.isArray(c) ? c : c.codes.map((i) => c.levels[i])]);
  const n = plain.length ? plain[0][1].length : 0;
  return Array.from({ length: n }, (_, i) => {
    const row = {};
    for (const [key, values] of plain) if (values[i] !== null) row[key] = values[i];
    return row;
  });
}
const sets = Object.fromEntries(Object.entries(data.datasets).map(([name, columns]) => [name, rowsOf(columns)]));

/* -- charts, drawn again when the theme or the width changes ------------------------------------------------------ */
function theme(dark, width) {
  const ink = dark ? "#e6e6e6" : "#1f2328", grid = dark ? "#3a3f46" : "#d8dce1";
  const text = { labelColor: ink, titleColor: ink };
  const columns = Math.max(1, Math.floor(width / 270)); /* of a legend */
  return {
    background: "transparent", font: "system-ui, sans-serif", view: { stroke: grid },
    title: { color: ink, subtitleColor: ink, fontSize: 14, limit: width - 40 },
    axis: { ...text, gridColor: grid, domainColor: grid, tickColor: grid }, axisY: { labelLimit: roomForNames(width) },
    legend: { ...text, symbolBaseFillColor: ink, symbolBaseStrokeColor: ink, ...data.legend, columns, labelLimit: Math.floor(width / columns) - 40, gradientLength: Math.max(60, Math.min(200, width - roomForNames(width) - 90)) },
    header: text,
  };
}
/* Names at an axis stand in as many lines as they need; rows are then as high as the most of them. */
const LINE = 12, ruler = document.createElement("canvas").getContext("2d");
ruler.font = "10px system-ui, sans-serif";
function inLines(name, room) {
  const lines = [];
  for (const word of String(name).split(" ")) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && ruler.measureText(longer).width <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
const roomForNames = (width) => Math.max(110, Math.floor(0.46 * width));
function wrapped(spec, width) {
  const given = [spec, ...(spec.layer ?? [])].map((part) => part.encoding?.y).find((y) => y?.type === "nominal" && y.title === null && Array.isArray(y.sort));
  if (!given) return spec;
  const names = given.sort.map(String), lines = names.map((name) => inLines(name, roomForNames(width) - 4)), most = Math.max(...lines.map((each) => each.length));
  if (most < 2) return spec;
  const step = LINE * most + 8, up = (most - 1) / 2;
  const told = lines.map((each) => [...Array(Math.floor((most - each.length) / 2)).fill(""), ...each]); /* in the middle */
  const axis = { labelExpr: `${JSON.stringify(told)}[indexof(${JSON.stringify(names)}, datum.label)]`, labelLineHeight: LINE, labelOffset: -LINE * up };
  const put = (part) => (part.encoding?.y?.field === given.field ? { ...part, encoding: { ...part.encoding, y: { ...part.encoding.y, axis, scale: { ...part.encoding.y.scale, paddingInner: 0.3 } } } } : part);
  const height = typeof spec.height === "number" ? Math.max(spec.height, step * names.length) : { step: Math.max(step, spec.height?.step ?? 0) };
  return { ...put(spec), ...(spec.layer && { layer: spec.layer.map(put) }), height };
}
/* A chart as wide as its place: a single view is told the width, the cells of a grid share it, parts in a column as well. */
function fitted(given, width) {
  const spec = wrapped(given, width);
  if (spec.vconcat) return { ...spec, vconcat: spec.vconcat.map((part) => (part.width <= NARROW ? { ...part, width: Math.max(200, Math.min(1100, width - 100)) } : part)) };
  if (!spec.facet) return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
  const own = spec.resolve ? 80 : 20; /* beside a cell: an axis of its own, or a gap */
  const columns = Math.max(1, Math.min(spec.columns, Math.floor((width - 70) / (180 + own))));
  return { ...spec, columns, spec: { ...spec.spec, width: Math.min(640, Math.floor((width - 70) / columns) - own) } };
}
const NARROW = 640; /* parts of a column that are wider need it: a graph of many operators */
const place = (name) => document.getElementById("chart-" + name);
const inside = (element) => {
  const style = getComputedStyle(element);
  return Math.floor(element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) - 2;
};
const isDark = () => document.documentElement.classList.contains("dark");
const views = {}; /* name -> Vega view of a drawn chart */
let lighten = (spec) => ({ spec }); /* the page may take over what is too much for Vega */
const drawnHooks = []; /* called with (name, view, spec) after each drawing */
async function drawOne(name, spec) {
  const light = lighten(spec), given = light.spec.data?.name;
  const rows = light.rows ?? (given ? sets[given] : spec.data?.values ?? []); /* a chart may bring values of its own */
  const dense = rows.length > 1500, width = inside(place(name)), dark = isDark();
  const full = { ...fitted(light.spec, width), ...(given && { datasets: { [given]: rows.map((row) => ({ ...row })) } }) };
  views[name]?.finalize();
  const { view } = await window.vegaEmbed(place(name), full, {
    config: theme(dark, width), renderer: dense ? "canvas" : "svg", tooltip: { theme: dark ? "dark" : "light" },
    actions: { export: true, source: false, compiled: false, editor: false },
  });
  views[name] = view;
  light.drawn?.(place(name), view, name);
  for (const hook of drawnHooks) hook(name, view, spec);
}
const current = () => data.charts; /* the page may put its own specifications here */
const specs = { of: current };
async function draw() {
  for (const [name, spec] of Object.entries(specs.of())) await drawOne(name, spec);
  document.body.dataset.charts = String(Object.keys(views).length);
  document.body.dataset.drawings = String(1 + Number(document.body.dataset.drawings ?? 0));
  document.body.dataset.drawn ??= String(Math.round(performance.now()));
}
let drawing = Promise.resolve(); /* one drawing after the other */
function queue(work) {
  drawing = drawing.then(work).catch((error) => {
    document.body.dataset.error = String(error);
    throw error;
  });
  return drawing;
}
const redraw = () => queue(draw);
let drawnAt = window.innerWidth, waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (window.innerWidth === drawnAt) return;
    drawnAt = window.innerWidth;
    redraw();
  }, 200);
});
document.addEventListener("themechange", redraw);
/* On paper a chart has the width of the sheet: none is cut, and none scrolls. */
const SHEET = 680; /* CSS pixels between the margins of A4 and of Letter */
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  for (const chart of Object.keys(views).map(place)) chart.style.zoom = String(Math.min(1, SHEET / chart.scrollWidth));
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  for (const chart of Object.keys(views).map(place)) chart.style.zoom = "";
});
setTimeout(redraw, 0); /* after the other modules have added what they have */
