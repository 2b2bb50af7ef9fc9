"""The comparison with libraries, the cost model and its system file. Times are shown, never asserted."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.checks.bench import OURS, bench, measure
from edgewatt.checks.peer import PEERS, MissingPeer, layers_of, table_of
from edgewatt.cli import app
from edgewatt.orders.timed import fastest_order
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.limits import l1_bytes
from traces.base.errors import InputError, install_command
from traces.generators.networks import random_layered
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

pytestmark = pytest.mark.application


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


def test_bench_reports_every_row_and_the_control() -> None:
    result = bench(random_layered(3, 40, 0.2), batch=16, peers=["scipy"])
    assert {row.name for row in result.rows} >= {OURS, "edgewatt, again (A/A)", "scipy"}
    assert result.lanes in (32, 64, 128) and result.runs > 0 and len(result.details["seconds"]["scipy"]) == 11


def test_an_absent_peer_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def no_torch(name: str, *rest: object, **more: object) -> object:
        if name == "torch":
            raise ImportError
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", no_torch)
    result = bench(random_layered(3, 20, 0.2), batch=4, peers=["scipy", "torch"])
    assert result.missing == {"torch": f"PyTorch is not installed: {install_command('bench')}"}


def test_bench_from_the_command_line(tmp_path: Path) -> None:
    arguments = ["bench", "configs/examples/quickstart.yaml", "--batch", "8", "-p", "scipy"]
    done = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "b.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "b.json").read_text())["batch"] == 8
    assert "A/A control" in done.output


def test_what_bench_refuses() -> None:
    network = random_layered(3, 20, 0.2)
    with pytest.raises(InputError, match="rounds must be an integer of at least 11"):
        bench(network, batch=2, peers=[], rounds=3)
    with pytest.raises(InputError, match="batch must be an integer"):
        bench(network, batch=0)
    with pytest.raises(InputError, match="scipy"):
        bench(network, batch=2, peers=["sipy"])
    skips = Network([0, 1, 0], [1, 2, 3], 4, inputs=[0], outputs=[2, 1], weights=[1, 1, 1])
    with pytest.raises(InputError, match="has neurons of several activations"):
        layers_of(skips)


def test_rounds_time_every_step_once_per_round() -> None:
    calls = {"a": 0, "b": 0}

    def step(name: str) -> None:
        calls[name] += 1

    found = measure({"a": lambda: step("a"), "b": lambda: step("b")}, rounds=11, sample_s=1e-6)
    assert len(found.seconds["a"]) == 11 and found.ratio("a", "a") == 1 and min(calls.values()) > 11


def test_the_fastest_order_is_legal() -> None:
    network = random_layered(4, 300, 0.1)
    found = fastest_order(network, lanes=(64, 128))
    assert found.complete and 0 < found.seconds <= found.csr_s and found.lanes in (64, 128)
    compile_inference(network, found.ordering)
    first = fastest_order(network, time_limit_s=0.0)
    assert not first.complete and first.ordering.parameters == {} and first.seconds <= first.csr_s
    assert (first.ordering.edges == ew.order(network, "two-optimal", memory=100).edges).all()


def test_time_is_that_of_this_processor() -> None:
    network = random_layered(3, 40, 0.2)
    assert ew.order(network, "auto", memory=100, objective="time", target="this-cpu").method == "long-runs"
    plain = ew.order(network, "two-optimal", memory=100, objective="time")
    assert (plain.edges == ew.order(network, "two-optimal", memory=100).edges).all()
    with pytest.raises(InputError, match="cannot search by the clock: use 'auto'"):
        ew.order(network, "connection-reordering", memory=100, objective="time", iterations=10)
    with pytest.raises(InputError, match="'this-cpu' is the only one"):
        ew.order(network, "auto", memory=10, objective="time", target="no-such-cpu")
    with pytest.raises(InputError, match="target belongs to objective='time'"):
        ew.order(network, "auto", memory=100, target="this-cpu")


def test_what_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sys.modules["edgewatt.checks.bench"], "bench", lambda *a, **k: pytest.fail("measured"))
    source = "configs/examples/networks/digits_small.npz"
    said = CliRunner().invoke(app, ["bench", source, "--json", str(tmp_path / "none" / "x")])
    assert said.exit_code != 0 and "cannot be written" in str(said.exception or said.output)


def test_the_first_cache_has_a_size() -> None:
    assert l1_bytes() >= 4096
