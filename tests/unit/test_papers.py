"""The papers' figures: their jobs, runs and pages; and that every verdict is computed from the run at hand."""

import json
import re
import runpy
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import Record, content_hash
from hwmodel.fastmemory.iomodel import compact_growth_memory
from papers import claim as claims
from papers.catalogue import CLAIMS, FIGURES, PAPERS, chosen, keep
from papers.charts import csv_of, drawn, interval_words, median_interval, spec, table_of
from papers.claim import AGREES, DIFFERS, NOT_RUN, Claim, judge, near, recorded, verdict
from papers.command import app
from papers.figure import Chart, Figure, Job, Run, planned, run_figure, seconds_left
from papers.page import compare_claims, paper_page, render
from papers.studies.gleinig_io import FULL_ITERATIONS
from reorder.order import order
from traces.base.errors import InputError, MissingExtraError
from traces.generators.networks import compact_growth

pytestmark = pytest.mark.application

EVERY = [(paper, claim) for paper in PAPERS for claim in CLAIMS[paper]]
KEYS = [f"{paper}/{claim.key}" for paper, claim in EVERY]
SMALL = ["network.width=16", "memory=8", "density=[0.2, 0.4]"]
WILD = (0.0, -1e9, 1e9)


def test_claims_need_figures_that_there_are_and_jobs_differ() -> None:
    assert len({*KEYS}) == len(KEYS)
    assert {name for _, claim in EVERY for name in claim.figures} == {*FIGURES}
    for figure in FIGURES.values():
        for full in (False, True):
            assert len({content_hash(job) for job in figure.jobs(full)}) == len(figure.jobs(full))


@pytest.mark.parametrize(("paper", "claim"), EVERY, ids=KEYS)
def test_a_perturbed_run_never_agrees_by_text(paper: str, claim: Claim) -> None:
    """The numbers decide: those recorded give the recorded verdict, wild ones differ, none are not run."""
    assert verdict(claim, {}) == NOT_RUN
    kept = recorded().get(f"{paper}/{claim.key}")
    if kept and not claim.lacking:
        assert verdict(claim, kept["readings"]) == kept["verdict"]
    for length in (1, 2, 3):
        said = [verdict(claim, dict.fromkeys(claim.readings, [wild] * length)) for wild in WILD]
        assert not claim.readings or DIFFERS in said
    nothing = judge(claim, {})
    assert nothing.verdict == (f"not comparable: {claim.lacking}" if claim.lacking else NOT_RUN)
    elsewhere = {name: _run_of(FIGURES[name], "other") for name in claim.figures}
    said_elsewhere = judge(claim, elsewhere).verdict  # type: ignore[arg-type]
    assert said_elsewhere.startswith("not comparable") and AGREES not in said_elsewhere


def _run_of(figure: Figure, state: str) -> Any:
    return SimpleNamespace(figure=figure, state=state, rows=[], unplanned=["memory 7"])


def test_a_reading_that_holds_is_named() -> None:
    claim = Claim("k", "", "", (), near(4, by=0.1), {"": lambda r: None, "drawn": lambda r: None})
    assert verdict(claim, {"": [4.1, 3.9]}) == AGREES
    assert verdict(claim, {"": [5.0], "drawn": [4.0]}) == "agrees under the reading: drawn"
    assert verdict(claim, {"": [5.0]}) == DIFFERS
    assert not near(1, 2, by=0).holds([1.0]) and near(1, 2, by=0).holds([1.0, 2.0])


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("grown")
    return run_figure(FIGURES["gleinig-3"], results=folder, seeds=1, iterations=20, workers=0)


