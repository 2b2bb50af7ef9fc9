"""Comparing and searching: changes are right, the front is a front, constraints hold, a search goes on."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.results.comparison import pareto_front
from edgewatt.results.record_rows import compact, percent, row_of
from edgewatt.results.store import Store
from edgewatt.runs.optimization import parse_constraint
from traces.base.document import ConfigError
from traces.base.errors import InputError

pytestmark = pytest.mark.application

BASE: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
    "fast_memory": {"size": 8},
    "caches": [{"size_bytes": 512, "ways": 2}],
}
SPACE: dict[str, Any] = {
    "base": BASE,
    "grid": {
        "orderings": ["two-optimal", "by-source", "depth-first"],
        "formats": ["fp32", "fp16", "int8"],
        "encoder": ["raw", "dbi-dc", "base-xor+dbi-dc"],
        "fast_memory.size": [6, 12],
    },
}


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, 6)] * n), max_size=25)))
def test_pareto_front_against_its_definition(costs: list[tuple[int, ...]]) -> None:
    front = pareto_front(costs)
    beaten = [
        any(all(a <= b for a, b in zip(other, cost, strict=True)) and other != cost for other in costs)
        for cost in costs
    ]
    assert {costs[i] for i in front} == {cost for cost, worse in zip(costs, beaten, strict=True) if not worse}
    assert len({costs[i] for i in front}) == len(front)


def test_counts_of_more_inputs_are_said(tmp_path: Path) -> None:
    """The terminal showed counts of all inputs beside energies of one without a word."""
    for name, lanes in (("a", 2), ("b", 4)):
        ew.run({**BASE, "layout": {"kind": "csr", "lanes": lanes}}, results=tmp_path / name)
    said = ew.results.compare(tmp_path / "a", tmp_path / "b").counted
    assert said == "Counts are of whole runs, of 2 inputs in A and 4 in B; energies and times are of one input."
    assert ew.results.compare(tmp_path / "a", tmp_path / "a").counted == ""


def test_compare_two_runs(tmp_path: Path) -> None:
    for name, encoder in (("a", "raw"), ("b", "dbi-dc")):
        ew.run({**BASE, "encoder": encoder, "formats": ["fp16", "int8"]}, results=tmp_path / name)
    pairs = ew.results.compare(tmp_path / "a", tmp_path / "b")
    assert [pair["point"] for pair in pairs] == ["two-optimal / none / fp16", "two-optimal / none / int8"]
    for pair in pairs:
        assert pair["differs"]["encoder"] == ["raw", "dbi-dc"]
        ones = pair["changes"]["ones"]
        assert ones["percent"] == pytest.approx(100 * (ones["b"] - ones["a"]) / ones["a"]) and ones["percent"] < 0
        assert pair["changes"]["io"]["percent"] == 0
        moved = sum(term["pj"] for term in pair["because"])
        assert moved == pytest.approx(pair["changes"]["energy_pj"]["b"] - pair["changes"]["energy_pj"]["a"], rel=1e-6)
        sizes = [abs(term["pj"]) for term in pair["because"]]
        assert sizes == sorted(sizes, reverse=True)


def test_compared_points_are_told_apart_by_what_varies(tmp_path: Path) -> None:
    grid = {"encoder": ["raw", "dbi-dc"], "fast_memory.size": [6, 8]}
    for name, seed in (("a", 1), ("b", 2)):
        ew.sweep({"base": {**BASE, "seed": seed}, "grid": grid}, results=tmp_path / name, executor="inline")
    names = [pair["point"] for pair in ew.results.compare(tmp_path / "a", tmp_path / "b")]
    assert len(set(names)) == len(names) > 1 and any(name.endswith(" / M 6 / raw") for name in names), names


def test_runs_of_several_inputs_are_compared_by_inference(tmp_path: Path) -> None:
    """Sixteen inputs at a time cost half of four at a time each, and said +98 %."""
    for lanes in (4, 16):
        ew.run({**BASE, "layout": {"lanes": lanes}}, results=tmp_path / str(lanes))
    (pair,) = ew.results.compare(tmp_path / "4", tmp_path / "16")
    rows = [row_of(next(iter(Store(tmp_path / str(lanes))))) for lanes in (4, 16)]
    for name in ("energy_pj", "time_ns"):
        a, b = (row[name] / row["inputs"] for row in rows)
        assert pair["changes"][name] == {"a": a, "b": b, "percent": pytest.approx(100 * (b / a - 1))}
    moved = sum(term["pj"] for term in pair["because"])
    assert moved == pytest.approx(pair["changes"]["energy_pj"]["b"] - pair["changes"]["energy_pj"]["a"], rel=1e-6)


@pytest.mark.parametrize("trials", [100, 3])
def test_a_front_is_that_of_one_inference(tmp_path: Path, trials: int) -> None:
    """Sums over four inputs once stood against sums over sixteen, and the points better in both were left out."""
    base = {**BASE, "formats": ["fp16", "int8"]}
    space = {"base": base, "grid": {"layout.lanes": [4, 16]}, "optimize": {"trials": trials, "sampler": "random"}}
    found = ew.results.optimize(space, results=tmp_path, executor="inline")
    costs = {r.hash: [row_of(r)[name] / row_of(r)["inputs"] for name in ("energy_pj", "time_ns")] for r in found.tried}
    best = pareto_front(list(costs.values()))
    assert {record.hash for record in found.front} == {list(costs)[k] for k in best}
    lanes = [record.config["layout"]["lanes"] for record in found.tried]
    assert lanes == sorted(lanes) and found.tried[0].hash == found.baseline.hash, "in the plan's order"


def test_a_trace_beside_a_network(tmp_path: Path) -> None:
    from traces.base.resources import config_root

    ew.run({"trace": {"file": str(config_root() / "examples" / "traces" / "small.din")}}, results=tmp_path / "a")
    ew.run({**BASE, "formats": "fp16"}, results=tmp_path / "b")
    pair = ew.results.compare(tmp_path / "a", tmp_path / "b")[0]
    assert "ones" not in pair["changes"] and pair["changes"]["time_ns"]["a"] > 0


def test_objectives_that_the_points_do_not_have(tmp_path: Path) -> None:
    from traces.base.resources import config_root

    counted = {"base": {**BASE, "measure": "io"}, "grid": {"fast_memory.size": [6, 8]}}
    with pytest.raises(InputError, match=r"no energy_pj \(they have runs, reads, writes, io\)"):
        ew.results.optimize(counted, results=tmp_path / "io")
    found = ew.results.optimize(
        {**counted, "optimize": {"objectives": ["io"]}}, results=tmp_path / "io", executor="inline"
    )
    assert len(found.front) == 1
    trace = {"trace": {"file": str(config_root() / "examples" / "traces" / "small.din")}}
    bad = {"base": trace, "grid": {"encoder": ["raw", "dbi-dc"]}, "optimize": {"objectives": ["ones"]}}
    with pytest.raises(InputError, match="an address-only trace has no ones"):
        ew.results.optimize(bad, results=tmp_path / "trace", executor="inline")


def test_folders_without_common_points(tmp_path: Path) -> None:
    ew.run({**BASE, "formats": ["fp16", "int8"]}, results=tmp_path / "a")
    ew.run({**BASE, "formats": ["fp32", "bf16"]}, results=tmp_path / "b")
    with pytest.raises(InputError, match="no points in common"):
        ew.results.compare(tmp_path / "a", tmp_path / "b")


def test_small_space_is_searched_completely(tmp_path: Path) -> None:
    limit = "time_ns <= 1.01 x baseline"
    found = ew.results.optimize({**SPACE, "optimize": {"constraints": [limit]}}, results=tmp_path, executor="inline")
    assert len(found.tried) == 54
    base = row_of(found.baseline)
    rows = [row_of(record) for record in found.tried]
    allowed = [row for row in rows if row["time_ns"] <= 1.01 * base["time_ns"]]
    front = [row_of(record) for record in found.front]
    assert min(row["energy_pj"] for row in allowed) == min(row["energy_pj"] for row in front)
    assert all(row["time_ns"] <= 1.01 * base["time_ns"] for row in front)


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "random"])
def test_search_keeps_to_its_budget_and_goes_on(tmp_path: Path, sampler: str) -> None:
    pytest.importorskip("optuna", reason="the extra 'optimize' is not installed")
    config = {**SPACE, "optimize": {"trials": 20, "sampler": sampler, "constraints": ["energy <= 100 % of baseline"]}}
    first = ew.results.optimize(config, results=tmp_path, executor="inline")
    assert len(first.tried) == 20 == len(list((tmp_path / "records").glob("*.json")))
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}
    again = ew.results.optimize(config, results=tmp_path, executor="inline")
    assert {r.hash for r in again.tried} == {r.hash for r in first.tried}
    assert [r.hash for r in again.front] == [r.hash for r in first.front]
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "records").iterdir()}, "nothing twice"


@pytest.mark.parametrize(
    ("optimize", "message"),
    [
        ({"objectives": ["energi_pj"]}, "did you mean 'energy_pj'"),
        ({"constraints": ["time_ns < 3"]}, "cannot read the constraint"),
        ({"constraints": ["tyme_ns <= 3"]}, "did you mean 'time_ns'"),
        ({"trials": 0}, "at least 1"),
        ({"trails": 3}, "did you mean 'trials'"),
        ({"sampler": "tpi"}, "did you mean 'tpe'"),
    ],
)
def test_bad_searches(optimize: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        ew.results.optimize({**SPACE, "optimize": optimize}, results=tmp_path, executor="inline")


def test_constraints() -> None:
    row, base = {"time_ns": 103.0}, {"time_ns": 100.0}
    for text, broken in (
        ("time_ns <= 1.01 x baseline", 2.0),
        ("time <= 105 % of baseline", -2.0),
        ("time_ns>=104", 1.0),
        ("time_ns <= 1.05*baseline", -2.0),
    ):
        assert parse_constraint(text).violation(row, base) == pytest.approx(broken)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (9999, "9999"), (10_042, "10.0k"), (0.5, "0.50"), (999_999, "1.00M"), (1.5e7, "15.0M"), (None, "-")],
)
def test_compact(value: float | None, text: str) -> None:
    assert compact(value) == text


def test_percent() -> None:
    assert [percent(1, 1), percent(3, 2), percent(1, 3), percent(1, 0), percent(0, 0)] == [
        "0",
        "+50.0",
        "-66.7",
        "-",
        "0",
    ]


def test_accuracy_is_an_objective_and_a_constraint(tmp_path: Path) -> None:
    """End to end: the front of energy and accuracy, and only formats that stay accurate enough."""
    space: dict[str, Any] = {
        "base": {
            "network": {"file": "configs/examples/networks/digits_small.npz"},
            "accuracy": True,
            "timing": "replay",
            "caches": [{"size_bytes": 8192}],
        },
        "grid": {"formats": ["fp32", "fp8_e5m2", "int8", "int4"]},
        "optimize": {"objectives": ["energy_pj", "accuracy_loss"]},
    }
    free = ew.results.optimize(space, results=tmp_path / "free", executor="inline")
    rows = {row["format"]: row for row in map(row_of, free.tried)}
    beaten = {
        name
        for name, row in rows.items()
        if any(o["energy_pj"] < row["energy_pj"] and o["accuracy_loss"] <= row["accuracy_loss"] for o in rows.values())
    }
    assert len(rows) == 4 and {row_of(r)["format"] for r in free.front} == rows.keys() - beaten
    assert {row["accuracy"] for row in rows.values()} == {1 - row["accuracy_loss"] for row in rows.values()}
    least = max(row["accuracy"] for row in rows.values()) - 0.005
    for text in (f"accuracy >= {least}", f"accuracy_loss <= {1 - least}"):
        bound = ew.results.optimize(
            {**space, "optimize": {"objectives": ["energy_pj"], "constraints": [text]}},
            results=tmp_path / "bound", executor="inline",
        )  # fmt: skip
        kept = [row for row in rows.values() if row["accuracy"] >= least]
        assert [row_of(r)["format"] for r in bound.front] == [min(kept, key=lambda r: r["energy_pj"])["format"]]
    without = {**space, "base": {**space["base"], "accuracy": False}}
    with pytest.raises(InputError, match=r"have no accuracy_loss .*accuracy: true"):
        ew.results.optimize(without, results=tmp_path / "none", executor="inline")
    with pytest.raises(ConfigError, match="unknown column 'acuracy'"):
        ew.results.optimize(
            {**space, "optimize": {"objectives": ["acuracy"]}}, results=tmp_path / "none", executor="inline"
        )
