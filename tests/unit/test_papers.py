"""The papers' figures: their sweeps expand, their statistics and claims compute, and a tiny one runs to its page."""

import json
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
import vl_convert
from safetensors.numpy import save_file

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from hwmodel.fastmemory.iomodel import compact_growth_memory
from papers.charts import study_chart
from papers.claims import FIGURES, chosen, load_catalogue
from papers.command import app
from papers.estimate import cpu_seconds_left, time_left, words
from papers.measurements import Measurement
from papers.measures import MEASURES
from papers.page import VERDICTS, compare_claims, paper_page, render
from papers.reproduction import FULL_ITERATIONS, Reproduction, figure_plan, reproduce
from papers.statistics import interval_words, median_interval
from papers.study import STUDIES, Job, Study, StudyRun, missing_jobs, run_study
from reorder.order import order
from traces.base.errors import InputError, MissingExtraError
from traces.base.registry import Entry
from traces.generators.networks import compact_growth

pytestmark = pytest.mark.application

CATALOGUE = load_catalogue()
SMALL = ["network.generate.width=16", "fast_memory.size=8", "grid={network.generate.density: [0.2, 0.4]}"]


def test_every_figure_has_a_sweep_and_every_claim_a_measure() -> None:
    assert {*CATALOGUE.figures, "figures"} == {path.stem for path in FIGURES.glob("*.yaml")}
    for claim in CATALOGUE.claims:
        assert claim.paper in CATALOGUE.papers
        assert set(claim.figures) <= CATALOGUE.figures.keys() | CATALOGUE.studies.keys()
    named = {claim.measure for claim in CATALOGUE.claims} - {None}
    studies = {f"{name}:{measure}" for name in STUDIES for measure in STUDIES[name].item.measures}
    assert named == {*MEASURES} | studies


def test_every_study_has_its_text_and_its_jobs_differ() -> None:
    assert {*STUDIES} == CATALOGUE.studies.keys()
    for name in STUDIES:
        for full in (False, True):
            jobs = STUDIES[name].item.jobs(full)
            assert len({content_hash(job) for job in jobs}) == len(jobs)


def test_a_study_runs_resumes_and_makes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = STUDIES["ego-misses"].item
    small = [
        {"kind": kind, "layers": 2, "seed": seed, "rows": [4, 64]} for kind in ("random", "radix") for seed in (1, 2)
    ]
    entry = Entry("ego-misses", replace(study, jobs=lambda full: small), "", None)
    monkeypatch.setitem(STUDIES._entries, "ego-misses", entry)
    first = reproduce("ego-misses", results=tmp_path, executor="inline", seeds=1)
    assert first.complete and len(first.records) == 2
    seen: list[int] = []
    again = reproduce("ego-misses", results=tmp_path, executor="inline", progress=lambda done, *_: seen.append(done))
    assert again.complete and seen == [3, 4]
    claims = {c["claim"]: c for c in compare_claims([again])}
    nearly_half = next(c for text, c in claims.items() if "nearly half" in text)
    assert nearly_half["measured"] and "times at 2 layers" in nearly_half["theirs"]
    text = Path(paper_page([again], tmp_path / "page.html")[0]).read_text()
    assert "Figure 5b: misses of EGO" in text and "agrees under a reading" in text
    assert '<figure id="chart-ego-misses-5b"' in text and '"ego-misses-5b":{"$schema"' in text.replace(" ", "")
    assert nearly_half["figures"] == ["ego-misses"] and text.count('<a href="#ego-misses">') > 1


def test_what_a_study_refuses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="eon-frontier is a study: it has no values to replace"):
        reproduce("eon-frontier", results=tmp_path, overrides=["network.width=3"])
    with pytest.raises(InputError, match="workers must be at least 1, not 0"):
        reproduce("eon-frontier", results=tmp_path, workers=0)
    with pytest.raises(InputError, match="unknown executor 'threads'"):
        reproduce("eon-frontier", results=tmp_path, executor="threads")
    with pytest.raises(InputError, match="seeds is 0: it is at least 1"):
        reproduce("eon-frontier", results=tmp_path, seeds=0)


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    (tmp_path / "file").touch()
    wanted = ["eon-frontier", "-r", str(tmp_path / "store"), "-o", str(tmp_path / "file" / "page.html")]
    done = CliRunner().invoke(app, wanted)
    assert done.exit_code != 0 and "cannot be written" in str(done.exception)
    assert not (tmp_path / "store").exists()