def test_a_count_that_changes_changes_its_verdict(grown: Run) -> None:
    """Theorem 2 holds in the run; one I/O more in one of its records and it differs."""
    (claim,) = (c for _, c in EVERY if c.key == "grown")
    assert judge(claim, {"gleinig-3": grown}).verdict == AGREES
    at = next(k for k, r in enumerate(grown.records) if r.config["job"]["memory"] >= r.config["job"]["m_g"])
    results = {**grown.records[at].results, "two-optimal": grown.records[at].results["two-optimal"] + 1}
    records = [*grown.records]
    records[at] = Record({**records[at].canonical, "results": results}, records[at].provenance)
    assert judge(claim, {"gleinig-3": replace(grown, records=records)}).verdict == DIFFERS
    assert judge(claim, {"gleinig-3": replace(grown, records=records[:-1])}).verdict == NOT_RUN


def test_other_parameters_are_not_comparable_and_the_caption_has_them(tmp_path: Path) -> None:
    """The issue's own example: 0.0 % was found, and 'agrees' printed."""
    wanted = ["gleinig-2a", "--seeds", "1", "--iterations", "1", "-s", "base.network.generate.density=0.02"]
    done = CliRunner().invoke(app, [*wanted, "-s", "width=[20, 30]", "-r", str(tmp_path), "-j", "0", "--json", "-"])
    found = json.loads(done.stdout)["claims"]
    assert {c["verdict"] for c in found} == {"not comparable: width 20, density 0.02, width 30"}
    assert "agrees" not in done.stdout
    page = (tmp_path / "papers.html").read_text()
    assert "density 0.02; iterations 1;" in page and "width 20, 30" in page
    assert page.index('id="gleinig-2a"') < page.index('id="claims"')
    assert page.count('<section class="figure"') == 1 and 'download="gleinig-2a.csv"' in page
    assert "@misc{gleinig-2023" in page and "@software{edgewatt" in page


def test_a_figure_runs_resumes_and_makes_its_page(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"results": tmp_path, "seeds": 2, "iterations": 30, "overrides": SMALL, "workers": 0}
    seen: list[int] = []
    first = run_figure(FIGURES["gleinig-2c"], **{**settings, "seeds": 1})
    again = run_figure(FIGURES["gleinig-2c"], **settings, progress=lambda done, *_: seen.append(done))
    assert first.complete and again.complete and seen == [3, 4] and again.state == "other"
    shared = run_figure(FIGURES["gleinig-2a"], **{**settings, "overrides": [*SMALL, "density=0.2"], "run": False})
    assert len(shared.records) == 2  # figures share their jobs
    page, *charts = paper_page([again], tmp_path / "page.html", figures=tmp_path / "figures")
    assert sorted(Path(p).name for p in charts) == [f"gleinig-2c.{kind}" for kind in ("csv", "pdf", "png", "svg")]
    assert "connection-reordering" in (tmp_path / "figures" / "gleinig-2c.svg").read_text()
    assert "coverage 50 %" in Path(page).read_text() and "<script src" not in Path(page).read_text()


def test_each_paper_has_its_page(grown: Run, tmp_path: Path) -> None:
    ready = run_figure(FIGURES["eon-frontier"], results=tmp_path, seeds=1, overrides=["width=4", "orders=2"], workers=0)
    written = paper_page([grown, ready], tmp_path / "page.html")
    assert [Path(p).name for p in written] == ["page-gleinig-2023.html", "page-kamatar-2023.html"]
    assert {c["paper"] for c in compare_claims([grown])} == {PAPERS["gleinig-2023"].title}
    assert all("gleinig-3" in c["figures"] for c in compare_claims([grown]))


