/* Lines of the table at a time: all, or what a screen shows, for cells cost most of an answer; on paper up to 1,000. */
const LINES = points.length <= 100 ? 100 : 30, PRINTED = 1000;
let most = LINES;

/* -- table: sorted, filtered, a page at a time ------------------------------------------------------------------ */
const rows = points.map((row, index) => ({ row, index, text: "" }));
const columns = data.columns.map(([key, head, digits, factor]) => ({ key, head, digits, factor }));
const formats = {};
function cellText(value, digits, factor) {
  if (value === undefined || value === null) return "";
  if (digits === null) return String(value);
  const percent = digits < 0, places = Math.abs(digits);
  formats[places] ??= new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  return formats[places].format(percent ? 100 * value : value * factor);
}
for (const item of rows) item.text = columns.map((c) => (c.digits === null ? item.row[c.key] ?? "" : "")).join("\u0001").toLowerCase();
/* On paper: what the point's name says and what all points have in common are no columns. */
const alike = columns.filter((c) => points.length > 1 && points.every((row) => row[c.key] === points[0][c.key]));
const unprinted = (c) => alike.includes(c) || data.spoken.includes(c.key);
let sorted = { key: null, down: false }, found = rows, page = 0;
const head = document.querySelector("#table thead"), body = document.querySelector("#table tbody");
const headRow = head.insertRow();
for (const column of columns) {
  const cell = document.createElement("th");
  cell.textContent = column.head;
  cell.tabIndex = 0;
  cell.dataset.key = column.key;
  cell.className = `${column.digits === null ? "" : "number"} ${unprinted(column) ? "unprinted" : ""}`.trim();
  const sort = () => { sorted = { key: column.key, down: sorted.key === column.key && !sorted.down }; page = 0; update(); };
  cell.addEventListener("click", sort);
  cell.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  headRow.append(cell);
}
const OPERATORS = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b };
function conditions(text) {
  /* "energy pJ < 5000, fp16": every comma-separated part must hold; a part is a comparison or words to be found. */
  return text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
    const match = part.match(/^(.+?)\s*(<=|>=|<|>|=)\s*(.+)$/);
    const column = match && columns.find((c) => [c.key, c.head].some((n) => n.toLowerCase() === match[1].trim().toLowerCase()));
    if (column) {
      const compare = OPERATORS[match[2]];
      if (column.digits === null) return (item) => compare(String(item.row[column.key] ?? "").toLowerCase(), match[3].toLowerCase());
      const limit = Number(match[3].replace("%", "")) / (column.digits < 0 ? 100 : column.factor);
      return (item) => item.row[column.key] !== undefined && item.row[column.key] !== null && compare(item.row[column.key], limit);
    }
    const words = part.toLowerCase().split(/\s+/);
    return (item) => words.every((word) => item.text.includes(word));
  });
}
/* Lines of the table are made once and filled again: a choice changes little of what they say. */
const lines = [];
function newLine() {
  const line = document.createElement("tr"), texts = columns.map((column) => {
    const cell = line.insertCell();
    if (column.digits === null) cell.dir = "auto";
    cell.className = `${column.digits === null ? "" : "number"} ${unprinted(column) ? "unprinted" : ""}`.trim();
    return cell.appendChild(document.createTextNode(""));
  });
  const made = { line, texts, index: -1, full: [] };
  line.addEventListener("click", () => openRecord(made.index));
  return made;
}
function fill(made, { row, index }) {
  made.line.className = `${row.on_front ? "front" : ""} ${index === data.baseline ? "baseline" : ""}`.trim();
  if (made.index === index) return made.line;
  made.index = index;
  columns.forEach((column, k) => {
    const full = cellText(row[column.key], column.digits, column.factor);
    if (made.full[k] === full) return;
    made.full[k] = full;
    made.texts[k].data = column.key === "hash" ? full.slice(0, 10) : full;
    made.texts[k].parentElement.title = full;
  });
  return made.line;
}
function update() {
  found = mask ? rows.filter((item) => mask[item.index]) : rows;
  if (sorted.key !== null) {
    const sign = sorted.down ? -1 : 1, key = sorted.key;
    found = [...found].sort((a, b) => {
      const x = a.row[key], y = b.row[key];
      if (x === y) return a.index - b.index;
      if (x === undefined || x === null) return 1;
      if (y === undefined || y === null) return -1;
      return (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y) * sign;
    });
  }
  const pages = Math.max(1, Math.ceil(found.length / most));
  page = Math.min(page, pages - 1);
  for (const cell of headRow.cells) {
    const on = cell.dataset.key === sorted.key;
    cell.setAttribute("aria-sort", on ? (sorted.down ? "descending" : "ascending") : "none");
    cell.textContent = columns.find((c) => c.key === cell.dataset.key).head + (on ? (sorted.down ? " ▼" : " ▲") : "");
  }
  const shown = found.slice(page * most, (page + 1) * most);
  while (lines.length < shown.length) lines.push(newLine());
  body.replaceChildren(...shown.map((item, k) => fill(lines[k], item)));
  document.getElementById("count").textContent = `${found.length} of ${rows.length} points`;
  document.getElementById("pages").textContent = pages > 1 ? `page ${page + 1} of ${pages}` : "";
  document.querySelector(".pager").hidden = pages < 2;
}
document.getElementById("hint").textContent = "Shaded: the baseline. Bar at the left: on the Pareto front. Click a head to sort, a line to open its record.";
document.getElementById("filter").addEventListener("input", () => {
  const tests = conditions(document.getElementById("filter").value);
  choice.words = tests.length ? (row) => tests.every((test) => test(rows[row.id])) : null;
  page = 0;
  apply();
});
clearing.push(() => { document.getElementById("filter").value = ""; });
listeners.push(update);
const shared = alike.length
  ? `The same in every point: ${alike.map((c) => `${c.head} ${cellText(points[0][c.key], c.digits, c.factor) || "-"}`).join(", ")}.` : "";
const LANDSCAPE = 980; /* CSS pixels between the margins of Letter on its side, the shorter of the two sheets */
window.addEventListener("beforeprint", () => {
  const table = document.getElementById("table"), before = page;
  most = PRINTED;
  page = 0;
  update();
  page = before;
  document.getElementById("alike").textContent = (found.length > PRINTED ? `The first ${PRINTED} of ${found.length} points. ` : "") + shared;
  table.style.zoom = String(Math.min(1, LANDSCAPE / table.scrollWidth));
});
window.addEventListener("afterprint", () => {
  document.getElementById("table").style.zoom = "";
  most = LINES;
  update();
});
document.getElementById("before").addEventListener("click", () => { page = Math.max(0, page - 1); update(); });
document.getElementById("after").addEventListener("click", () => { page += 1; update(); });
document.getElementById("csv").addEventListener("click", () => {
  const quote = (v) => { const t = String(v ?? ""); return '"' + (/^[=+\-@\t]/.test(t) && isNaN(Number(t)) ? "'" : "") + t.replaceAll('"', '""') + '"'; };
  const lines = [columns.map((c) => quote(c.key)), ...found.map(({ row }) => columns.map((c) => quote(row[c.key])))];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((l) => l.join(",")).join("\n") + "\n"], { type: "text/csv" }));
  link.download = "points.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
update();
document.body.dataset.table = "ready";
