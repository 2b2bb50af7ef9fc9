"""Graph Challenge files and RadiX-Net topologies equal the reference goldens (reference/radixnet)."""

import json
from pathlib import Path

import numpy as np
import pytest
from oracles.challenge import categories, read_categories

from traces.generators.radixnet import radix_net
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.readers import load

FOLDERS = ["radix64_222222", "radix64_88", "radix64x2_kron_44_4"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_reading_and_inference(reference: Path, folder: str) -> None:
    golden = json.loads((reference / "radixnet" / folder / "golden.json").read_text())
    network = load(reference / "radixnet" / folder)
    assert isinstance(network, Network) and network.batch is not None
    assert network.n_connections == golden["edges"]
    assert network.batch.shape == (golden["n_rows"], golden["neurons"])
    assert categories(network) == read_categories(reference / "radixnet" / folder) == golden["categories"]
    for dtype in (np.float32, np.float64):  # the bias -0.3 is stored as float32 in both, so neither is exact
        sums = forward(network, dtype=dtype)[:, network.outputs].sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(sums, golden["row_sums"], rtol=0, atol=0.002)


@pytest.mark.parametrize("folder", FOLDERS)
def test_generator_equals_the_files(reference: Path, folder: str) -> None:
    golden = json.loads((reference / "radixnet" / folder / "golden.json").read_text())
    made = radix_net(golden["radix_lists"], golden["kronecker"], permutations=golden["block_permutations"])
    read = load(reference / "radixnet" / folder)
    assert isinstance(read, Network)
    for name in ("sources", "targets", "layer", "weights", "biases", "inputs", "outputs"):
        assert np.array_equal(getattr(made, name), getattr(read, name)), name
    assert categories(made, read.batch) == golden["categories"]


def test_generator_equals_the_plain_topology(reference: Path) -> None:
    table = np.loadtxt(reference / "radixnet" / "edges_64_444.tsv", dtype=np.int64)
    network = radix_net([[4, 4, 4]])
    assert network.layer is not None
    made = np.stack(
        (network.layer + 1, network.sources - 64 * network.layer + 1, network.targets - 64 * (network.layer + 1) + 1)
    )
    assert sorted(made.T.tolist()) == sorted(table.tolist())
