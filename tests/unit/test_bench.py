"""The comparison with libraries, the cost model and its system file. Times are shown, never asserted."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from cython_ext.inference.runs import LEVELS, level_number
from edgewatt.checks.bench import OURS, bench
from edgewatt.checks.bench_page import bench_page
from edgewatt.checks.clocks import measure
from edgewatt.checks.peer import PEERS, MissingPeer, layers_of, table_of
from edgewatt.cli import app
from edgewatt.orders.timed import fastest_order, time_objective
from hwmodel.processor.calibration import _measured_here, own_file, this_cpu
from hwmodel.processor.cost import (
    TERMS,
    Limits,
    Processor,
    core_caches,
    features,
    fit,
    load_processor,
    stream_lines,
    surprises,
)
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.traffic import traffic
from hwmodel.processor.work import ordered_work
from traces.base.errors import InputError, install_command
from traces.generators.networks import random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

pytestmark = pytest.mark.application

LIMITS = Limits(48 << 10, 1 << 20, 32 << 20, 490.0, 240.0, 108.0, 38.0, 250.0)
NANOSECONDS = dict(
    zip(TERMS, (900.0, 0.4, 0.3, 0.2, 0.2, 0.1, 0.4, 0.06, 0.08, 0.08, 0.16, 0.31, 0.2, 6.3, 1.5), strict=True)
)
PROCESSOR = Processor(LIMITS, NANOSECONDS, 8000, "avx512", 180, 0.08, "an example")


@pytest.fixture
def system(tmp_path: Path) -> str:
    PROCESSOR.save(tmp_path / "cpu.yaml")
    return str(tmp_path / "cpu.yaml")


@pytest.mark.parametrize("name", list(PEERS))
@pytest.mark.parametrize("vectors", [1, 7, 128])
@pytest.mark.parametrize("make", [lambda: random_layered(4, 60, 0.1), lambda: radix_net([[4, 4], [4, 4]])])
def test_every_peer_computes_what_we_compute(name: str, vectors: int, make) -> None:  # type: ignore[no-untyped-def]
    network = make()
    batch = np.random.default_rng(1).random((vectors, len(network.inputs))).astype(np.float32)
    layers, row = layers_of(network)
    values = table_of(network, row, batch)
    try:
        step = PEERS[name].item(layers, values)
    except MissingPeer as reason:
        pytest.skip(str(reason))
    step()
    step()  # results do not pile up
    ours = compile_inference(network, lanes=1 if vectors == 1 else 128).neurons(batch)
    np.testing.assert_allclose(values[row].T, ours, atol=1e-4)


def test_bench_reports_every_row_and_the_control(system: str, tmp_path: Path) -> None:
    result = bench(random_layered(3, 40, 0.2), batch=16, peers=["scipy"], target=system)
    assert {row.name for row in result.rows} >= {OURS, "edgewatt, again (A/A)", "scipy"}
    assert result.lanes in (32, 64, 128) and result.runs > 0 and len(result.details["seconds"]["scipy"]) == 11
    page = Path(bench_page([result], tmp_path / "bench.html")).read_text()
    assert "Roofline" in page and "<svg" in page and "scipy" in page
    assert "http://" not in page and "https://" not in page


def test_an_absent_peer_is_skipped_by_name(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def no_torch(name: str, *rest: object, **more: object) -> object:
        if name == "torch":
            raise ImportError
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", no_torch)
    result = bench(random_layered(3, 20, 0.2), batch=4, peers=["scipy", "torch"], target=system)
    assert result.missing == {"torch": f"PyTorch is not installed: {install_command('bench')}"}


def test_bench_from_the_command_line(system: str, tmp_path: Path) -> None:
    arguments = ["bench", "configs/examples/quickstart.yaml", "--batch", "8", "-p", "scipy", "--target", system]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "b.html"), "--json", str(tmp_path / "b.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "b.json").read_text())["batch"] == 8
    assert (tmp_path / "b.html").exists() and "A/A control" in done.output


def test_what_bench_refuses(system: str) -> None:
    network = random_layered(3, 20, 0.2)
    with pytest.raises(InputError, match="rounds must be an integer of at least 11"):
        bench(network, batch=2, peers=[], rounds=3, target=system)
    with pytest.raises(InputError, match="batch must be an integer"):
        bench(network, batch=0, target=system)
    with pytest.raises(InputError, match="scipy"):
        bench(network, batch=2, peers=["sipy"], target=system)
    skips = Network([0, 1, 0], [1, 2, 3], 4, inputs=[0], outputs=[2, 1], weights=[1, 1, 1])
    with pytest.raises(InputError, match="has outputs, which stay linear, and hidden neurons"):
        layers_of(skips)


def test_rounds_time_every_step_once_per_round() -> None:
    calls = {"a": 0, "b": 0}

    def step(name: str) -> None:
        calls[name] += 1

    found = measure({"a": lambda: step("a"), "b": lambda: step("b")}, rounds=11, sample_s=1e-6)
    assert len(found.seconds["a"]) == 11 and found.ratio("a", "a") == 1 and min(calls.values()) > 11


def test_a_system_file_comes_back_and_mistakes_are_named(system: str, tmp_path: Path) -> None:
    assert load_processor(system) == PROCESSOR
    text = Path(system).read_text()
    for old, new, message in (
        ("kind: processor", "kind: engine", "no system file of kind 'processor'"),
        ("  run:", "  runn:", r"unknown key nanoseconds\.runn .did you mean 'run'"),
        ("simd: avx512\n", "", "simd is missing"),
        ("l1_bytes: 49152", "l1_bytes: -1", "l1_bytes must be a number of at least 0"),
        ("run: 0.3", "run: .nan", "nanoseconds.run must be a number"),
        ("simd: avx512", "simd: avx1024", r"bad\.yaml: unknown SIMD level 'avx1024' .did you mean 'avx512'"),
        ("l1_bytes: 49152", "l1_bytes: 63", "l1_bytes is 63: from a line of 64 bytes in each of 8 ways"),
        ("l2_ways: 8", "l2_ways: 99999", "l2_bytes is 1048576: from a line of 64 bytes in each of 99999 ways"),
        ("l2_bytes: 1048576", "l2_bytes: 9999999999", "l2_bytes is 9999999999: .* to 1073741824"),
        ("fma_gflops: 250.0", "fma_gflops: 0.0", "fma_gflops is 0: no processor has none"),
        ("remembered_runs: 8000", "remembered_runs: -5", "remembered_runs must be a number of at least 0, not '-5'"),
        ("median_error: 0.08", "median_error: .nan", "median_error must be a number of at least 0, not '.nan'"),
    ):
        assert old in text
        (tmp_path / "bad.yaml").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=message):
            load_processor(tmp_path / "bad.yaml")
    with pytest.raises(InputError, match="this-cpu"):
        ew.order(random_layered(3, 20, 0.2), "auto", memory=10, objective="time", target="no-such-cpu")


def test_a_kept_calibration_is_that_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def calibrated(progress: object = None) -> Processor:
        measured.append(1)
        return replace(PROCESSOR, simd=LEVELS[level_number()], source=f"{_measured_here()}today")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("hwmodel.processor.calibration.calibrate", calibrated)
    assert this_cpu() == this_cpu() and len(measured) == 1
    kept = own_file().read_text()
    for text in (kept[:100], kept.replace(_measured_here(), "measured by edgewatt on x86_64 another, "), "\0"):
        own_file().write_text(text)
        before = len(measured)
        assert this_cpu() == this_cpu() and len(measured) == before + 1
    assert own_file().read_text() == kept


def test_the_fit_finds_the_terms_it_was_made_with() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((60, len(TERMS))) * 1000
    true = np.array(list(NANOSECONDS.values()))
    found, error, _ = fit(table, table @ true * 1e-9)
    np.testing.assert_allclose(list(found.values()), true, rtol=1e-6)
    assert error < 1e-9


def test_features_count_what_they_say() -> None:
    network = uniform_layers([30, 20, 10], 0.5)
    work = ordered_work(network, None)
    counts = dict(zip(TERMS, features(work, 64, LIMITS, "avx2", 0).tolist(), strict=True))
    assert (counts["run"], counts["connection_line"], counts["stored_line"]) == (30, network.n_connections * 4, 120)
    assert (counts["copied_line"], counts["resumed_line"], counts["row_line"]) == (40, 0, counts["connection_line"])
    assert counts["l2_line"] == counts["far_line"] == 0  # 60 rows of 256 bytes stay in L1 from pass to pass
    stay, five_rows = (traffic(work, 64, (l1, (1 << 30, 16))) for l1 in ((48 << 10, 12), (5 * 256, 5)))
    assert stay.l1_fills + stay.l1_stream == 0 and five_rows.l1_fills + five_rows.l1_stream > 1000


def test_loads_of_what_two_runs_share_hide_behind_its_multiply_adds() -> None:
    dense = ordered_work(uniform_layers([40, 2, 3], 1.0), None)  # 2 runs of 40, then 3 of 2
    alone, paired = (
        dict(zip(TERMS, features(dense, 64, LIMITS, simd, 0).tolist(), strict=True)) for simd in ("avx2", "avx512")
    )
    assert (dense.shared > 0).sum() == 1 and alone["quad"] == 10 + 10 + 3 and paired["quad"] == 3
    assert paired["row_line"] == alone["row_line"] - 40 * 4 and paired["connection_line"] == alone["connection_line"]


def test_a_branch_predictor_that_is_too_small_remembers_nothing() -> None:
    assert surprises([0, 1000, 1500, 2000, 5000], 1000).tolist() == [0, 0, 750, 2000, 5000]
    assert surprises(7, 0) == 7


def test_the_fastest_order_is_legal_and_predicted_no_slower_than_csr(system: str) -> None:
    network = random_layered(4, 300, 0.1)
    found = fastest_order(network, PROCESSOR)
    assert found.predicted_s <= found.csr_s and found.lanes in (32, 64, 128)
    order = ew.order(network, "auto", memory=100, objective="time", target=system)
    compile_inference(network, order)
    searched = ew.order(
        network, "connection-reordering", memory=100, objective="time", target=system, lanes=128, iterations=2000
    )
    objective = time_objective(PROCESSOR, network, 128)
    assert objective.evaluate(network, searched, _task()) <= objective.evaluate(network, None, _task())
    with pytest.raises(InputError, match="target belongs to objective='time'"):
        ew.order(network, "auto", memory=100, target="this-cpu")


def test_the_search_for_the_fastest_order_keeps_its_limit_and_repeats() -> None:
    network = uniform_layers([1000, 3000], 0.01)
    processor = replace(PROCESSOR, median_error=0.03)
    found = [fastest_order(network, processor) for _ in range(2)]
    assert found[0].complete and (found[0].ordering.edges == found[1].ordering.edges).all()
    assert found[0].ordering.parameters.get("near") and found[0].predicted_s < found[0].csr_s
    first = fastest_order(network, PROCESSOR, time_limit_s=0.0)
    assert not first.complete and first.ordering.parameters == {} and first.predicted_s == first.csr_s
    plain = ew.order(network, "two-optimal", memory=100)
    assert (first.ordering.edges == plain.edges).all()


def _task():  # type: ignore[no-untyped-def]
    from reorder.base import Task

    return Task(100)


@pytest.mark.parametrize("option", ["-o", "--json", "--calibrate"])
def test_what_cannot_be_written_is_told_before_anything_is_measured(option: str, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    for module, name in (("edgewatt.checks.bench", "bench"), ("hwmodel.processor.calibration", "calibrate")):
        monkeypatch.setattr(sys.modules[module], name, lambda *a, **k: pytest.fail("measured"))
    kept = tmp_path / "kept.html"
    kept.write_text("kept")
    source = "configs/examples/networks/digits_small.npz"
    said = CliRunner().invoke(app, ["bench", source, "-o", str(kept), option, str(tmp_path / "none" / "x")])
    assert said.exit_code != 0 and "cannot be written" in str(said.exception or said.output)
    assert [p.name for p in tmp_path.iterdir()] == ["kept.html"] and kept.read_text() == "kept"


def test_cache_sizes_are_positive() -> None:
    assert set(core_caches()) == {"l1", "l2", "l3"} and all(min(pair) > 0 for pair in core_caches().values())


def test_a_stream_that_no_cache_holds_comes_from_memory_in_every_pass() -> None:
    network = random_layered(3, 40, 0.2)
    small = replace(PROCESSOR, limits=replace(LIMITS, l3_bytes=1024, dram_gbs=0.01))
    held = PROCESSOR.seconds(network, lanes=64)
    slower = small.seconds(network, lanes=64) - held
    assert slower == pytest.approx(stream_lines(ordered_work(network, None)) * 6400 * 1e-9)
