"""Every page in headless Chromium: from a phone to a wide screen, light and dark, linked charts, 10,000 points."""

import html
import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from edgewatt.reporting.data import gather
from edgewatt.reporting.page import render
from edgewatt.results.record import Record, content_hash

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install it to run the browser tests"),
]
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 14, "density": 0.4}}
SWEEP: dict[str, Any] = {
    "name": "hardware",
    "base": {"network": NETWORK, "fast_memory": {"size": 8, "curve": [6, 12]}, "formats": ["fp32", "int8"]},
    "grid": {
        "caches": [[{"size_bytes": size, "ways": 2}] for size in (512, 1024)],
        "encoder": ["raw", "dbi-dc"],
        "seed": [0, 1, 2],
        "orderings": ["two-optimal", "random-topological"],
    },
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    ew.sweep(SWEEP, results=folder / "a", executor="inline")
    more = {**SWEEP, "base": {**SWEEP["base"], "dram": {"part": "hbm2"}}}
    ew.sweep(more, results=folder / "b", executor="inline")
    (folder / "figure.csv").write_text("memory,io,series\n6,300,printed\n8,280,printed\n12,250,printed\n")
    ew.report([folder / "a", folder / "b"], folder / "report.html", overlays=[folder / "figure.csv"])
    network = ew.load_sweep({"network": NETWORK}).points and _network()
    best = ew.order(network, "connection-reordering", memory=8, iterations=300)
    from edgewatt.orders.pays_page import pays_page
    from edgewatt.reporting.cache_page import cache_page
    from edgewatt.reporting.explain_order import explain_page
    from hwmodel.replay.profile import parse_level, profile_caches
    from traces.trace_readers import open_trace

    (folder / "explain.html").write_text(explain_page(network, best, memory=8))
    study = ew.pays(network, best, system="scratchpad-8k", sizes=[4096, 8192], timing="replay")
    (folder / "pays.html").write_text(pays_page(study))
    shipped = Path(__file__).parents[2] / "configs" / "examples" / "traces" / "small.din"
    profile = profile_caches(open_trace(shipped, None), [parse_level("8KiB:64:4:lru")])
    (folder / "cache.html").write_text(cache_page(profile, "small.din"))
    _schedule(folder / "schedule.html")
    return {name: folder / f"{name}.html" for name in ("report", "explain", "pays", "cache", "schedule")}


def _network() -> Any:
    from traces.generators.networks import uniform_layers

    return uniform_layers([14, 14, 14], 0.4, seed=0)


def _schedule(path: Path) -> None:
    from edgewatt.operators.figures import draw

    graph = ew.randwire(n=8, seed=0)
    draw(graph, ew.schedule(graph), path)


WATCH = "<script>window.addEventListener('error',e=>document.documentElement.dataset.failed=e.message)</script>"
GATHER = """<script>window.addEventListener('message', (e) => {
  document.body.dataset['w' + e.data.width] = JSON.stringify(e.data); })</script>"""


def browse(target: Path, tmp_path: Path, size: str, seconds: int, dark: bool = False) -> dict[str, str]:
    """Return the data attributes of body and root after so many seconds of the page's own clock.

    seconds: 0 for the real clock; the page is then done when its modules are.
    """
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--allow-file-access-from-files", "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size}",
        *([f"--virtual-time-budget={1000 * seconds}"] if seconds else []), "--dump-dom",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []), target.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    tags = "".join(re.findall(r"<(?:body|html)([^>]*)>", done.stdout)[:2])
    return {key: html.unescape(value) for key, value in re.findall(r'data-([\w-]+)="([^"]*)"', tags)}


def with_script(page: Path, script: str, copy: Path) -> Path:
    head, _, tail = page.read_text().replace("<main>", f"{WATCH}<main>", 1).rpartition("</body>")
    copy.write_text(f"{head}<script type=module>{script}</script></body>{tail}")
    return copy


LOOKS = """
const tell = () => {
  const root = document.documentElement, said = document.body.dataset;
  const inner = (element) => element.scrollWidth > element.clientWidth + 1;
  const own = [...document.querySelectorAll('.chart, .scroll, .panel, pre')];
  const beyond = (e) => e.getBoundingClientRect().right > window.innerWidth + 1;
  const wide = [...document.querySelectorAll('main *')].filter((e) => beyond(e) && !own.some((o) => o.contains(e)));
  said.width = String(window.innerWidth);
  said.scrolls = String(inner(root));
  said.wide = wide.slice(0, 3).map((e) => e.tagName + e.className).join(' ');
  said.clipped = [...document.querySelectorAll('.chart')].filter(inner).map((e) => e.id).join(' ');
  const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = (c) => rgb(c).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const style = getComputedStyle(document.body), a = light(style.color), b = light(style.backgroundColor);
  said.contrast = ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)).toFixed(1);
  said.dark = String(root.classList.contains('dark'));
  said.heading = document.querySelector('header h1').textContent;
  const cards = [...document.querySelectorAll('.chart')];
  const filled = (card) => card.querySelector('svg, canvas')?.getBoundingClientRect().height ?? 1e9;
  said.empty = cards.filter((card) => card.clientHeight - filled(card) > 140).map((c) => c.id).join(' ');
  if (window.parent !== window) window.parent.postMessage({ ...said, failed: root.dataset.failed ?? '' }, '*');
};
setTimeout(tell, 9000);
"""


