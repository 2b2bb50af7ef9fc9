"""The shipped digits networks are what they say they are."""

from pathlib import Path

import numpy as np
import pytest

from traces.networks.forward import forward
from traces.networks.network import Network
from traces.readers import load, native

FOLDER = Path(__file__).parents[2] / "configs" / "examples" / "networks"
SIZES = {
    "digits_small": ((64, 256, 256, 10), range(7_500, 8_501)),
    "digits_wide": ((64, 1024, 1024, 10), range(50_000, 80_001)),
}


@pytest.mark.parametrize("name", SIZES)
def test_stored_accuracy_is_what_the_forward_pass_gives(name: str) -> None:
    network = load(FOLDER / f"{name}.npz")
    extras = native.read_extras(FOLDER / f"{name}.npz")
    assert isinstance(network, Network) and network.batch is not None
    widths, connections = SIZES[name]
    assert network.n_connections in connections and network.n_neurons == sum(widths) and network.name == name
    assert network.inputs.tolist() == list(range(64)) and len(network.outputs) == 10 and network.activation == "relu"
    images = extras["test_images"].astype(np.float32) / np.float32(extras["pixel_max"])
    assert np.array_equal(images[: len(network.batch)], network.batch) and len(network.batch) == 64
    answers = forward(network, images)[:, network.outputs].argmax(axis=1)
    accuracy = float((answers == extras["test_labels"]).mean())
    assert accuracy == float(extras["accuracy"]) >= 0.95
    assert len(images) >= 300 and int(extras["seed"]) >= 0


def test_the_test_images_are_those_the_seed_holds_out() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    for name in SIZES:
        extras = native.read_extras(FOLDER / f"{name}.npz")
        order = np.random.default_rng(int(extras["seed"])).permutation(len(digits.target))[: len(digits.target) // 5]
        assert np.array_equal(digits.data[order], extras["test_images"])
        assert np.array_equal(digits.target[order], extras["test_labels"])


def test_together_below_a_megabyte_and_a_half() -> None:
    assert sum((FOLDER / f"{name}.npz").stat().st_size for name in SIZES) < 1_500_000
