"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const number = (n) => n.toLocaleString("en");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const LEFT = 78, RIGHT = 10, TOP = 8, BELOW = 26, times = data.times, end = data.end;
const span = Math.max(1, end - times[0]);
let step = data.peak;
const cards = data.banks.map((bank, k) => {
  const maps = document.getElementById("maps"), head = document.createElement("h3"), figure = document.createElement("figure");
  head.textContent = bank.name + ": " + number(bank.height) + " B" + (bank.size === null ? "" : " of " + number(bank.size) + " B");
  figure.className = "chart";
  const canvas = document.createElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "address over time, " + head.textContent);
  figure.append(canvas);
  maps.append(head, figure);
  return { canvas, top: Math.max(bank.height, bank.size !== null && bank.size < 2 * bank.height ? bank.size : 0, 1), tall: 320, bank, rows: data.buffers.filter((b) => b[5] === k) };
});
/* Parts of a path that most names share ("bn", "activation") tell nothing on a map: labels leave them out. */
const parts = (name) => [...new Set(name.split("/"))], seen = new Map();
data.buffers.forEach((b) => parts(b[0]).forEach((part) => seen.set(part, (seen.get(part) || 0) + 1)));
const label = (name) => name.split("/").filter((part) => seen.get(part) <= Math.max(2, data.buffers.length / 4)).join("/") || name;
const most = Math.max(1, ...data.live);
cards.push({ canvas: document.getElementById("live"), top: most, tall: 130 });
/* A round number of bytes between the lines: 1, 2 or 5 times a power of ten, at most five lines. */
function tick(top) {
  const power = 10 ** Math.floor(Math.log10(top / 4)), found = [1, 2, 5, 10].find((m) => m * power * 5 >= top);
  return Math.max(1, found * power);
}
function draw(card) {
  const { canvas, top, tall } = card, ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth;
  canvas.style.height = tall + "px";
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(tall * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const x = (t) => LEFT + (t - times[0]) / span * (wide - LEFT - RIGHT), y = (v) => TOP + (1 - v / top) * (tall - TOP - BELOW);
  const ink = css("--ink"), soft = css("--soft"), line = css("--line");
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.textAlign = "right";
  for (let v = 0, by = tick(top); v <= top; v += by) {
    c.strokeStyle = line; c.beginPath(); c.moveTo(LEFT, y(v)); c.lineTo(wide - RIGHT, y(v)); c.stroke();
    c.fillStyle = soft; c.fillText(number(v), LEFT - 6, y(v));
  }
  c.textAlign = "center";
  const every = Math.max(1, Math.ceil(times.length / Math.max(2, Math.floor((wide - LEFT) / 60))));
  times.forEach((t, k) => { if (k % every === 0) { c.fillStyle = soft; c.fillText(number(t), x(t), tall - 10); } });
  if (card.rows) {
    const at = times[step];
    for (const [name, from, to, offset, size] of card.rows) {
      const left = x(from), right = x(to), up = y(offset + size), down = y(offset);
      const peak = from <= times[data.peak] && times[data.peak] < to, now = from <= at && at < to;
      c.fillStyle = css(peak ? "--peak" : "--other");
      c.fillRect(left, up, right - left, down - up);
      c.strokeStyle = now ? ink : css("--page");
      c.lineWidth = now ? 2 : 0.75;
      c.strokeRect(left, up, right - left, down - up);
      if (right - left > 44 && down - up > 14) {
        c.save(); c.beginPath(); c.rect(left + 3, up, right - left - 6, down - up); c.clip();
        c.fillStyle = css("--label"); c.textAlign = "left"; c.fillText(label(name), left + 5, (up + down) / 2); c.restore();
      }
    }
    c.lineWidth = 1;
    if (card.bank.size !== null && card.bank.size <= top) {
      c.strokeStyle = ink; c.setLineDash([6, 4]); c.beginPath(); c.moveTo(LEFT, y(card.bank.size)); c.lineTo(wide - RIGHT, y(card.bank.size)); c.stroke(); c.setLineDash([]);
    }
  } else {
    c.strokeStyle = css("--mark"); c.lineWidth = 2; c.beginPath();
    data.live.forEach((v, k) => { c.lineTo(x(times[k]), y(v)); c.lineTo(x(k + 1 < times.length ? times[k + 1] : end), y(v)); });
    c.stroke(); c.lineWidth = 1;
  }
  const middle = (x(times[step]) + x(step + 1 < times.length ? times[step + 1] : end)) / 2;
  c.strokeStyle = ink; c.setLineDash([2, 3]); c.beginPath(); c.moveTo(middle, TOP); c.lineTo(middle, tall - BELOW + 4); c.stroke(); c.setLineDash([]);
}
function say() {
  const at = times[step], there = data.buffers.filter((b) => b[1] <= at && at < b[2]).sort((a, b) => a[5] - b[5] || a[3] - b[3]);
  const some = there.slice(0, 12).map((b) => b[0] + " (" + number(b[4]) + " B at " + number(b[3]) + (data.banks.length > 1 ? " in " + data.banks[b[5]].name : "") + ")");
  document.getElementById("at").textContent = "Step " + number(at) + (data.steps ? ", " + data.steps[step] : "") + ": " + number(data.live[step]) + " B live"
    + (step === data.peak ? " (the peak)" : "") + ". " + some.join(", ") + (there.length > 12 ? " and " + (there.length - 12) + " more" : "") + ".";
  document.body.dataset.step = String(step);
}
let waiting = false;
function show() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; cards.forEach(draw); say(); document.body.dataset.drawn = String(cards.length); });
}
/* The step whose time is nearest to the left of the pointer, however far from any buffer it is. */
function nearest(canvas, clientX) {
  const box = canvas.getBoundingClientRect(), t = times[0] + (clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * span;
  let low = 0, high = times.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (times[middle] <= t) low = middle; else high = middle - 1; }
  return low;
}
for (const { canvas } of cards) {
  const move = (event) => { const found = nearest(canvas, event.clientX); if (found !== step) { step = found; show(); } };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerdown", move);
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -times.length, End: times.length }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    step = Math.max(0, Math.min(times.length - 1, step + by));
    show();
  });
}
document.addEventListener("themechange", show);
window.addEventListener("resize", show);
show();