WIDTHS = (390, 800, 1280, 1600)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["report", "explain", "pays", "cache", "schedule"])
def test_pages_fit_every_screen(pages: dict[str, Path], tmp_path: Path, name: str, dark: bool) -> None:
    copy = with_script(pages[name], LOOKS, tmp_path / "page.html")
    frames = "".join(f"<iframe src='{copy.name}' style='width:{w}px;height:900px;border:0'></iframe>" for w in WIDTHS)
    (tmp_path / "frames.html").write_text(f"<body style='margin:0'>{GATHER}{frames}</body>")
    found = browse(tmp_path / "frames.html", tmp_path, "1700,4000", 25, dark)
    for width in WIDTHS:
        said = json.loads(found[f"w{width}"])
        assert not said.get("failed") and "error" not in said, said
        assert said["width"] == str(width) and said["dark"] == str(dark).lower(), said
        assert (said["scrolls"], said["wide"]) == ("false", ""), said
        if name == "report":
            assert (said["clipped"], said["empty"]) == ("", ""), said
        assert float(said["contrast"]) >= 7, said


LINKS = """
const said = document.body.dataset, wait = (ms) => new Promise((done) => setTimeout(done, ms));
while (!said.drawn) await wait(200);
await wait(1000);
const rows = () => document.querySelectorAll('#table tbody tr').length;
said.all = document.getElementById('count').textContent;
const box = document.querySelector('#chart-energy_time svg').getBoundingClientRect();
const at = (t, type, on) => {
  const x = box.left + t * box.width, y = box.top + t * box.height;
  (on ?? document.elementFromPoint(x, y)).dispatchEvent(
    new PointerEvent(type, { bubbles: true, clientX: x, clientY: y, view: window }));
};
at(0.25, 'pointerdown');
for (const t of [0.3, 0.4, 0.6]) at(t, 'pointermove', window);
at(0.6, 'pointerup', window);
for (let i = 0; i < 40 && !said.chosen; i++) await wait(200);
said.brushed = said.chosen ?? '';
said.counted = document.getElementById('count').textContent;
const after = async (act) => {
  delete said.chosen;
  act();
  for (let i = 0; i < 60 && !said.chosen; i++) await wait(100);
  return said.chosen ?? '';
};
const clear = () => document.getElementById('clear').click();
said.cleared = await after(clear);
said.chip = await after(() => document.querySelector('#chips button').click());
await after(clear);
const filter = document.getElementById('filter');
said.words = await after(() => { filter.value = 'int8'; filter.dispatchEvent(new Event('input')); });
await after(clear);
const canvas = document.querySelector('#parallel canvas'), c = canvas.getBoundingClientRect();
canvas.setPointerCapture = () => {};
const drag = (type, y) => canvas.dispatchEvent(new PointerEvent(type,
  { bubbles: true, clientX: c.left + 24, clientY: c.top + y, pointerId: 1 }));
said.ranged = await after(() => { drag('pointerdown', 30); drag('pointermove', 100); drag('pointerup', 100); });
await after(clear);
for (const [id, value] of [['axis-x', 'ones'], ['axis-y', 'io'], ['axis-colour', 'encoder']]) {
  const select = document.getElementById(id);
  select.value = value;
  select.dispatchEvent(new Event('change'));
  await wait(1500);
}
said.title = document.querySelector('#chart-energy_time svg').textContent.includes('I/Os against ones');
document.querySelector('#table tbody tr').click();
await wait(300);
said.open = String(document.getElementById('record').open);
said.shown = document.querySelector('#record').textContent.includes('energy_pj.total');
document.getElementById('record').close();
delete said.record;
const symbol = document.querySelector('#chart-energy_time .mark-symbol.role-mark path');
const s = symbol.getBoundingClientRect();
const place = { bubbles: true, clientX: s.left + 3, clientY: s.top + 3, view: window };
symbol.dispatchEvent(new PointerEvent('click', place));
await wait(500);
said.clicked = String(document.getElementById('record').open);
said.sticky = getComputedStyle(document.querySelector('#table td')).position;
said.finished = 'true';
"""


