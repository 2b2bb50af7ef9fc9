"""Every page in headless Chromium: from a phone to a wide screen, light and dark, linked charts."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.pages.token import token_page
from papers.catalogue import FIGURES
from papers.figure import run_figure
from papers.page import paper_page

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)"),
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


KINDS = {  # page -> the module that makes it
    "report": "edgewatt/pages/report.py",
    "explain": "edgewatt/pages/explain.py",
    "pays": "edgewatt/orders/break_even_page.py",
    "arena": "edgewatt/pages/arena.py",
    "token": "edgewatt/pages/token.py",
    "papers": "scripts/papers/page.py",
}


def test_every_kind_of_page_is_looked_at() -> None:
    frames = re.compile(r"^ *from edgewatt\.pages\.(html\.page import .*\bPage\b)", re.M)
    found = {
        str(p.relative_to(ROOT))
        for p in [*(ROOT / "edgewatt").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]
        if frames.search(p.read_text())
    }
    assert found == set(KINDS.values()), "a page is made somewhere that no browser has seen"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    ew.sweep(SWEEP, results=folder / "a", executor="inline")
    more = {**SWEEP, "base": {**SWEEP["base"], "dram": {"part": "hbm2"}}}
    ew.sweep(more, results=folder / "b", executor="inline")
    ew.report([folder / "a", folder / "b"], folder / "report.html")
    _network_pages(folder)
    _operator_pages(folder)
    small: dict[str, Any] = {"results": folder / "papers", "seeds": 2, "iterations": 30, "workers": 0}
    io = ["width=12", "memory=8"]
    density = run_figure(FIGURES["gleinig-2c"], overrides=[*io, "density=[0.2, 0.5]"], **small)
    paper_page([density, run_figure(FIGURES["gleinig-4"], overrides=io, **small)], folder / "papers.html")
    return folder


def _network_pages(folder: Path) -> None:
    from edgewatt.evaluation.machine_cost import view_on_machine
    from edgewatt.orders.break_even_page import break_even_page
    from edgewatt.orders.ordering import machine_cost_for
    from edgewatt.pages.explain import explain_page
    from traces.generators.networks import uniform_layers

    network = uniform_layers([14, 14, 14], 0.4, seed=0)
    best = ew.order(network, "connection-reordering", memory=8, iterations=300)
    view = view_on_machine(machine_cost_for(network, "energy", "scratchpad-8k", lanes=4), best)
    (folder / "explain.html").write_text(explain_page(network, best, memory=8, view=view))
    study = ew.pays(network, best, system="scratchpad-8k", sizes=[4096, 8192], timing="replay")
    (folder / "pays.html").write_text(break_even_page(study))


def _operator_pages(folder: Path) -> None:
    rows = ["id,lower,upper,size", "a,0,2,300", "b,0,1,200", "c,1,4,400", "d,2,4,300", "e,3,6,300"]
    (folder / "buffers.csv").write_text("\n".join(rows) + "\n")
    done = CliRunner().invoke(app, ["arena", str(folder / "buffers.csv"), "--page", str(folder / "arena.html")])
    assert done.exit_code == 0, done.output
    heads, rows = ("kind", "bytes", "energy"), [("mlp up", "14,192,640", "675 µJ"), ("before and after", "64", "2 µJ")]
    parts = [(f"By {what}", heads, rows, [675e6, 2e6]) for what in ("kind", "layers")]
    token = token_page("A token", "a part x 8 channels", ["1 mJ", "5 pJ a bit"], parts, (heads, rows * 40), 3)
    (folder / "token.html").write_text(token)


LOOKS = """
const root = document.documentElement, said = {};
const inner = (element) => element.scrollWidth > element.clientWidth + 1;
const own = [...document.querySelectorAll('.chart, .card, .scroll, .panel, pre')];
const beyond = (e) => e.getBoundingClientRect().right > window.innerWidth + 1;
const wide = [...document.querySelectorAll('main *')].filter((e) => beyond(e) && !own.some((o) => o.contains(e)));
said.width = window.innerWidth;
said.scrolls = inner(root);
said.wide = wide.slice(0, 3).map((e) => e.tagName + e.className).join(' ');
said.clipped = [...document.querySelectorAll('.chart')].filter(inner).map((e) => e.id).join(' ');
const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
const light = (c) => rgb(c).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const style = getComputedStyle(document.body), a = light(style.color), b = light(style.backgroundColor);
said.contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
said.dark = root.classList.contains('dark');
said.heading = document.querySelector('header h1').textContent;
const filled = (card) => card.querySelector('svg, canvas')?.getBoundingClientRect().height ?? 1e9;
const hollow = (card) => card.clientHeight - filled(card) > 140;
said.empty = [...document.querySelectorAll('.chart')].filter(hollow).map((card) => card.id).join(' ');
said.asked = performance.getEntriesByType('resource').map((e) => e.name).join(' ');
said.error = document.body.dataset.error ?? '';
return said;
"""
WIDTHS = (390, 800, 1280, 1600)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_pages_fit_every_screen(browser: Browser, pages: Path, name: str, dark: bool) -> None:
    path = pages / f"{name}.html"
    drawn = "document.body.dataset.drawn" if "window.vegaEmbed(" in path.read_text() else "true"
    with browser.page(path, WIDTHS[0], dark=dark) as page:
        page.wait(drawn)
        for width in WIDTHS:
            if width != WIDTHS[0]:
                before = page.run("return Number(document.body.dataset.drawings ?? -1);")
                page.resize(width)
                page.wait("true" if before < 0 else f"document.body.dataset.drawings > {before}")
            said = page.run(LOOKS)
            assert (page.failures, said["error"], said["asked"]) == ([], "", ""), said
            assert (said["width"], said["dark"]) == (width, dark), said
            assert (said["scrolls"], said["wide"]) == (False, ""), said
            if name == "report":
                assert (said["clipped"], said["empty"]) == ("", ""), said
            assert said["contrast"] >= 7 and said["heading"], said


FITS = """
const boxes = [...document.querySelectorAll('main .panel, main .scroll, main table')];
const wide = boxes.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.tagName + e.className + e.scrollWidth);
const words = [...document.querySelectorAll('main svg.plot text')];
const small = words.filter((e) => e.getBoundingClientRect().height < 10).map((e) => e.textContent);
return { root: document.documentElement.scrollWidth, wide: wide.join(' '), small: small.join(' ') };
"""


def test_nothing_of_an_explanation_scrolls_sideways_on_a_small_phone(browser: Browser, pages: Path) -> None:
    with browser.page(pages / "explain.html", 1280) as page:
        page.wait("document.querySelector('#histogram svg')")
        page.resize(360)
        page.wait("document.querySelector('#histogram svg').viewBox.baseVal.width < 400")
        said = page.run(FITS)
        assert said["root"] <= 360 and (said["wide"], said["small"]) == ("", "") and not page.failures


PRINTED = """
window.dispatchEvent(new Event('beforeprint'));
const said = {}, table = document.getElementById('table');
const widths = (all) => [...all].map((e) => Math.round(e.getBoundingClientRect().width));
said.charts = Math.max(...widths(document.querySelectorAll('.chart svg')));
said.table = Math.round(table.getBoundingClientRect().width);
const seen = (e) => getComputedStyle(e).display !== 'none';
const heads = [...table.querySelectorAll('th')].filter(seen);
said.heads = heads.map((e) => e.textContent);
said.torn = [...table.querySelectorAll('tbody tr:first-child td')].filter(seen).slice(1)
  .filter((e) => e.getBoundingClientRect().height > 30).length;