def test_a_job_that_fails_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(job: Job) -> dict[str, int]:
        if job["seed"] == 2:
            raise InputError("no such layer here")
        return {"value": job["seed"]}

    study = Study(lambda full: [{"seed": 1}, {"seed": 2}], compute, lambda done: [])
    assert "ego-misses" in STUDIES  # all are imported now, whatever test ran before
    monkeypatch.setitem(STUDIES._entries, "ego-misses", Entry("ego-misses", study, "", None))
    found = run_study("ego-misses", results=tmp_path, workers=0)
    assert found.failed == ["2: no such layer here"] and [r for _, r in found.done] == [{"value": 1}]


@pytest.mark.parametrize("name", CATALOGUE.figures)
def test_sweeps_have_five_networks_and_the_figures_methods(name: str) -> None:
    figure, points = CATALOGUE.figures[name], figure_plan(name).points
    assert {point.config["seed"] for point in points} == {1, 2, 3, 4, 5}
    assert all(point.config["seed"] == point.config["network"]["generate"]["seed"] for point in points)
    assert {point.config["ordering"]["kind"] for point in points} == {figure.baseline, figure.theirs, *figure.ours}
    assert len({point.config["seed"] for point in figure_plan(name, seeds=2).points}) == 2


def test_full_means_the_papers_iterations() -> None:
    def iterations(**settings: object) -> set[int]:
        points = figure_plan("gleinig-4", **settings).points  # type: ignore[arg-type]
        return {p.config["ordering"]["iterations"] for p in points if "iterations" in p.config["ordering"]}

    assert iterations() == {10_000}
    assert iterations(full=True) == {FULL_ITERATIONS}
    assert iterations(iterations=7) == {7}
    with pytest.raises(InputError, match="either full or"):
        figure_plan("gleinig-4", full=True, iterations=7)
    with pytest.raises(InputError, match="1 to 5"):
        figure_plan("gleinig-4", seeds=6)


@pytest.mark.parametrize("name", [*CATALOGUE.figures, *STUDIES])
def test_full_is_one_network_a_point_unless_more_are_asked_for(name: str, tmp_path: Path) -> None:
    def seeds(wanted: int | None, full: bool = True) -> set[int]:
        if name in STUDIES:
            jobs = missing_jobs(name, results=tmp_path, full=full, seeds=wanted)
            return {job["seed"] for job in jobs if "seed" in job}
        return {point.config["seed"] for point in figure_plan(name, full=full, seeds=wanted).points}

    drawn = seeds(None, full=False)
    assert drawn in (set(), {1}, {1, 2, 3, 4, 5})  # serenity-orders draws samples, from one seed
    assert seeds(None) == ({1} if drawn else set())
    assert seeds(5) == drawn


def test_what_an_older_edgewatt_counted_is_told_and_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest = replace(STUDIES["ego-misses"].item, jobs=lambda full: [SMALLEST["ego-misses"]])
    monkeypatch.setitem(STUDIES._entries, "ego-misses", Entry("ego-misses", smallest, "", None))
    figure = {"results": tmp_path, "seeds": 1, "iterations": 20, "overrides": SMALL}
    study = {"results": tmp_path, "seeds": 1}

    def left() -> list[bool]:
        return [cpu_seconds_left("gleinig-2c", **figure) > 0, cpu_seconds_left("ego-misses", **study) > 0]

    def runs(**more: object) -> list[Reproduction | StudyRun]:
        return [
            reproduce("gleinig-2c", executor="inline", **figure, **more),
            reproduce("ego-misses", executor="inline", **study, **more),
        ]

    for run in runs():
        for record in run.records:
            Store(tmp_path / run.name).put(Record(record.canonical, {**record.provenance, "counts_version": 1}))
    assert left() == [True, True]
    assert render(runs(run=False)).count("Counted by an older edgewatt: ") == 2
    assert {record.counts_version for run in runs() for record in run.records} == {COUNTS_VERSION}
    assert left() == [False, False] and "older edgewatt" not in render(runs())