def test_charts_are_linked_and_a_point_opens_its_record(pages: dict[str, Path], tmp_path: Path) -> None:
    said = browse(with_script(pages["report"], LINKS, tmp_path / "page.html"), tmp_path, "1280,1400", 40)
    assert said.get("finished") == "true" and "error" not in said and not said.get("failed"), said
    assert said["all"] == "96 of 96 points"
    assert 0 < int(said["brushed"]) < 96 and said["counted"] == f"{said['brushed']} of 96 points", said
    assert said["cleared"] == "96" and said["chip"] == "48" and said["words"] == "48", said
    assert 0 < int(said["ranged"]) < 96, said
    assert said["title"] == "true" and said["open"] == said["shown"] == said["clicked"] == "true", said
    assert said["sticky"] == "sticky"


def test_several_sweeps_seeds_and_a_digitised_figure(pages: dict[str, Path]) -> None:
    text = pages["report"].read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert ["sweep", "sweep", None, 1] in data["columns"] and "What differs: sweep (a, b)" in text
    seeds = data["charts"]["spread"]["data"]["values"]
    assert all("(3 seeds)" in mark["group"] and mark["low"] <= mark["median"] <= mark["high"] for mark in seeds)
    assert all(layer["name"].startswith("overlay0") for layer in data["charts"]["io_memory"]["layer"][-3:])
    assert "@media print" in text


@pytest.fixture(scope="module")
def ten_thousand() -> str:
    (base,) = ew.run({"network": NETWORK, "caches": [{"size_bytes": 512, "ways": 2}], "fast_memory": {"size": 8}})
    records = []
    for i in range(10_000):
        config = json.loads(json.dumps(base.config))
        config["caches"][0]["size_bytes"] = 512 << (i % 10)
        config["caches"][0]["ways"] = 1 << (i // 10 % 5)
        config["engine"]["outstanding_misses"] = 1 + i // 50
        results = json.loads(json.dumps(base.results))
        results["energy_pj"]["total"] *= 1 + (i * 7919 % 10_000) / 5000
        results["time_ns"] *= 1 + (i * 104_729 % 10_007) / 3000
        records.append(
            Record(
                {**base.canonical, "config": config, "hash": content_hash(config), "results": results}, base.provenance
            )
        )
    return render(records, gather(records, title="ten thousand", baseline=None, failed={}))


TIMES = """
const said = document.body.dataset, wait = (ms) => new Promise((done) => setTimeout(done, ms));
while (!said.drawn) await wait(50);
const filter = document.getElementById('filter');
const took = [];
for (const text of ['time µs < 100', 'L1 ways = 4', 'L1 size (bytes) > 4096', '']) {
  filter.value = text;
  const start = performance.now();
  filter.dispatchEvent(new Event('input'));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  took.push(performance.now() - start);
}
for (const chip of [0, 1]) {
  const button = document.querySelectorAll('#chips button')[chip];
  if (!button) continue;
  button.click();
  await wait(400);
  took.push(Number(said.interaction));
}
said.took = took.map(Math.round).join(' ');
said.finished = 'true';
window.parent.postMessage({ ...said }, '*');
"""


def test_ten_thousand_points(ten_thousand: str, tmp_path: Path) -> None:
    """On the real clock, which is printed and not asserted: it depends on what else the machine does."""
    (tmp_path / "many.html").write_text(ten_thousand)
    with_script(tmp_path / "many.html", TIMES, tmp_path / "timed.html")
    finished = threading.Event()

    class Held(http.server.BaseHTTPRequestHandler):
        """Answers when the page has reported: until then the browser does not think the frame complete."""

        def do_GET(self) -> None:
            if self.path == "/done":
                finished.set()
            finished.wait(60)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}"
    (tmp_path / "frame.html").write_text(
        f"<body><script>window.addEventListener('message', (e) => {{ Object.assign(document.body.dataset, e.data); "
        f"new Image().src = '{place}/done'; }})</script><img src='{place}/wait'>"
        "<iframe src='timed.html' style='width:1280px;height:1300px'></iframe></body>"
    )
    try:
        said = browse(tmp_path / "frame.html", tmp_path, "1400,1400", 0)
    finally:
        finished.set()
        server.shutdown()
        server.server_close()
    assert said.get("finished") == "true" and "error" not in said, said
    print(f"drawn after {said['drawn']} ms, interactions {said['took']} ms, {len(ten_thousand)} bytes")
    assert said["drawn"] and said["took"], said
    assert len(ten_thousand) < 12_000_000