def test_what_was_recorded_stands_beside_and_never_instead(
    grown: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr("papers.catalogue.RECORD", tmp_path / "record.json")
    keep(compare_claims([grown]), "gleinig-3", [grown])
    kept = recorded()["gleinig-2023/grown"]
    assert kept["verdict"] == AGREES and kept["selection"] == "gleinig-3" and set(kept["readings"][""]) == {1.0}
    missing = replace(grown, records=grown.records[:-1])
    row = next(c for c in compare_claims([missing]) if c["key"] == "gleinig-2023/grown")
    assert row["verdict"] == NOT_RUN and row["recorded"] == f"{kept['date']}, {kept['commit']}: agrees"


def test_what_a_run_refuses(tmp_path: Path) -> None:
    figure = FIGURES["gleinig-4"]
    for settings, why in (
        ({"full": True, "iterations": 7}, "either full or"), ({"seeds": 0}, "seeds is 0: it is at least 1"),
        ({"overrides": ["depth=3"]}, "gleinig-4 has no depth to replace; its jobs have .*n_layers"),
        ({"overrides": ["depth"]}, "write NAME=VALUE"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            planned(figure, **settings)
    with pytest.raises(InputError, match="unknown figure 'gleinig-9'"):
        chosen(["gleinig-9"])
    assert chosen(["gleinig-2", "gleinig-2a"]) == ["gleinig-2a", "gleinig-2b", "gleinig-2c", "gleinig-2d"]
    (tmp_path / "file").touch()
    page = ["eon-frontier", "-r", str(tmp_path / "store"), "-o", str(tmp_path / "file" / "page.html")]
    assert "cannot be written" in str(CliRunner().invoke(app, page).exception)
    assert not (tmp_path / "store").exists()
    with pytest.raises(InputError, match="without --no-run"):
        paper_page([run_figure(figure, results=tmp_path, run=False)], tmp_path / "page.html")


def test_a_job_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(job: Job) -> dict[str, int]:
        if job["seed"] == 2:
            raise InputError("no such layer here")
        return dict.fromkeys(("connections", "start", "longest"), job["seed"])

    figure = replace(FIGURES["eon-frontier"], jobs=lambda full: [{"seed": 1}, {"seed": 2}], compute=compute)
    monkeypatch.setitem(FIGURES, "eon-frontier", figure)
    found = run_figure(figure, results=tmp_path, workers=0)
    assert found.failed == ["2: no such layer here"] and found.rows[0]["start"] == 1 and found.state == "part"


def test_full_means_the_papers_iterations_and_one_network() -> None:
    def values(key: str, **settings: Any) -> set[Any]:
        return {job[key] for job in planned(FIGURES["gleinig-4"], **settings)}

    assert values("iterations") == {10_000} and values("iterations", iterations=7) == {7}
    assert values("iterations", full=True) == {FULL_ITERATIONS} and values("moves", full=True) == {None}
    assert values("seed") == {1, 2, 3, 4, 5} and values("seed", full=True) == {1}
    assert values("seed", full=True, seeds=2) == values("seed", seeds=2) == {1, 2}


def test_what_an_older_edgewatt_counted_is_told_and_computed_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"seeds": 1, "iterations": 20, "overrides": SMALL}
    figure = FIGURES["gleinig-2c"]
    for record in run_figure(figure, results=tmp_path, workers=0, **settings).records:
        figure.open(tmp_path).put(Record(record.canonical, {**record.provenance, "counts_version": 1}))
    assert seconds_left([figure], tmp_path, **settings) == 2 * figure.seconds[0]
    assert "Counted by an older edgewatt: 2" in render([run_figure(figure, results=tmp_path, run=False, **settings)])
    again = run_figure(figure, results=tmp_path, workers=0, **settings)
    assert {record.counts_version for record in again.records} == {COUNTS_VERSION}
    assert not seconds_left([figure], tmp_path, **settings)


def test_the_time_that_is_left_counts_shared_jobs_once(tmp_path: Path) -> None:
    first, second = (FIGURES[name] for name in ("gleinig-2a", "gleinig-2b"))
    both = seconds_left([first, second], tmp_path)
    assert both == seconds_left([first], tmp_path) + 5 * second.seconds[0]  # of ten; five are those of the first


TINY: dict[str, dict[str, Any]] = {
    "gleinig-2a": {"width": 12, "memory": 8, "iterations": 20},
    "gleinig-4": {"width": 12, "memory": 8, "iterations": 20},
    "gleinig-3": {"neurons": 40, "m_g": 20, "memory": 10, "iterations": 20},
    "gleinig-clock": {"width": 30, "iterations": 10},
    "ego-misses": {"layers": 2, "rows": [64]},
    "ego-clock": {"layers": 2},
    "eon-frontier": {"orders": 2},
    "cdr-strides": {"rows": 2, "effort": 0.0},
    "cdr-ones": {"rows": 2, "effort": 0.0},
    "cdr-search": {},
    "serenity-memory": {"graph": "NASNet normal cell"},
    "serenity-orders": {"graph": "RandWire WS32 seed 0"},
}


@pytest.mark.parametrize("name", TINY)
def test_a_job_of_every_figure_computes_and_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    assert name != "cdr-search" or pytest.importorskip("ortools")
    figure = FIGURES[name]
    job = next((j for j in figure.jobs(False) if j.get("kind") != "radix"), {}) | TINY[name]
    rows = figure.rows(job, json.loads(json.dumps(figure.compute(job))))
    assert rows
    for one in figure.shows:
        heads, body = table_of(one, rows)
        assert all(len(line) == len(heads) for line in body)
        if isinstance(one, Chart) and (marks := drawn(one, rows)):
            assert "</svg>" in vl_convert.vegalite_to_svg(spec(one, marks))
            assert len(csv_of(marks).splitlines()) == len(marks) + 1


def test_a_dense_layer_is_ready_at_once_whatever_the_order() -> None:
    job = {"width": 5, "layers": 3, "density": 1.0, "orders": 9, "seed": 1}
    assert FIGURES["eon-frontier"].compute(job) == {"connections": 75, "start": 25, "longest": 25}


def test_the_baseline_of_figure_3_keeps_the_growths_memory() -> None:
    for m_g in (10, 40):
        network = compact_growth(m_g, 60, 5, seed=3)
        assert compact_growth_memory(network, order(network, "two-optimal", memory=m_g)) <= m_g


@pytest.mark.parametrize("n", range(1, 13))
def test_intervals_have_the_coverage_they_claim(n: int) -> None:
    """Count by hand: of the 2^n ways to fall below or above the median, those whose k-th smallest lies above it."""
    found = median_interval(range(n))
    k = int(found.low)  # values 0..n-1: low is k - 1, the k-th smallest
    misses = sum(1 for below in range(n + 1) for _ in combinations(range(n), below) if not k < below < n - k)
    assert found.coverage == pytest.approx(1 - misses / 2**n)
    assert found.high == n - 1 - k
    if found.coverage >= 0.95 and 2 * (k + 2) <= n:  # the next narrower one would cover too little
        assert 1 - 2 * sum(comb(n, i) for i in range(k + 2)) / 2**n < 0.95


def test_five_networks_say_that_they_do_not_reach_95_percent() -> None:
    assert interval_words(5) == "intervals: order statistics 1 to 5 of 5, coverage 93.75 %"
    assert "1 to 6 of 6, coverage 96.88 %" in interval_words(6)


def test_the_command_lists_and_asks_for_its_charts_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = CliRunner().invoke(app, ["--json", "-"])
    assert [figure["name"] for figure in json.loads(listed.stdout)] == [*FIGURES]
    monkeypatch.setattr("edgewatt.pages.html.page.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["eon-frontier", "-r", str(tmp_path / "papers")])
    assert isinstance(done.exception, MissingExtraError) and "[report]" in str(done.exception)
    assert not (tmp_path / "papers").exists()


def test_the_pages_have_every_claim_and_every_figure() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = runpy.run_path(str(docs / "claims.py"))["claims"]()
    for _, claim in EVERY:
        assert f"| {claim.says} | {claim.where} |" in page, claim.says
    guide = (docs / "guides" / "papers.md").read_text()
    assert all(f"`{name}`" in guide for name in FIGURES)
    for paper in PAPERS:  # the guide's table of verdicts is that of the record
        kept = [recorded()[f"{paper}/{claim.key}"] for claim in CLAIMS[paper] if f"{paper}/{claim.key}" in recorded()]
        agree, differ = (sum(one["verdict"] == verdict for one in kept) for verdict in (AGREES, DIFFERS))
        assert re.search(rf"\| {len(CLAIMS[paper])} \| {agree} \| \d+ \| {differ} \| \d+ \|", guide), paper