def test_points_that_figures_share_are_estimated_once(tmp_path: Path) -> None:
    seconds = CATALOGUE.figures
    one = time_left(["gleinig-2a"], results=str(tmp_path), workers=1, full=True)
    both = time_left(["gleinig-2a", "gleinig-4"], results=str(tmp_path), workers=1, full=True)
    assert one and both != one
    apart = sum(cpu_seconds_left(name, results=tmp_path, full=True) for name in ("gleinig-2a", "gleinig-4"))
    common = sum(seconds["gleinig-2a"].cpu_s[kind].full for kind in ("two-optimal", "connection-reordering", "auto"))
    assert words(apart) not in both and words(apart - common) in both


def test_the_default_selection_leaves_out_what_full_takes() -> None:
    for name in CATALOGUE.figures:
        kept, every = figure_plan(name, seeds=1).points, figure_plan(name, full=True).points
        assert len(kept) <= len(every)
    widths = {p.config["network"]["generate"]["width"] for p in figure_plan("gleinig-2a").points}
    assert widths == {100, 300, 500}
    another = figure_plan("gleinig-2a", overrides=["grid={network.generate.width: [750]}"]).points
    assert {p.config["network"]["generate"]["width"] for p in another} == {750}


def test_figures_share_the_points_they_have_in_common(tmp_path: Path) -> None:
    settings = {"results": tmp_path, "seeds": 1, "iterations": 20, "executor": "inline"}
    shared = ["network.generate.width=12", "fast_memory.size=8"]
    first = reproduce("gleinig-2a", overrides=[*shared, "grid={network.generate.width: [12]}"], **settings)
    second = reproduce("gleinig-2b", overrides=[*shared, "grid={network.generate.n_layers: [4, 3]}"], **settings)
    assert first.results is not None and second.results is not None
    assert (first.results.computed, second.results.computed) == (4, 4)


def test_names_may_be_beginnings() -> None:
    assert chosen(["gleinig-2"]) == ["gleinig-2a", "gleinig-2b", "gleinig-2c", "gleinig-2d"]
    assert chosen(["all"]) == [*CATALOGUE.figures, *CATALOGUE.studies]
    assert chosen(["serenity"]) == ["serenity-memory", "serenity-orders", "serenity-search"]
    with pytest.raises(InputError, match="did you mean"):
        chosen(["gleinig-2e"])


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
    if n < 6:
        assert k == 0 and found.coverage < 0.95


def test_five_networks_say_that_they_do_not_reach_95_percent() -> None:
    assert interval_words(5) == "intervals: least to greatest of 5 networks, coverage 93.75 % (95 % would take six)"
    assert "1 to 6 of 6, coverage 96.88 %" in interval_words(6)


def _two(base: float, found: float, lower: int, seed: int = 1) -> list[Measurement]:
    return [
        Measurement("", 1.0, "baseline", "two-optimal", "two-optimal", seed, base, lower),
        Measurement("", 1.0, "theirs", "connection-reordering", "connection-reordering", seed, found, lower),
    ]


def test_claims_are_medians_of_differences_on_the_same_network() -> None:
    figures = {"f": [m for seed, found in enumerate((90, 80, 40)) for m in _two(100, found, 60, seed)]}
    said = MEASURES["saved"](figures, "theirs")
    assert said.startswith("up to 20.0 %") and said.endswith(
        "; the bound leaves at most 40.0 % to any order (f at x = 1)"
    )
    assert MEASURES["closer"](figures, "theirs").startswith("50.0 %")
    assert MEASURES["saved"](figures, "ours") == "not run"


def test_the_baseline_of_figure_3_keeps_the_growths_memory() -> None:
    for m_g in (10, 40):
        network = compact_growth(m_g, 60, 5, seed=3)
        assert compact_growth_memory(network, order(network, "two-optimal", memory=m_g)) <= m_g