said.alike = document.getElementById('alike').textContent;
window.dispatchEvent(new Event('afterprint'));
said.after = [...table.querySelectorAll('th')].filter(seen).length;
return said;
"""
FEWEST_SHEETS = 12  # of 96 points: a table of 31 columns a letter wide took 18 alone


def test_on_paper_nothing_is_cut(browser: Browser, pages: Path) -> None:
    """Charts have the width of a sheet; columns that the point's name says, or that all share, are left out."""
    with browser.page(pages / "report.html", 1600) as page:
        page.wait("document.body.dataset.drawn")
        said = page.run(PRINTED)
        printed = base64.b64decode(browser.call("Page.printToPDF", page.session)["data"])
    assert said["charts"] <= 700 and said["table"] <= 1000 and said["torn"] == 0, said
    assert {"point", "I/Os", "energy nJ", "time ns", "record"} <= set(said["heads"]), said
    assert not {"ordering", "format", "L1 size (bytes)", "seed", "stride"} & set(said["heads"]), said
    assert "best bound paths" in said["alike"] and said["after"] > 25, said
    sheets = printed.count(b"/Type /Page\n") or len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 4 < sheets <= FEWEST_SHEETS, sheets


NAMES = """
return [...document.querySelectorAll('#chart-energy_parts .role-axis-label text')]
  .map((e) => e.textContent).filter((t) => /[a-z]{3}/.test(t));
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_names_at_axes_tell_points_apart(browser: Browser, pages: Path, width: int) -> None:
    """What was swept is named as the table names it, and whole: in several lines where room is scarce."""
    with browser.page(pages / "report.html", width) as page:
        page.wait("document.body.dataset.drawn")
        found = [name.replace(" ", "") for name in page.run(NAMES)]
    assert len(found) > 10 and not [name for name in found if "…" in name or "caches_" in name], found
    wanted = "two-optimal, fp32, raw, lpddr4-3200, seed 0, L1 size 512 B, sweep a"
    assert wanted.replace(" ", "") in found, found


LEGIBLE = """
const small = [...document.querySelectorAll('svg text')].filter((e) => e.textContent.trim())
  .filter((e) => getComputedStyle(e).opacity !== '0' && e.getBoundingClientRect().width)
  .map((e) => [e.textContent, e.getScreenCTM() ?? { a: 1, b: 0 }, parseFloat(getComputedStyle(e).fontSize)])
  .map(([text, { a, b }, size]) => [text, size * Math.hypot(a, b)])
  .filter(([, size]) => size < 7.5).map(([text, size]) => `${text} ${size.toFixed(1)}`);
