"""`edgewatt prune` and pruning in configurations: same outputs, true counts, refusals, accuracy as a column."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.prune.trained import prune, prune_one
from traces.base.document import ConfigError
from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.networks.network import ACTIVATIONS, renumbered
from traces.pruning.assignment import arranged
from traces.pruning.layers import layers_of
from traces.pruning.reconstruction import alike, importances, reconstruct
from traces.pruning.windows import fit, pairs_of
from traces.readers import native
from traces.readers.parts.layers import dense_layer, from_layers

WIDTHS = (10, 24, 16, 4)
QUICK = {"time_limit_s": 0.1}


def trained(seed: int = 0, whole: bool = False) -> ew.Network:
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(-5, 6, (b, a)) if whole else rng.normal(size=(b, a)) for a, b in pairs_of(WIDTHS)]
    layers = [
        dense_layer(np.where(w == 0, 1, w), f"layer {k}", bias=rng.integers(-3, 4, len(w))) for k, w in enumerate(drawn)
    ]
    return from_layers(layers, name="trained")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    network, rng = trained(), np.random.default_rng(1)
    native.save(network, tmp_path / "net.npz")
    inputs = rng.normal(size=(200, WIDTHS[0])).astype(np.float32)
    labels = forward(network, inputs)[:, network.outputs].argmax(axis=1)
    np.savez(tmp_path / "cal.npz", inputs=inputs, labels=labels)
    return tmp_path / "net.npz", tmp_path / "cal.npz"


def test_neurons_at_other_places_compute_the_same_outputs_bit_by_bit() -> None:
    network = trained(whole=True)
    scores = [np.abs(w) for w in layers_of(network).matrices(network.weights)]  # type: ignore[arg-type]
    windows, _ = arranged(fit(WIDTHS, 14), scores)
    number = np.arange(network.n_neurons)
    for ids, position in zip(layers_of(network).neurons, windows.positions, strict=True):
        number[ids] = ids[position]
    moved = renumbered(network, number)
    assert not np.array_equal(number, np.arange(network.n_neurons))
    inputs = np.random.default_rng(0).integers(-9, 10, (20, WIDTHS[0]))
    before, after = (forward(each, inputs, dtype=np.int64)[:, each.outputs] for each in (network, moved))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(("n", "steps"), [(400, 0), (15, 0), (15, 50)])
def test_pruning_to_everything_changes_nothing(n: int, steps: int) -> None:
    """Nor do few vectors, from which no least squares find the weights again, and descent from there."""
    network = trained()
    inputs = np.random.default_rng(1).normal(size=(n, WIDTHS[0]))
    made = prune(network, calibration=inputs, density=1.0, memory=100, steps=steps, **QUICK)
    outputs = forward(made.network, inputs)[:, made.network.outputs]
    truth = forward(network, inputs)[:, network.outputs]
    assert alike(outputs - truth, truth.astype(np.float64)) < 1e-6  # float32
    assert max(result.error for result in made.results) < 1e-6
    assert made.results[0].connections == network.n_connections
    assert "Prune freely here" in made.verdict


def test_connections_of_neurons_without_another_side_stand_apart() -> None:
    network = trained()
    layer = np.asarray(network.layer)
    ends_here = network.targets[layer == layer.min()].min()  # a hidden neuron, which keeps its inputs alone
    lame = network.with_(weights=np.where(network.sources == ends_here, 0, network.weights).astype(np.float32))
    inputs = np.random.default_rng(1).normal(size=(60, WIDTHS[0]))
    for result in prune(lame, calibration=inputs, density=1.0, memory=100, **QUICK).results:
        assert (result.connections + result.dead, result.dead) == (np.count_nonzero(lame.weights), WIDTHS[0])


def test_least_squares_beats_plain_weights_and_rounds_beat_one_shot() -> None:
    network, rng = trained(), np.random.default_rng(2)
    weights = layers_of(network).matrices(network.weights.astype(np.float64))  # type: ignore[union-attr]
    biases = [np.zeros(len(w)) for w in weights]
    inputs = rng.normal(size=(600, 4)) @ rng.normal(size=(4, WIDTHS[0])) + 0.3 * rng.normal(size=(600, WIDTHS[0]))
    finishing = [lambda z: np.maximum(z, 0)] * 2 + [lambda z: z]
    counts = [w.size // 4 for w in weights]
    scores = importances(weights, biases, inputs, finishing)
    assert [share.sum() for share in scores] == pytest.approx([WIDTHS[-1]] * 3)
    kept = [s >= np.sort(s.ravel())[-n] for s, n in zip(scores, counts, strict=True)]
    everywhere = [np.ones(w.shape, bool) for w in weights]
    plain = weights[0] * kept[0]
    first = inputs @ weights[0].T
    one = reconstruct(weights, biases, inputs, kept, counts, activations=finishing, rounds=1)
    gradual = reconstruct(weights, biases, inputs, everywhere, counts, activations=finishing, rounds=5)
    assert gradual.errors[0] < one.errors[0] < alike(inputs @ plain.T - first, first)
    assert [int(m.sum()) for m in gradual.masks] == counts


@pytest.mark.parametrize("activation", ["gelu", "tanh", "mixed"])
def test_other_activations_are_fitted_and_keep_their_neurons(activation: str) -> None:
    network, rng = trained(), np.random.default_rng(3)
    codes = rng.integers(0, 9, network.n_neurons)
    codes[codes == ACTIVATIONS.index("clipped-relu")] = 0
    slopes = rng.random(network.n_neurons)
    many = {"activations": codes, "slopes": slopes} if activation == "mixed" else {}
    network = network.with_(activation=activation, weights=network.weights / 4, **many)  # type: ignore[operator]
    inputs = rng.normal(size=(400, WIDTHS[0])).astype(np.float32)
    plain, better = (prune(network, calibration=inputs, density=0.4, memory=20, steps=n, **QUICK) for n in (0, 200))
    mine = forward(better.network, inputs[::5])[:, better.network.outputs].astype(np.float64)
    truth = forward(network, inputs[::5])[:, network.outputs].astype(np.float64)
    assert better.results[0].error == pytest.approx(alike(mine - truth, truth), rel=1e-4)
    assert better.results[0].error < plain.results[0].error < 0.5


@pytest.mark.application
def test_the_command_writes_a_network_its_order_and_a_report(files: tuple[Path, Path], tmp_path: Path) -> None:
    net, cal = files
    out, order, report = tmp_path / "out.npz", tmp_path / "order.npz", tmp_path / "report.json"
    call = ["prune", str(net), "--memory", "16", "--density", "0.3", "--density", "0.2", "--calibration", str(cal),
            "--time-limit", "0.5", "-o", str(out), "--order", str(order)]  # fmt: skip
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.output
    assert "against free pruning to the same density" in " ".join(shown.output.split())
    assert CliRunner().invoke(app, [*call, "--json", str(report), "--force"]).exit_code == 0
    said = json.loads(report.read_text())
    first, free = said["results"][:2]
    pruned = ew.load(out)
    assert first["ios"] == first["bound"] == ew.io_bounds(pruned).lower_total < free["ios"]
    assert ew.count_io(pruned, np.load(order)["edges"], memory=16).total == first["ios"]
    assert first["connections"] == pruned.n_connections <= round(0.3 * 10 * 24) + round(0.3 * 24 * 16) + round(0.3 * 64)
    assert 0 < first["accuracy"] <= 1 and len(first["layer_errors"]) == 3
    assert {row["density"] for row in said["results"]} == {0.3, 0.2} and said["front"]


def test_io_above_the_bound_lowers_the_error() -> None:
    inputs = np.random.default_rng(1).normal(size=(1500, WIDTHS[0])).astype(np.float32)
    made = {
        extra: [
            prune(trained(), calibration=inputs, density=0.3, memory=memory, extra=extra, **QUICK).results[0]
            for memory in (11, 12, 13)
        ]
        for extra in (0, 40)
    }
    assert all(each.ios == each.bound for each in made[0])
    assert 0 < max(each.ios - each.bound for each in made[40]) <= 60
    found = prune(trained(), calibration=inputs, density=0.3, memory=12, extra=40, **QUICK | {"time_limit_s": 1.0})
    plain = ew.order(found.network, "auto", memory=12, time_limit_s=0.5)
    assert ew.count_io(found.network, found.order, memory=12).total == found.results[0].ios
    assert found.results[0].ios <= 1.01 * ew.count_io(found.network, plain, memory=12).total
    assert sum(each.error for each in made[40]) < sum(each.error for each in made[0])


def test_a_machine_adds_energy_and_time(files: tuple[Path, Path]) -> None:
    net, cal = files
    system = {"scratchpad": {"size_bytes": 2048, "stream_bytes": 1024}, "dram": {"part": "lpddr4-3200"}}
    asked = {"calibration": str(cal), "density": 0.3, "lanes": 16, "time_limit_s": 0.5}
    made = ew.orders.prune_for_memory(ew.load(net), system=system, **asked)
    mine, free = made.results
    assert mine.memory == 17 and mine.energy_pj and free.energy_pj and mine.energy_pj < free.energy_pj
    assert "% energy" in made.verdict
    mine, free = made.results
    assert f"I/Os ({mine.ios:,}, the lower bound, against {free.ios:,})" in made.verdict


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"density": 0.9, "memory": 12}, r"M = 12 has room for \d+ connections .* need M = \d+; nearest density: 0\."),
        ({"density": 0.3, "memory": 3}, "M = 3 has room for 0 connections"),
        ({"density": 0.3, "memory": 16, "calibration": np.zeros((20, 3))}, r"expected \(B, 10\): one column per input"),
        ({"density": 0.3, "memory": 16, "calibration": np.zeros((4, 10))}, "10 input vectors"),
        ({"density": 0.3, "memory": 16, "calibration": np.full((20, 10), 1e300)}, r"numbers up to 1e\+30"),
        ({"density": 1.3, "memory": 16}, "density is the share to keep"),
        *[
            (
                {
                    "density": 0.3,
                    "memory": 16,
                    "calibration": {"inputs": np.ones((10, 10)), "labels": np.full(10, label)},
                },
                f"label 0 is {label}: labels are outputs, from 0 to 3",
            )
            for label in (-1, 4)
        ],
        ({"density": 0.3, "memory": 3}, r"need M = \d+$"),
        *[({"density": 0.3, "memory": 16, "seed": seed}, f"seed must .*, not {seed}") for seed in (-1, 10**22)],
    ],
)
def test_bad_input_is_named(asked: dict[str, object], said: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=said):
        prune(trained(), **{"calibration": rng.normal(size=(50, 10)), **asked})  # type: ignore[arg-type]


def test_a_layer_of_zeros_is_refused() -> None:
    layers = [dense_layer(np.full(shape, value, np.float32), "w") for shape, value in (((8, 10), 0), ((4, 8), 1))]
    with pytest.raises(InputError, match="weights of layer 1 of 2 are all 0"):
        prune(from_layers(layers, name="zeros"), calibration=np.ones((50, 10)), density=0.3, memory=16)


def test_a_layer_whose_weights_lie_outside_the_windows() -> None:
    first = np.zeros((30, 10), np.float32)
    first[0, 0] = 1
    layers = [dense_layer(w, "w") for w in (first, np.ones((4, 30), np.float32))]
    inputs = np.random.default_rng(0).normal(size=(50, 10))
    made = prune(from_layers(layers, name="few"), calibration=inputs, density=0.1, memory=12, **QUICK)  # type: ignore[arg-type]
    assert made.results[0].connections >= 0


def config(net: Path, prune: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "network": {"file": str(net), "prune": prune, **more}, "orderings": ["own"], "fast_memory": {"size": 16},
        "measure": "io",
    }  # fmt: skip


def test_lanes_belong_to_a_machine(files: tuple[Path, Path]) -> None:
    net, cal = map(str, files)
    call = ["prune", net, "--memory", "16", "--density", "0.3", "--calibration", cal, "--lanes", "4"]
    assert "--lanes are input vectors of a pass on --system" in str(CliRunner().invoke(app, call).exception)


def test_a_configuration_prunes_for_a_memory(files: tuple[Path, Path], tmp_path: Path) -> None:
    net, cal = files
    said = {"method": "memory", "density": 0.3, "memory": 16}
    for given in (said, {**said, "calibration": str(cal)}):
        (record,) = ew.run(config(net, given), results=tmp_path / "results")
        io = record.results["io"]
        assert io["total"] == record.results["bounds"]["lower_total"], record.results
    before = ew.run(config(net, {"density": 0.3}), results=tmp_path / "results")[0]
    assert "method" not in before.config["network"]["prune"]  # the hashes of earlier configurations stay


def test_accuracy_is_a_column_and_an_objective(files: tuple[Path, Path], tmp_path: Path) -> None:
    net, cal = files
    base = {**config(net, {"density": 0.3, "calibration": str(cal)}, labelled=str(cal)), "accuracy": True}
    methods = [
        {"density": 0.3, "calibration": str(cal)},
        {"method": "memory", "memory": 16, "density": 0.3, "calibration": str(cal)},
    ]
    sweep = {
        "base": base, "grid": {"network.prune": methods, "formats": ["fp32", "int8"]},
        "optimize": {"objectives": ["accuracy", "io"], "constraints": ["accuracy >= 0.3"]},
    }  # fmt: skip
    front = ew.results.optimize(sweep, results=tmp_path / "results", executor="inline")
    rows = front.as_json()["front"]
    assert len(front.tried) == 4 and rows and all(row["accuracy"] >= 0.3 for row in rows)
    network = prune_one(ew.load(net), "magnitude", calibration=str(cal), density=0.3)
    data = np.load(cal)
    share = (forward(network, data["inputs"])[:, network.outputs].argmax(axis=1) == data["labels"]).mean()
    plain = next(
        r for r in front.tried if "method" not in r.config["network"]["prune"] and r.config["format"] == "fp32"
    )
    assert plain.results["accuracy"]["accuracy"] == pytest.approx(share, abs=0.011)


def test_bad_pruning_of_a_configuration_is_named(files: tuple[Path, Path]) -> None:
    net, _ = files
    for given, said in (
        ({"method": "memory", "density": 0.3}, "belong together"),
        ({"memory": 16, "density": 0.3}, "belong together"),
        ({"density": 0.3, "calibration": "no.npz"}, "no such file"),
        ({"method": "windows", "density": 0.3}, "magnitude"),
    ):
        with pytest.raises(ConfigError, match=said):
            ew.run(config(net, given))
