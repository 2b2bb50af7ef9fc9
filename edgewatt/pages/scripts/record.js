/* -- one point, whole ---------------------------------------------------------------------------------------------- */
const dialog = document.getElementById("record");
function listing(title, heads, lines) {
  const part = document.createElement("div"), heading = document.createElement("h3"), box = document.createElement("div"), table = document.createElement("table");
  part.className = "card";
  heading.textContent = title;
  box.className = "scroll";
  const head = table.createTHead().insertRow();
  for (const text of heads) head.append(Object.assign(document.createElement("th"), { textContent: text }));
  const rows = table.createTBody();
  for (const cells of lines) {
    const line = rows.insertRow();
    cells.forEach((text, i) => { const cell = line.insertCell(); cell.textContent = text; cell.dir = "auto"; if (i) cell.className = "number"; });
  }
  box.append(table);
  part.append(heading, box);
  return part;
}
function openRecord(id) {
  const row = points[id], base = points[data.baseline];
  dialog.querySelector("h2").textContent = row.label ?? row.hash;
  dialog.querySelector(".hint").textContent = `edgewatt show …/records/${row.hash}.json`;
  const change = (key) => (base && base[key] && row[key] !== undefined ? `${(100 * (row[key] / base[key] - 1)).toFixed(1)} %` : "");
  const costs = data.numbers.filter(([key]) => row[key] !== undefined && !fieldTitles[key])
    .map(([key, title, factor, unit]) => [title, engineering(row[key], factor, unit), id === data.baseline ? "" : change(key)]);
  const settings = columns.filter((c) => c.digits === null && row[c.key] !== undefined && c.key !== "label" && c.key !== "hash").map((c) => [c.head, String(row[c.key])]);
  for (const [key, title] of data.fields) if (row[key] !== undefined && !settings.some(([head]) => head === title || head === key)) settings.push([title, String(row[key])]);
  const parts = [listing("Costs", ["", "this point", "± baseline"], costs), listing("Settings", ["", "value"], settings)];
  const whole = data.records[row.hash];
  if (whole) {
    const lines = (values) => Object.entries(values).map(([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)]);
    parts.push(listing("Results", ["", "value"], lines(whole[1])), listing("Configuration", ["", "value"], lines(whole[0])));
  }
  dialog.querySelector(".grid").replaceChildren(...parts);
  document.body.dataset.record = row.hash;
  if (!dialog.open) dialog.showModal();
}
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
