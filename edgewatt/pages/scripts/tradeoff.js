/* -- the first chart with the axes and the colour that the reader wants ------------------------------------------ */
const numbers = Object.fromEntries(data.numbers.map(([key, title, factor, unit]) => [key, { key, title, factor, unit }]));
const fieldTitles = Object.fromEntries(data.fields);
const wanted = { x: "time_ns", y: "energy_pj", colour: colourField };
const changed = () => wanted.x !== "time_ns" || wanted.y !== "energy_pj" || wanted.colour !== (data.telling[0] ?? colourField);
function axisOf(key) {
  const { title, factor, unit } = numbers[key];
  const axis = unit ? { labelExpr: `replace(format(datum.value * ${factor}, '~s'), /([^0-9.−-]*)$/, ' $1') + '${unit}'` } : { format: "~s" };
  return { field: key, type: "quantitative", title, axis, scale: { zero: false } };
}
function colourOf(key) {
  const values = valuesOf(key);
  if (values.length > 16 && typeof values[0] === "number") return { field: key, type: "quantitative", title: fieldTitles[key], scale: { scheme: "viridis" } };
  return { field: key, type: "nominal", title: fieldTitles[key], sort: values, scale: { range: PALETTE } };
}
/* The points that no other one beats in both numbers. */
function setFront() {
  const known = points.filter((row) => row[wanted.x] !== undefined && row[wanted.y] !== undefined);
  for (const row of points) delete row.on_front;
  let best = Infinity;
  for (const row of [...known].sort((a, b) => a[wanted.x] - b[wanted.x] || a[wanted.y] - b[wanted.y])) {
    if (row[wanted.y] < best) { best = row[wanted.y]; row.on_front = true; }
  }
}
/* Without what has data of its own, which is of energy and time: medians over seeds and digitised figures. */
function tradeoff(spec) {
  const x = axisOf(wanted.x), y = axisOf(wanted.y);
  const layer = spec.layer.filter((part) => !part.data).map((part) => {
    const encoding = { ...part.encoding, x, y };
    if (part.mark.filled && wanted.colour && fieldTitles[wanted.colour]) encoding.color = colourOf(wanted.colour);
    if (encoding.shape && encoding.shape.field === wanted.colour) delete encoding.shape;
    return { ...part, encoding };
  });
  const title = { ...spec.title, text: `${y.title[0].toUpperCase()}${y.title.slice(1)} against ${x.title}`, subtitle: spec.title.subtitle.split(";")[0] };
  return { ...spec, title, layer };
}
specs.of = () => (data.charts.energy_time && changed() ? { ...data.charts, energy_time: tradeoff(data.charts.energy_time) } : data.charts);
if (data.charts.energy_time && data.numbers.length > 1) {
  document.getElementById("choosers").hidden = false;
  const fill = (id, options, value, set) => {
    const select = document.getElementById(id);
    for (const [key, title] of options) select.add(new Option(title, key));
    select.value = value;
    select.addEventListener("change", () => {
      set(select.value);
      setFront();
      queue(() => drawOne("energy_time", specs.of().energy_time)).then(() => { document.body.dataset.axes = `${wanted.x} ${wanted.y} ${wanted.colour}`; });
    });
    if (!options.length) select.parentElement.hidden = true;
  };
  fill("axis-x", data.numbers, wanted.x, (key) => { wanted.x = key; });
  fill("axis-y", data.numbers, wanted.y, (key) => { wanted.y = key; });
  fill("axis-colour", data.fields, wanted.colour, (key) => { wanted.colour = colourField = key; drawChips(); });
  drawChips();
} else if (points.length > 1) document.getElementById("choosers").hidden = false, document.querySelectorAll("#choosers label").forEach((label) => { label.hidden = true; });
