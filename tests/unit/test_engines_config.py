"""Engines in configurations: swept, hashed, recorded; what issue time does not see is said."""

import warnings

import pytest

import edgewatt as ew
from edgewatt.runs.plan import ignored_settings
from traces.base.document import ConfigError
from traces.base.errors import IgnoredSettingWarning

NETWORK = {"generate": {"kind": "uniform-layers", "widths": [24, 32, 8], "density": 0.3}}
WORK = {
    "network": NETWORK, "layout": {"kind": "csr", "lanes": 4}, "batch": 16, "caches": [{"size_bytes": 1024}],
    "engine": {"clock_ghz": 0.2},
}  # fmt: skip


def test_engines_share_the_work_and_the_record_says_how():
    one, two, runs = (
        ew.run({**WORK, "engines": engines})[0] for engines in (1, 2, {"count": 2, "cut": "runs"})
    )  # fmt: skip
    assert "engines" not in one.config and two.config["engines"] == {"count": 2, "cut": "passes"}
    assert len(one.results["engines"]) == 1 and len(two.results["engines"]) == len(runs.results["engines"]) == 2
    accesses = [sum(engine["accesses"] for engine in record.results["engines"]) for record in (one, two, runs)]
    assert accesses[0] == accesses[1] <= accesses[2]
    assert len({record.hash for record in (one, two, runs)}) == 3
    assert two.results["time_ns"] < one.results["time_ns"]
    assert [ew.config.load_sweep({**WORK, "engines": 2}).points[0].hash] == [two.hash]


def test_engines_are_axes_of_a_sweep(tmp_path):
    found = ew.sweep(
        {"base": WORK, "grid": {"engines": [1, 2], "engine.outstanding_misses": [1, 8]}},
        results=tmp_path / "engines", executor="inline",
    )  # fmt: skip
    assert len(found.records) == 4 and not found.failed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engines": 0}, "engines count must be a whole number from 1 to 64, not 0"),
        ({"engines": {"count": 2, "cut": "rows"}}, "cut of the engines"),
        ({"engines": 2, "scratchpad": {"size_bytes": 8192}, "caches": []}, "a scratchpad belongs to one engine"),
        ({"engines": 2, "caches": [{"size_bytes": 1024, "policy": "min"}]}, "'min' needs the future, which several"),
    ],
)
def test_bad_engines(changes, message):
    with pytest.raises(ConfigError, match=message):
        ew.config.load_sweep({**WORK, **changes})


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"engine.outstanding_misses": [1, 8]}, "engine.outstanding_misses has no influence"),
        ({"dram.controller.scheduler": ["fcfs", "fr-fcfs"]}, "dram.controller changes commands and energy"),
        ({"engines": [1, 2]}, "one engine makes all accesses"),
    ],
)
def test_what_issue_time_does_not_see_is_said(grid, said, tmp_path):
    plan = ew.config.load_sweep({"base": {**WORK, "timing": "replay"}, "grid": grid})
    assert len(ignored_settings(plan.points)) == 1 and said in ignored_settings(plan.points)[0]
    with pytest.warns(IgnoredSettingWarning, match=f"issue time.*{said}"):
        ew.sweep(plan, results=tmp_path, executor="inline")
    assert not ignored_settings(ew.config.load_sweep({"base": WORK, "grid": grid}).points)


def test_nothing_is_said_where_nothing_is_ignored():
    with warnings.catch_warnings():
        warnings.simplefilter("error", IgnoredSettingWarning)
        ew.run({**WORK, "timing": "replay"})


def test_passes_are_said_for_one_vector_after_the_other():
    one = ew.run({**WORK, "layout": {"kind": "csr"}, "batch": 3, "timing": "replay"})[0]
    alone = ew.run({**WORK, "layout": {"kind": "csr"}, "batch": 1, "timing": "replay"})[0]
    assert one.results["passes"] == 3 and "passes" not in alone.results
    assert one.results["io"] == alone.results["io"]
    loads = [sum(s.get("loads", 0) for s in r.results["accesses"].values()) for r in (one, alone)]
    assert loads[0] == 3 * loads[1]
