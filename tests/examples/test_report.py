"""The report: renders offline in a real browser, survives hostile names, stays small."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser

import edgewatt as ew
from edgewatt.pages.data import gather
from edgewatt.pages.report import read_results, rendered
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from papers.catalogue import FIGURES
from papers.figure import run_figure
from papers.page import paper_page

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


def seen(browser: Browser, page: Path, script: str, width: int = 1200) -> dict[str, str]:
    """Return what a page's body says of itself once its charts are drawn and `script` has run in it."""
    with browser.page(page, width, 1500) as shown:
        shown.wait("document.body.dataset.drawn")
        said = shown.run(f"{script}; return {{...document.body.dataset}};")
        assert shown.failures == []
    return said


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "report.html"
    ew.report(results, page)
    return page


SORT = """
const heads = () => [...document.querySelectorAll('#table th')];
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
said.fetched = performance.getEntriesByType('resource').map((e) => e.name).join(' ');
said.drawings = String(document.querySelectorAll('svg').length);
said.names = String(document.documentElement.outerHTML.includes('by-source'));
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
def test_page_in_a_browser(browser: Browser, page: Path) -> None:
    said = seen(browser, page, SORT)
    assert said["table"] == "ready" and said["charts"] == "4", said
    assert "error" not in said, said
    assert "owned" not in said, "a hostile name ran as a script"
    assert said["up"] == said["down"] == "true"
    assert (said["words"], said["less"], said["none"]) == ("4", "12", "0")
    assert said["dark"] == "true"
    assert int(said["drawings"]) >= 5 and said["names"] == "true"
    assert said["fetched"] == "", "the page asked for something outside itself"


FITS = """
const inner = (element) => element.scrollWidth > element.clientWidth;
const said = document.body.dataset, charts = [...document.querySelectorAll('.chart')];
said.width = String(window.innerWidth);
said.scrolls = String(inner(document.documentElement));
said.clipped = charts.filter(inner).map((chart) => chart.id).join(' ');
said.columns = String(new Set(charts.slice(0, 4).map((chart) => chart.offsetLeft)).size);
said.drawings = String(document.querySelectorAll('svg').length);
said.lost = String(document.documentElement.outerHTML.split('NaN').length - 1);
"""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
@pytest.mark.parametrize(("width", "columns"), [(800, 1), (1200, 2), (1600, 2)])
def test_charts_fill_their_columns_and_nothing_is_clipped(
    browser: Browser, page: Path, width: int, columns: int
) -> None:
    said = seen(browser, page, FITS, width)
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
    from edgewatt.pages.report import summary

    data = read_results(results)
    assert f"{len(data.rows)} points" in " ".join(summary(data))
    assert data.verdict.cards
    best = min(data.rows, key=lambda row: row["energy_pj"])
    (card,) = [c for c in data.verdict.cards if c.energy_pj == min(each.energy_pj for each in data.verdict.cards)]
    assert card.energy_pj == pytest.approx(best["energy_pj"])
    assert (card.choice.order, card.choice.stride, card.choice.format) == tuple(
        best[key] for key in ("ordering", "stride", "format")
    )
    for i in data.front:
        row = data.rows[i]
        assert not [r for r in data.rows if r["energy_pj"] < row["energy_pj"] and r["time_ns"] <= row["time_ns"]]


def test_figures(results: Path, tmp_path: Path) -> None:
    written = ew.report(results, tmp_path / "r.html", figures=tmp_path / "figures")
    names = {Path(path).name for path in written[1:]}
    charts = ("energy_time", "three_columns", "energy_parts", "io_memory")
    assert names == {f"{chart}.{suffix}" for chart in charts for suffix in ("svg", "pdf", "png")}
    assert (tmp_path / "figures" / "io_memory.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "figures" / "io_memory.png").read_bytes().startswith(b"\x89PNG")
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


@pytest.fixture(scope="module")
def ten_thousand(results: Path) -> str:
    records = many(next(iter(Store(results))), 10_000)
    return rendered(gather(records, title="many", baseline=None, failed={}))


def test_ten_thousand_points_are_under_8_mb(ten_thousand: str) -> None:
    assert len(ten_thousand.encode()) < 8_000_000


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
def test_ten_thousand_points_are_sorted_and_searched_in_a_browser(
    browser: Browser, ten_thousand: str, tmp_path: Path
) -> None:
    (tmp_path / "many.html").write_text(ten_thousand)
    said = seen(browser, tmp_path / "many.html", SORT)
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
def test_the_page_of_the_papers_renders_offline(browser: Browser, tmp_path: Path) -> None:
    small: dict[str, Any] = {"results": tmp_path, "seeds": 2, "iterations": 30, "workers": 0}
    io = ["width=12", "memory=8"]
    density = run_figure(FIGURES["gleinig-2c"], overrides=[*io, "density=[0.2, 0.5]"], **small)
    policies = run_figure(FIGURES["gleinig-4"], overrides=io, **small)
    depth = run_figure(FIGURES["gleinig-2b"], overrides=[*io, "n_layers=[2, 3]"], **small)
    page = Path(paper_page([density, policies, depth], tmp_path / "papers.html")[0])
    said = seen(browser, page, FITS, width=800)
    assert (said["scrolls"], said["clipped"]) == ("false", ""), said
    assert said["charts"] == "3" and "error" not in said, said
    assert int(said["drawings"]) >= 3 and int(said["lost"]) == page.read_text().count("NaN")
