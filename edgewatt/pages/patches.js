"use strict";
const data = JSON.parse(document.getElementById("data").textContent), plans = data.plans;
const number = (n) => n.toLocaleString("en");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/* Cividis (Nunez, Anderton, Renslow 2018), five stops: readable with every kind of colour vision. */
const stops = [[0, 34, 78], [66, 78, 108], [124, 123, 120], [183, 168, 107], [254, 232, 56]];
const energies = plans.map((p) => p.uj).filter((v) => v !== null), low = Math.min(...energies), high = Math.max(...energies);
function shade(v) {
  if (v === null) return css("--mark");
  const x = Math.min(3.9999, 4 * (high > low ? (v - low) / (high - low) : 0)), i = Math.floor(x), f = x - i;
  return `rgb(${stops[i].map((c, k) => Math.round(c + f * (stops[i + 1][k] - c))).join(",")})`;
}
if (energies.length) {
  document.getElementById("key").hidden = false;
  document.getElementById("low").textContent = plans.find((p) => p.uj === low).energy;
  document.getElementById("high").textContent = plans.find((p) => p.uj === high).energy;
}
const LEFT = 52, RIGHT = 14, TOP = 10, BELOW = 34, canvas = document.getElementById("front");
const xs = plans.map((p) => Math.log(Math.max(1, p.peak))), ys = plans.map((p) => p.factor);
const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 0.1), y0 = Math.min(1, ...ys), y1 = Math.max(...ys, y0 + 0.05);
let chosen = 0;
const place = (wide, tall) => [(v) => LEFT + (v - x0) / (x1 - x0) * (wide - LEFT - RIGHT), (v) => TOP + (1 - (v - y0) / (y1 - y0)) * (tall - TOP - BELOW)];
function draw() {
  const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, tall = canvas.clientHeight;
  canvas.width = Math.round(wide * ratio); canvas.height = Math.round(tall * ratio);
  const c = canvas.getContext("2d"), [x, y] = place(wide, tall);
  c.scale(ratio, ratio);
  c.font = "12px system-ui, sans-serif"; c.textBaseline = "middle"; c.textAlign = "right";
  for (let k = 0; k <= 4; k++) {
    const v = y0 + k / 4 * (y1 - y0);
    c.strokeStyle = css("--line"); c.beginPath(); c.moveTo(LEFT, y(v)); c.lineTo(wide - RIGHT, y(v)); c.stroke();
    c.fillStyle = css("--soft"); c.fillText(v.toFixed(2), LEFT - 6, y(v));
  }
  c.textAlign = "center";
  const marks = Math.max(2, Math.min(6, Math.floor(wide / 130)));
  for (let k = 0; k < marks; k++) { const v = x0 + (k + 0.5) / marks * (x1 - x0); c.fillText(number(Number(Math.exp(v).toPrecision(2))) + " B", x(v), tall - 14); }
  plans.forEach((p, k) => {
    c.beginPath(); c.arc(x(xs[k]), y(ys[k]), k === chosen ? 8 : 5, 0, 7);
    c.fillStyle = shade(p.uj); c.fill(); c.strokeStyle = css(k === chosen ? "--ink" : "--soft"); c.lineWidth = k === chosen ? 2.5 : 1; c.stroke();
  });
  const p = plans[chosen];
  document.getElementById("at").textContent = `${number(p.peak)} B at ${p.factor.toFixed(3)} times the multiplications, ${number(p.offchip)} B off-chip`
    + (p.uj === null ? "" : `, ${p.energy}`) + `. Layers: ${p.blocks}.`;
  document.querySelectorAll("tbody tr").forEach((row, k) => row.classList.toggle("chosen", k === chosen));
  document.body.dataset.drawn = String(plans.length); document.body.dataset.plan = String(chosen);
}
let waiting = false;
function show() { if (waiting) return; waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); }
function move(event) {
  const box = canvas.getBoundingClientRect(), [x, y] = place(box.width, box.height), px = event.clientX - box.left, py = event.clientY - box.top;
  let best = Infinity;
  plans.forEach((_, k) => { const d = (x(xs[k]) - px) ** 2 + (y(ys[k]) - py) ** 2; if (d < best) { best = d; chosen = k; } });
  show();
}
canvas.addEventListener("pointermove", move);
canvas.addEventListener("pointerdown", move);
canvas.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1, Home: -plans.length, End: plans.length }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  chosen = Math.max(0, Math.min(plans.length - 1, chosen + by));
  show();
});
document.addEventListener("themechange", show);
window.addEventListener("resize", show);
show();
