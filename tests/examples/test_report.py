"""The report: renders offline in a real browser, survives hostile names, stays small."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, opened

import edgewatt as ew
from edgewatt.reporting.data import gather
from edgewatt.reporting.frame import _BUNDLE
from edgewatt.reporting.page import read_results, render
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store

HOSTILE = (
    '</script><script>document.body.dataset.owned="1"</script><img src=x onerror=alert(1)>\u202e{{7*7}} \u4e2d\u6587 '
    + "w" * 900
)

SWEEP: dict[str, Any] = {
    "name": HOSTILE,
    "base": {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 20, "density": 0.4}},
        "fast_memory": {"size": 8, "curve": [4, 16, 32]},
        "caches": [{"size_bytes": 512, "ways": 2}],
        "name": HOSTILE,
    },
    "grid": {
        "orderings": ["two-optimal", "by-source", {"kind": "connection-reordering", "iterations": 500}],
        "strides": ["none", {"kind": "greedy", "stride": 8}],
        "formats": ["fp32", "fp16", "int8"],
        "encoder": ["raw", "dbi-dc"],
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "results"
    assert ew.sweep(SWEEP, results=folder, executor="inline").computed == 36
    return folder


def dump(page: Path, tmp_path: Path, script: str = "", width: int = 1200) -> str:
    """Return the page's DOM after it has settled; `script` is put at its end and may note what it sees in the body."""
    text = page.read_text()
    note = (
        "<script>window.addEventListener('error',e=>document.body.dataset.failed=e.message);"
        "document.addEventListener('securitypolicyviolation',e=>document.body.dataset.blocked=e.blockedURI);</script>"
    )
    copy = tmp_path / "page.html"
    head, _, tail = text.replace("<main>", f"<main>{note}", 1).rpartition("</body>")
    copy.write_text(f"{head}<script type=module>{script}</script></body>{tail}")
    return opened(copy, tmp_path / "profile", f"--window-size={width},1500")[0]


def data_of(dom: str) -> dict[str, str]:
    body = re.search(r"<body([^>]*)>", dom)
    assert body is not None
    return dict(re.findall(r'data-([\w-]+)="([^"]*)"', body[1]))


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "report.html"
    ew.report(results, page)
    return page


SORT = """
const heads = () => [...document.querySelectorAll('th')];
const rows = () => [...document.querySelectorAll('#table tbody tr')];
const column = (key) => {
  const at = heads().findIndex((head) => head.dataset.key === key);
  return rows().map((row) => Number(row.cells[at].textContent.replaceAll(',', '')));
};
const said = document.body.dataset;
const click = (key) => heads().find((head) => head.dataset.key === key).click();
click('energy_pj');
said.up = String(column('energy_pj').every((v, i, a) => !i || a[i - 1] <= v));
click('energy_pj');
said.down = String(column('energy_pj').every((v, i, a) => !i || a[i - 1] >= v));
const filter = document.getElementById('filter');
const search = (text) => {
  filter.value = text;
  filter.dispatchEvent(new Event('input'));
  return rows().length;
};
said.words = search('by-source fp16');
said.less = search('ordering = two-optimal, hit % > 0');
said.none = search('nonesuch');
search('');
document.getElementById('theme').click();
said.dark = String(document.documentElement.classList.contains('dark'));
setTimeout(() => { said.fetched = performance.getEntriesByType('resource').map((e) => e.name).join(' '); }, 5000);
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install it to run the browser tests")
def test_page_in_a_browser(page: Path, tmp_path: Path) -> None:
    dom = dump(page, tmp_path, SORT)
    said = data_of(dom)
    assert said["table"] == "ready" and said["charts"] == "6", said
    assert "error" not in said and "failed" not in said and "blocked" not in said, said
    assert "owned" not in said, "a hostile name ran as a script"
    assert said["up"] == said["down"] == "true"
    assert (said["words"], said["less"], said["none"]) == ("4", "12", "0")
    assert said["dark"] == "true"
    assert dom.count("<svg") >= 5 and "by-source" in dom
    assert said["fetched"] == "", "the page asked for something outside itself"


FITS = """
const inner = (element) => element.scrollWidth > element.clientWidth;
setTimeout(() => {
  const said = document.body.dataset, charts = [...document.querySelectorAll('.chart')];
  said.width = String(window.innerWidth);
  said.scrolls = String(inner(document.documentElement));
  said.clipped = charts.filter(inner).map((chart) => chart.id).join(' ');
  said.columns = String(new Set(charts.slice(0, 4).map((chart) => chart.offsetLeft)).size);
}, 8000);
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: install it to run the browser tests")
@pytest.mark.parametrize(("width", "columns"), [(800, 1), (1200, 2), (1600, 2)])
def test_charts_fill_their_columns_and_nothing_is_clipped(page: Path, tmp_path: Path, width: int, columns: int) -> None:
    said = data_of(dump(page, tmp_path, FITS, width))
    assert (said["width"], said["columns"]) == (str(width), str(columns)), said
    assert (said["scrolls"], said["clipped"]) == ("false", ""), said


