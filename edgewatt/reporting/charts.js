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

/* -- charts, drawn again when the theme changes ---------------------------------------------------------------- */
function theme(dark) {
  const ink = dark ? "#e6e6e6" : "#1f2328", grid = dark ? "#3a3f46" : "#d8dce1";
  const text = { labelColor: ink, titleColor: ink };
  return {
    background: "transparent", font: "system-ui, sans-serif", view: { stroke: grid }, title: { color: ink, fontSize: 14 },
    axis: { ...text, gridColor: grid, domainColor: grid, tickColor: grid }, legend: { ...text, symbolBaseFillColor: ink, symbolBaseStrokeColor: ink, ...data.legend }, header: text,
  };
}
let views = [];
async function draw() {
  const dark = document.documentElement.classList.contains("dark");
  views.forEach((v) => v.finalize());
  views = [];
  for (const [name, spec] of Object.entries(data.charts)) {
    const element = document.getElementById("chart-" + name);
    const many = sets[spec.data.name].length > 1500;
    const full = { ...spec, datasets: { [spec.data.name]: sets[spec.data.name].map((row) => ({ ...row })) } };
    views.push(await window.vegaEmbed(element, full, {
      config: theme(dark), renderer: many ? "canvas" : "svg", tooltip: { theme: dark ? "dark" : "light" },
      actions: { export: true, source: false, compiled: false, editor: false },
    }));
  }
  document.body.dataset.charts = String(views.length);
}
const wish = window.matchMedia("(prefers-color-scheme: dark)");
let drawing = Promise.resolve(); /* one drawing after the other */
function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  drawing = drawing.then(draw).catch((error) => {
    document.body.dataset.error = String(error);
    throw error;
  });
}
wish.addEventListener("change", (event) => setTheme(event.matches));
document.getElementById("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
setTheme(wish.matches);
