/* -- very many points: marks on a canvas of their own; Vega draws what stands around them -------- */
const many = (sets.rows ?? []).length > data.many;
const isPoints = (part) => part.mark?.type === "point" && part.mark.filled;
const numbersOf = {}; /* key -> Float64Array over all points, NaN where a point has none */
const column = (key) => (numbersOf[key] ??= Float64Array.from(sets.rows, (row) => row[key] ?? NaN));
const extent = (key) => column(key).reduce(([low, high], v) => (v === v ? [Math.min(low, v), Math.max(high, v)] : [low, high]), [Infinity, -Infinity]);

/* The chart without what is drawn or counted here: `marks` says what the canvas shows. */
function lightened(spec) {
  if (!many || spec.data?.name !== "rows") return { spec };
  const part = spec.layer?.find(isPoints);
  if (!part) return { spec };
  const { x, y, color } = part.encoding;
  const axis = (found) => ({ ...found, scale: { ...found.scale, domain: extent(found.field), nice: true } });
  const domain = color && (color.type === "nominal" ? color.sort : extent(color.field));
  const encoding = { x: axis(x), y: axis(y), ...(color && { color: { ...color, scale: { ...color.scale, domain } } }) };
  const layer = spec.layer.map((each) => (each === part ? { ...each, transform: [{ filter: "false" }], encoding } : each));
  return { spec: { ...spec, transform: [], layer }, marks: { x: x.field, y: y.field, colour: color?.field, opacity: part.encoding.opacity?.condition?.value ?? 0.35 } };
}

/* The canvas under a chart: every point, the chosen ones in colour; what is near the pointer is found by a grid of cells. */
const CELL = 8;
function canvasUnder(place, view, { x, y, colour, opacity }) {
  const canvas = document.createElement("canvas"), tip = document.createElement("div"), pen = canvas.getContext("2d");
  const drawn = place.querySelector("svg"), plot = () => ({ width: view.signal("width") ?? view.width(), height: view.signal("height") ?? view.height() });
  place.style.position = "relative";
  canvas.className = "points";
  tip.className = "tip";
  tip.hidden = true;
  place.prepend(canvas);
  place.append(tip);
  const xs = column(x), ys = column(y), n = xs.length, px = new Float32Array(n), py = new Float32Array(n), next = new Int32Array(n);
  const levels = colour ? valuesOf(colour) : [null], buckets = Math.min(levels.length, 24);
  const level = new Map(levels.map((value, i) => [value, Math.floor((i * buckets) / levels.length)]));
  const group = Uint8Array.from(sets.rows, (row) => (colour ? level.get(row[colour]) ?? 0 : 0));
  let head = new Int32Array(0), across = 1;
  function paint(mask) {
    const { width, height } = plot(), ratio = window.devicePixelRatio || 1, [left, top] = view.origin();
    const box = drawn.getBoundingClientRect(), outer = place.getBoundingClientRect();
    canvas.width = Math.ceil(width * ratio);
    canvas.height = Math.ceil(height * ratio);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, left: `${box.left - outer.left - place.clientLeft + left}px`, top: `${box.top - outer.top - place.clientTop + top}px` });
    const atX = view.scale("x"), atY = view.scale("y"), shade = colour ? view.scale("color") : () => PALETTE[0];
    across = Math.ceil(width / CELL) + 1;
    head = new Int32Array(across * (Math.ceil(height / CELL) + 1)).fill(-1);
    for (let i = 0; i < n; i++) {
      const u = (px[i] = atX(xs[i])), v = (py[i] = atY(ys[i]));
      if (!(u >= 0 && u <= width && v >= 0 && v <= height) || (mask && !mask[i])) continue;
      const cell = Math.floor(u / CELL) + across * Math.floor(v / CELL);
      next[i] = head[cell];
      head[cell] = i;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const put = (wanted, alpha) => {
      pen.globalAlpha = alpha;
      for (let k = 0; k < buckets; k++) {
        pen.fillStyle = shade(levels[Math.floor((k * levels.length) / buckets)]);
        for (let i = 0; i < n; i++) if (group[i] === k && (!mask || Boolean(mask[i]) === wanted)) pen.fillRect(px[i] - 2, py[i] - 2, 4, 4);
      }
    };
    if (mask) put(false, 0.03);
    put(true, opacity);
  }
  /* The point nearest to a place on the screen, at most a cell away; -1: none. */
  function near(event) {
    const box = canvas.getBoundingClientRect(), u = event.clientX - box.left, v = event.clientY - box.top;
    let best = -1, least = CELL * CELL;
    for (let i = -1; i <= 1; i++) for (let k = -1; k <= 1; k++) {
      const a = Math.floor(u / CELL) + i, b = Math.floor(v / CELL) + k;
      if (a < 0 || b < 0 || a >= across) continue;
      for (let at = head[a + across * b] ?? -1; at >= 0; at = next[at]) {
        const far = (px[at] - u) ** 2 + (py[at] - v) ** 2;
        if (far < least) { least = far; best = at; }
      }
    }
    return best;
  }
  let pressed = null, asked = 0;
  drawn.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; });
  drawn.addEventListener("click", (event) => {
    const at = near(event);
    if (at >= 0 && pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 4) openRecord(sets.rows[at].id);
  });
  drawn.addEventListener("pointerleave", () => { cancelAnimationFrame(asked); tip.hidden = true; });
  drawn.addEventListener("pointermove", (event) => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => {
      const at = near(event), outer = place.getBoundingClientRect();
      tip.hidden = at < 0;
      if (at < 0) return;
      tip.replaceChildren(...tipOf(sets.rows[at]));
      tip.style.left = `${Math.max(0, Math.min(event.clientX - outer.left + 12, outer.width - tip.offsetWidth - 4))}px`;
      tip.style.top = `${Math.max(0, event.clientY - outer.top + 14)}px`;
    });
  });
  return paint;
}
function tipOf(row) {
  const costs = data.numbers.filter(([key]) => row[key] !== undefined && !fieldTitles[key]).map(([key, title, factor, unit]) => `${title}: ${engineering(row[key], factor, unit)}`);
  return [row.label ?? "", ...costs].map((words) => Object.assign(document.createElement("div"), { textContent: words, dir: "auto" }));
}