const cards = [...document.querySelectorAll('.chart')].map((card) => card.scrollWidth - card.clientWidth);
const lanes = document.querySelector('#parallel canvas');
const count = JSON.parse(document.getElementById('data')?.textContent ?? '{}').parallel?.length;
return { small, cut: Math.max(0, ...cards), lane: lanes ? lanes.getBoundingClientRect().width / count : 0 };
"""


@pytest.mark.parametrize("name", KINDS)
def test_pictures_are_legible_on_a_phone(browser: Browser, pages: Path, name: str) -> None:
    with browser.page(pages / f"{name}.html", 390) as page:
        charts = "window.vegaEmbed(" in (pages / f"{name}.html").read_text()
        page.wait("document.body.dataset.drawn" if charts else "true")
        said = page.run(LEGIBLE)
    assert not said["small"] and said["cut"] <= 1, said
    assert name != "report" or said["lane"] >= 80, "lanes of parallel coordinates have room for their names"


PHONE = """
const axis = [...document.querySelectorAll('svg text')].map((e) => e.textContent).filter((t) => / (s|ms|µs)$/.test(t));
return { axis, twice: axis.length - new Set(axis).size };
"""


def test_axes_are_read_on_a_phone(browser: Browser, pages: Path) -> None:
    with browser.page(pages / "explain.html", 390) as page:
        page.wait("document.querySelectorAll('svg text').length > 8")
        said = page.run(PHONE)
        assert len(said["axis"]) >= 4 and not said["twice"], (
            "times of an axis are told apart: ms where s are too coarse"
        )


LINKS = """
const said = document.body.dataset, wait = (ms) => new Promise((done) => setTimeout(done, ms));
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
const legend = () => {
  const entry = document.querySelector('#chart-energy_time .role-legend-symbol path');
  const e = entry.getBoundingClientRect();
  const place = { bubbles: true, clientX: e.left + e.width / 2, clientY: e.top + e.height / 2, view: window };
  entry.dispatchEvent(new PointerEvent('click', place));
};
said.legend = await after(legend);
said.again = await after(legend);
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
return { ...said };
"""


def test_charts_are_linked_and_a_point_opens_its_record(browser: Browser, pages: Path) -> None:
    with browser.page(pages / "report.html", 1280, 1400) as page:
        page.wait("document.body.dataset.drawn")
        said = page.run(LINKS)
        assert page.failures == [] and "error" not in said, said
    assert said["all"] == "96 of 96 points"
    assert 0 < int(said["brushed"]) < 96 and said["counted"] == f"{said['brushed']} of 96 points", said
    assert said["cleared"] == "96" and said["chip"] == "48" and said["words"] == "48", said
    assert said["legend"] == "48" and said["again"] == "96", said
    assert 0 < int(said["ranged"]) < 96, said
    assert said["title"] == "true" and said["open"] == said["shown"] == said["clicked"] == "true", said
    assert said["sticky"] == "sticky"


def test_several_sweeps_and_seeds(pages: Path) -> None:
    text = (pages / "report.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert ["sweep", "sweep", None, 1] in data["columns"] and "What differs: sweep (a, b)" in text
    assert "cross: range over seeds" in data["charts"]["energy_time"]["title"]["subtitle"]
    assert "@media print" in text