def test_a_tiny_figure_runs_resumes_and_makes_its_page(tmp_path: Path) -> None:
    settings = {"results": tmp_path, "seeds": 2, "iterations": 50, "executor": "inline"}
    first = reproduce("gleinig-2c", overrides=SMALL, **settings)
    assert first.complete and first.results is not None and first.results.computed == 2 * 2 * 4
    again = reproduce("gleinig-2c", overrides=SMALL, **settings)
    assert again.results is not None and again.results.computed == 0
    assert [r.hash for r in again.records] == [r.hash for r in first.records]
    assert all("energy_pj" not in record.results for record in first.records)
    page, *charts = paper_page([again], tmp_path / "page.html", figures=tmp_path / "figures")
    assert sorted(Path(path).name for path in charts) == [f"gleinig-2c.{kind}" for kind in ("pdf", "png", "svg")]
    svg = (tmp_path / "figures" / "gleinig-2c.svg").read_text()
    assert "density of connections" in svg and "connection-reordering" in svg
    text = Path(page).read_text()
    assert "43.5 %" in text and "<script src" not in text and "up to" in text
    assert "coverage 50 %" in text


SMALLEST: dict[str, Job] = {
    "cdr-strides": {"layer": "digits_small", "format": "int8", "effort": 0.0},
    "cdr-ones": {"layer": "digits_small", "effort": 0.0, "bases": [32, "matrix"], "strides": [32, "row"]},
    "cdr-search": {"stride": 32},
    "ego-misses": {"kind": "random", "layers": 2, "density": 0.01, "seed": 1, "rows": [64]},
    "gleinig-policies": {"seed": 1, "iterations": 100},
    "gleinig-trained": {
        "network": "digits_wide",
        "density": None,
        "scope": None,
        "policy": "lru",
        "iterations": 10,
    },
    "serenity-memory": {"graph": "NASNet normal cell"},
    "gleinig-clock": {"panel": "7a", "x": 0.1, "network": {"width": 30}, "iterations": 10, "seed": 1},
    "ego-clock": {"kind": "toy", "layers": 2, "density": 0.05, "seed": 1},
    "eon-frontier": {"width": 16, "layers": 2, "density": 0.05, "orders": 2, "seed": 1},
    "serenity-orders": {"graph": "RandWire WS32 seed 0"},
}


def test_a_berts_block_is_measured_where_its_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    shapes = {"intermediate": (32, 8), "output": (8, 32), "attention.output": (8, 8)}
    weights = {f"bert.encoder.layer.0.{k}.dense.weight": rng.normal(size=s).astype("f4") for k, s in shapes.items()}
    save_file(weights, tmp_path / "model.safetensors")
    study = STUDIES["gleinig-trained"].item
    without = study.jobs(False)
    monkeypatch.setenv("EDGEWATT_BERT", str(tmp_path / "model.safetensors"))
    (job, *others) = [job for job in study.jobs(False) if job not in without]
    assert len(others) == 17 and {*job} == {"network", "file", "density", "scope", "policy", "iterations"}
    job = {**job, "density": 0.25, "iterations": 20}
    result = study.compute(job)
    assert result["connections"] == 128 and result["connection-reordering"] <= result["two-optimal"]
    theirs, ours = study.measures["by_policy"]([(job, result)])
    assert theirs.startswith("BERT block: RR ") and ours.startswith("BERT block: RR ")
    monkeypatch.setenv("EDGEWATT_BERT", str(tmp_path / "none"))
    with pytest.raises(InputError, match="EDGEWATT_BERT names no file"):
        study.jobs(False)


def test_a_dense_layer_is_ready_at_once_whatever_the_order() -> None:
    job = {"width": 5, "layers": 3, "density": 1.0, "orders": 9, "seed": 1}
    assert STUDIES["eon-frontier"].item.compute(job) == {"connections": 75, "start": 25, "longest": 25}


def test_the_guide_has_every_claim_and_every_figure() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "papers.md").read_text()
    rows = {tuple(line[2:-2].split(" | ")) for line in guide.splitlines() if line.startswith("| ")}
    told = {(row[0], row[1], *row[-2:]) for row in rows if len(row) == 5}
    assert {(c.says, c.where, c.verdict, c.because) for c in CATALOGUE.claims} <= told
    for paper, title in ((name, paper.title) for name, paper in CATALOGUE.papers.items()):
        verdicts = [claim.verdict for claim in CATALOGUE.claims if claim.paper == paper]
        counts = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in VERDICTS if verdict in verdicts)
        assert f": {title}\n\n{len(verdicts)} claims; {counts}." in guide
    for name in (*CATALOGUE.figures, *CATALOGUE.studies):
        assert f"`{name}`" in guide, name


