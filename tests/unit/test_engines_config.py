"""Engines and GPUs in configurations: swept, hashed, recorded; what issue time does not see is said."""

import warnings

import pytest

import edgewatt as ew
from edgewatt.config.kinds import registry
from edgewatt.runs.plan import ignored_settings
from traces.base.document import ConfigError
from traces.base.errors import IgnoredSettingWarning, InputError

NETWORK = {"generate": {"kind": "uniform-layers", "widths": [24, 32, 8], "density": 0.3}}
WORK = {
    "network": NETWORK, "layout": {"kind": "csr", "lanes": 4}, "batch": 16, "caches": [{"size_bytes": 1024}],
    "engine": {"clock_ghz": 0.2},
}  # fmt: skip
GPU = {"network": NETWORK, "timing": "replay"}


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
    assert [ew.load_sweep({**WORK, "engines": 2}).points[0].hash] == [two.hash]


def test_engines_and_gpus_are_axes_of_a_sweep(tmp_path):
    found = ew.sweep(
        {"base": WORK, "grid": {"engines": [1, 2], "engine.outstanding_misses": [1, 8]}},
        results=tmp_path / "engines", executor="inline",
    )  # fmt: skip
    assert len(found.records) == 4 and not found.failed
    grid = {"gpu.sms": [1, 4], "gpu.l1.size_bytes": [6144, 24576]}
    gpus = ew.sweep({"base": {**GPU, "strides": ["none", 32]}, "grid": grid}, results=tmp_path / "g", executor="inline")
    assert len(gpus.records) == 8 and not gpus.failed
    assert {record.config["gpu"]["l1"]["ways"] for record in gpus.records} == {6}


def test_a_gpu_counts_what_its_model_counts():
    import numpy as np

    from edgewatt.runs.gpu import layer_matrices
    from hwmodel.caches.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
    from hwmodel.dram.engine import load_part
    from reorder.order import order
    from traces.trace.spmv import lay_out_spmv

    record = ew.run({**GPU, "gpu": {"sms": 2}, "formats": ["fp16"]})[0]
    network = registry("generators")["uniform-layers"].item(widths=[24, 32, 8], density=0.3)
    edges = order(network, "two-optimal", memory=100).edges
    spec, time, misses, reads = GpuSpec(sms=2), 0.0, 0, 0
    for matrix in layer_matrices(network, edges):
        played = simulate_gpu_spmv(lay_out_spmv(matrix, np.ones(matrix.shape[1]), value_format="fp16"), spec)
        time += gpu_time(played, spec, load_part("lpddr4-3200"), {}).time_ns
        misses += played.l1.load_line_misses
        reads += int((played.memory_is_write == 0).sum())
    assert record.results["time_ns"] == time
    assert record.results["cache"][0]["load_line_misses"] == misses
    assert record.results["traffic"]["reads"] == reads
    streams = record.results["traffic"]["streams"]
    assert sum(each["reads"] for each in streams.values()) == reads
    assert record.results["bus"]["ones"] is None and record.results["energy_pj"]["total"] > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engines": 0}, "engines count must be a whole number from 1 to 64, not 0"),
        ({"engines": {"count": 2, "cut": "rows"}}, "cut of the engines"),
        ({"engines": 2, "scratchpad": {"size_bytes": 8192}, "caches": []}, "a scratchpad belongs to one engine"),
        ({"engines": 2, "caches": [{"size_bytes": 1024, "policy": "min"}]}, "'min' needs the future, which several"),
        ({"gpu": {}}, "a GPU brings its own caches"),
    ],
)
def test_bad_engines(changes, message):
    with pytest.raises(ConfigError, match=message):
        ew.load_sweep({**WORK, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timing": "system"}, "its time is issue time, say 'timing: replay'"),
        ({"layout": {"lanes": 16}}, "the GPU model computes one input vector"),
        ({"engines": 2}, "a GPU has its SMs"),
        ({"technology": "lop-45nm"}, "no technology has the on-chip energy of a GPU"),
        ({"encoder": "dbi-dc"}, "the GPU model sees addresses alone"),
        ({"gpu": {"sms": 0}}, "gpu sms must be a whole number of at least 1"),
        ({"gpu": {"l2": {"size_bytes": 65536, "line_bytes": 64}}}, "gpu l2 line_bytes 64 are not the bursts of 32"),
    ],
)
def test_bad_gpus(changes, message):
    with pytest.raises(ConfigError, match=message):
        ew.load_sweep({**GPU, "gpu": {}, **changes})


def test_an_order_that_a_gpu_cannot_compute_is_named():
    with pytest.raises(InputError, match="ordering by-source"):
        ew.run({**GPU, "gpu": {}, "orderings": ["by-source"]})


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"engine.outstanding_misses": [1, 8]}, "engine.outstanding_misses has no influence"),
        ({"dram.controller.scheduler": ["fcfs", "fr-fcfs"]}, "dram.controller changes commands and energy"),
        ({"engines": [1, 2]}, "one engine makes all accesses"),
    ],
)
def test_what_issue_time_does_not_see_is_said(grid, said, tmp_path):
    plan = ew.load_sweep({"base": {**WORK, "timing": "replay"}, "grid": grid})
    assert len(ignored_settings(plan.points)) == 1 and said in ignored_settings(plan.points)[0]
    with pytest.warns(IgnoredSettingWarning, match=f"issue time.*{said}"):
        ew.sweep(plan, results=tmp_path, executor="inline")
    assert not ignored_settings(ew.load_sweep({"base": WORK, "grid": grid}).points)


def test_nothing_is_said_where_nothing_is_ignored():
    with warnings.catch_warnings():
        warnings.simplefilter("error", IgnoredSettingWarning)
        ew.run({**WORK, "timing": "replay"})


def test_a_gpu_has_no_trace_to_export(tmp_path):
    from typer.testing import CliRunner

    from edgewatt.cli import app

    file = tmp_path / "gpu.yaml"
    file.write_text(
        "network: {generate: {kind: uniform-layers, widths: [8, 8], density: 0.5}}\ngpu: {}\ntiming: replay\n"
    )
    found = CliRunner().invoke(app, ["export", str(file), "-f", "dinero", "-o", str(tmp_path / "out")])
    assert isinstance(found.exception, InputError) and "leave `gpu` out" in str(found.exception)


def test_passes_are_said_for_one_vector_after_the_other():
    one = ew.run({**WORK, "layout": {"kind": "csr"}, "batch": 3, "timing": "replay"})[0]
    alone = ew.run({**WORK, "layout": {"kind": "csr"}, "batch": 1, "timing": "replay"})[0]
    assert one.results["passes"] == 3 and "passes" not in alone.results
    assert one.results["io"] == alone.results["io"]
    loads = [sum(s.get("loads", 0) for s in r.results["accesses"].values()) for r in (one, alone)]
    assert loads[0] == 3 * loads[1]
