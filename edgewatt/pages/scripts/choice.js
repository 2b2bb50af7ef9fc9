/* -- what is chosen: by the brush, by values of a field, by words and by ranges; every chart and the table show the same -- */
const points = sets.rows ?? [];
const choice = { brush: null, hidden: {}, words: null, ranges: {} };
const listeners = [];
let mask = null, chosenCount = points.length;
/* One byte a point, 1 where every condition holds. */
function masked() {
  const on = new Uint8Array(points.length).fill(1), keep = (test) => { for (let i = 0; i < on.length; i++) if (on[i] && !test(i)) on[i] = 0; };
  for (const [key, [low, high]] of Object.entries(choice.brush ?? {})) {
    const values = column(key);
    keep((i) => values[i] >= low && values[i] <= high);
  }
  for (const [key, values] of Object.entries(choice.hidden)) if (values.size) keep((i) => !values.has(points[i][key]));
  for (const test of Object.values(choice.ranges)) keep((i) => test(points[i]));
  if (choice.words) keep((i) => choice.words(points[i]));
  return on;
}
const restricted = () => choice.brush || choice.words || Object.keys(choice.ranges).length || Object.values(choice.hidden).some((set) => set.size);
let pending = false;
function choose() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; apply(); }); /* one answer to the events of a frame */
}
function apply() {
  const start = performance.now();
  mask = restricted() ? masked() : null;
  chosenCount = mask ? mask.reduce((n, on) => n + on, 0) : points.length;
  for (const listen of listeners) listen();
  for (const [name, view] of Object.entries(views)) show(name, view);
  const says = document.getElementById("chosen");
  says.textContent = mask ? `${chosenCount} of ${points.length} points chosen` : "";
  document.getElementById("clear").hidden = !mask;
  document.body.dataset.chosen = String(chosenCount);
  document.body.dataset.interaction = String(Math.round(performance.now() - start));
}
function show(name, view) {
  if (shows[name]) return shows[name](mask);
  try { view.signal("chosen", mask).run(); } catch { /* a chart of a plug-in without the parameter shows all */ }
}
/* Very many points: what many.js draws and counts is told here what is chosen. */
const shows = {};
lighten = (spec) => {
  const { spec: light, marks } = lightened(spec);
  if (!marks) return { spec: light };
  const drawn = (place, view, name) => {
    const paint = canvasUnder(place, view, marks);
    shows[name] = paint;
    paint(mask);
    try { view.addSignalListener("zoom", () => requestAnimationFrame(() => paint(mask))); } catch { /* a chart that does not zoom */ }
  };
  return { spec: light, rows: points.filter((row) => row.on_front), drawn };
};
const clearing = [];
document.getElementById("clear").addEventListener("click", () => {
  const ends = [0, 0];
  if (choice.brush) views.energy_time?.signal("brush_x", ends).signal("brush_y", ends).run(); /* as a double click does */
  Object.assign(choice, { brush: null, hidden: {}, ranges: {}, words: null });
  for (const clear of clearing) clear();
  choose();
});
drawnHooks.push((name, view, spec) => {
  if (mask) show(name, view);
  try {
    view.addSignalListener("brush", (_, value) => {
      const fields = Object.entries(value ?? {});
      choice.brush = fields.length ? Object.fromEntries(fields.map(([key, ends]) => [key, [Math.min(...ends), Math.max(...ends)]])) : null;
      choose();
    });
  } catch { /* no brush on this chart */ }
  view.addEventListener("click", (_, item) => {
    const role = item?.mark?.role ?? "";
    if (role.startsWith("legend")) return toggleNamed(spec, item.datum?.value);
    if (item?.datum?.id !== undefined && item.mark.marktype !== "line") openRecord(item.datum.id);
  });
});

/* values of a field, switched off and on: by chips, or by a click in a legend */
function toggle(field, value) {
  const set = (choice.hidden[field] ??= new Set());
  if (!set.delete(value)) set.add(value);
  drawChips();
  choose();
}
function toggleNamed(spec, value) {
  if (value === undefined) return;
  const drawn = new Set();
  JSON.stringify(spec, (key, each) => { if (each?.field && key in { color: 0, shape: 0, fill: 0, stroke: 0, size: 0 }) drawn.add(each.field); return each; });
  const having = data.fields.map(([key]) => key).filter((key) => points.some((row) => row[key] === value));
  const own = having.filter((key) => drawn.has(key)); /* a number may be a value of several fields */
  const fields = own.length ? own : having;
  if (fields.length) toggle(fields.includes(colourField) ? colourField : fields[0], value);
}
let colourField = data.telling[0] ?? data.fields[0]?.[0] ?? "";
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#B5A800"];
function valuesOf(field) {
  const found = [...new Set(points.map((row) => row[field]).filter((value) => value !== undefined))];
  return found.every((value) => typeof value === "number") ? found.sort((a, b) => a - b) : found;
}
function drawChips() {
  const place = document.getElementById("chips"), values = valuesOf(colourField);
  const others = Object.entries(choice.hidden).filter(([field]) => field !== colourField).flatMap(([field, set]) => [...set].map((value) => [field, value]));
  const shown = values.length > 1 && values.length <= 16 ? values.map((value) => [colourField, value]) : [];
  place.replaceChildren(...[...shown, ...others].map(([field, value], index) => {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.dir = "auto";
    chip.textContent = String(value).slice(0, 40);
    chip.title = String(value);
    chip.dataset.value = String(value);
    chip.setAttribute("aria-pressed", String(!choice.hidden[field]?.has(value)));
    if (field === colourField) chip.style.borderLeft = `.6rem solid ${PALETTE[index % PALETTE.length]}`;
    chip.addEventListener("click", () => toggle(field, value));
    return chip;
  }));
}
clearing.push(drawChips);