def test_what_is_seen_otherwise_tells_of_the_readings_tried() -> None:
    for claim in CATALOGUE.claims:
        if claim.verdict in ("differs", "not measured"):
            assert "Readings tried" in claim.because or claim.because.startswith("As the "), claim.says


def test_the_time_that_is_left_is_estimated_and_falls(tmp_path: Path) -> None:
    settings = {"results": tmp_path, "seeds": 1, "iterations": 1000}
    small = {**settings, "overrides": ["network.generate.width=12", "grid={network.generate.n_layers: [2]}"]}
    seconds = CATALOGUE.figures["gleinig-2b"].cpu_s
    expected = sum(s.default * (0.1 if kind == "connection-reordering" else 1) for kind, s in seconds.items())
    assert cpu_seconds_left("gleinig-2b", **small) == pytest.approx(expected)
    reproduce("gleinig-2b", executor="inline", **small)
    assert cpu_seconds_left("gleinig-2b", **small) == 0
    one, five = (
        sum(cpu_seconds_left(n, results=tmp_path, full=True, seeds=s) for n in CATALOGUE.figures) for s in (None, 5)
    )
    assert 1.5 * 3600 < one < 4 * 3600 and five == pytest.approx(5 * one, rel=0.01)  # two hours when it was measured
    assert cpu_seconds_left("ego-misses", results=tmp_path, seeds=1) == pytest.approx(
        9 * CATALOGUE.studies["ego-misses"].cpu_s.default
    )
    assert [words(s) for s in (0.2, 50, 720, 12_000)] == ["1 s", "50 s", "12 min", "3 h 20 min"]


@pytest.mark.parametrize("name", CATALOGUE.figures)
def test_every_kind_of_ordering_has_its_measured_seconds(name: str) -> None:
    kinds = {point.config["ordering"]["kind"] for point in figure_plan(name, full=True).points}
    assert kinds == CATALOGUE.figures[name].cpu_s.keys()


@pytest.mark.parametrize("name", SMALLEST)
def test_a_job_of_every_study_computes(name: str) -> None:
    study = STUDIES[name].item
    assert name != "cdr-search" or pytest.importorskip("ortools")
    result = json.loads(json.dumps(study.compute(SMALLEST[name])))
    for table in study.tables([(SMALLEST[name], result)]):
        assert all(len(row) == len(table.heads) for row in table.rows), table.title
        if table.drawn is not None and table.drawn.marks:
            assert "</svg>" in vl_convert.vegalite_to_svg(study_chart(table.drawn)), table.drawn.figure
    for measure in study.measures.values():
        assert all(isinstance(words, str) for words in measure([(SMALLEST[name], result)]))


def test_the_command_lists_runs_and_writes_its_claims(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    listed = CliRunner().invoke(app, ["--json", "-"])
    assert [figure["name"] for figure in json.loads(listed.stdout)] == [*CATALOGUE.figures, *CATALOGUE.studies]
    wanted = ["gleinig-2b", "-r", str(tmp_path), "--seeds", "1", "--iterations", "20", "--executor", "inline"]
    changes = ["-s", "network.generate.width=12", "-s", "fast_memory.size=8"]
    changes += ["-s", "grid={network.generate.n_layers: [2, 3]}"]
    done = CliRunner().invoke(app, [*wanted, *changes, "--json", "-"], catch_exceptions=False)
    assert done.exit_code == 0 and "to go" not in done.stderr  # half a minute needs no word
    claims = json.loads(done.stdout)["claims"]
    assert [c["measured"] for c in claims][:5] == [True, True, True, True, False]
    assert (tmp_path / "papers.html").exists()


def test_the_command_asks_for_its_charts_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    monkeypatch.setattr("edgewatt.pages.html.page.find_spec", lambda name: None)
    done = CliRunner().invoke(app, ["eon-frontier", "-r", str(tmp_path / "papers")])
    assert isinstance(done.exception, MissingExtraError) and "[report]" in str(done.exception)
    assert not (tmp_path / "papers").exists()