def test_page_is_self_contained(page: Path) -> None:
    text = page.read_text()
    assert "Content-Security-Policy" in text and "default-src 'none'" in text
    assert not re.findall(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=", text.replace("onerror", "").split('<script type="module">')[0]
    )
    assert "<img src=x" not in text and "<script>document" not in text
    assert len(text) < 2_000_000


def test_summary_is_true(results: Path) -> None:
    from edgewatt.reporting.words import summary

    _, data = read_results(results)
    said = " ".join(summary(data))
    best = min(data.rows, key=lambda row: row["energy_pj"])
    assert best["label"] in said and f"{len(data.rows)} points" in said
    assert f"{100 * (1 - best['energy_pj'] / data.rows[data.baseline]['energy_pj']):.1f} % less" in said
    for i in data.front:
        row = data.rows[i]
        assert not [r for r in data.rows if r["energy_pj"] < row["energy_pj"] and r["time_ns"] <= row["time_ns"]]


def test_figures(results: Path, tmp_path: Path) -> None:
    written = ew.report(results, tmp_path / "r.html", figures=tmp_path / "figures")
    names = {Path(path).name for path in written[1:]}
    charts = ("energy_time", "energy_bars", "energy_parts", "io_memory", "wires", "convergence")
    assert names == {f"{chart}.{suffix}" for chart in charts for suffix in ("svg", "pdf", "png")}
    assert (tmp_path / "figures" / "wires.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "figures" / "wires.png").read_bytes().startswith(b"\x89PNG")
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "figures"}


def many(record: Record, n: int) -> list[Record]:
    """Copies of one record under other seeds: the page's size depends on the number of points, not on what they are."""
    found = []
    for seed in range(n):
        config = {**record.config, "seed": seed, "format": ("fp32", "fp16", "int8")[seed % 3]}
        results = {**record.results, "time_ns": record.results["time_ns"] * (1 + 0.001 * (seed * 7919 % 997))}
        canonical = {"config": config, "hash": content_hash(config), "seed": seed, "results": results}
        found.append(Record(canonical, record.provenance))
    return found


def test_ten_thousand_points_are_under_8_mb(results: Path, tmp_path: Path) -> None:
    records = many(Store(results).__iter__().__next__(), 10_000)
    text = render(gather(records, title="many", baseline=None, failed={}))
    assert len(text.encode()) < 8_000_000
    (tmp_path / "many.html").write_text(text)
    if CHROMIUM is not None:
        said = data_of(dump(tmp_path / "many.html", tmp_path, SORT))
        assert said["table"] == "ready" and said["up"] == "true" and "error" not in said


def test_one_record_and_address_only_traces(tmp_path: Path) -> None:
    from traces.base.resources import config_root

    trace = config_root() / "examples" / "traces" / "small.din"
    ew.run({"trace": {"file": str(trace)}}, results=tmp_path / "out")
    record = next((tmp_path / "out" / "records").iterdir())
    ew.report(record, tmp_path / "one.html")
    ew.report(tmp_path / "out", tmp_path / "all.html")
    assert json.loads(record.read_text())["canonical"]["results"]["bus"]["ones"] is None


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
def test_the_page_of_the_papers_renders_offline(tmp_path: Path) -> None:
    small: dict[str, Any] = {"results": tmp_path, "seeds": 2, "iterations": 30, "executor": "inline"}
    io = ["network.generate.width=12", "fast_memory.size=8"]
    density = ew.reproduce("gleinig-2c", overrides=[*io, "grid={network.generate.density: [0.2, 0.5]}"], **small)
    policies = ew.reproduce("gleinig-4", overrides=io, **small)
    depth = ew.reproduce("gleinig-2b", overrides=[*io, "grid={network.generate.n_layers: [2, 3]}"], **small)
    page = Path(ew.paper_page([density, policies, depth], tmp_path / "papers.html")[0])
    dom = dump(page, tmp_path, FITS, width=800)
    seen = data_of(dom)
    assert (seen["scrolls"], seen["clipped"]) == ("false", ""), seen
    assert seen.get("charts") == "3" and not seen.keys() & {"error", "failed", "blocked"}, seen
    assert dom.count("<svg") >= 3 and dom.count("NaN") == page.read_text().count("NaN")


def test_the_child_that_bundles_scripts_is_silent_where_its_parent_was_ended() -> None:
    made = subprocess.Popen(
        [sys.executable, "-P", "-c", _BUNDLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert made.stdout is not None and made.stderr is not None
    made.stdout.close()
    assert made.stderr.read() == ""
    assert made.wait(60) == 1
