"""RadiX-Net, the Graph Challenge's inference and its files against numbers of an independent program."""

import json
from pathlib import Path

import numpy as np
from oracles.challenge import categories, read_categories

from traces.generators.radixnet import radix_net
from traces.networks.forward import forward
from traces.readers.graph_challenge import read_images

GOLDEN = Path(__file__).parents[1] / "golden" / "radix64x2_kron_44_4"


def test_permuted_kronecker_blocks_give_the_stored_categories() -> None:
    golden = json.loads((GOLDEN / "golden.json").read_text())
    network = radix_net(golden["radix_lists"], golden["kronecker"], permutations=golden["block_permutations"])
    images = read_images(GOLDEN / "sparse-images-64.tsv", golden["neurons"])
    assert network.n_connections == golden["edges"]
    assert categories(network, images) == read_categories(GOLDEN)
    sums = forward(network, images)[:, network.outputs].sum(axis=1, dtype=np.float64)
    np.testing.assert_allclose(sums, golden["row_sums"], rtol=0, atol=0.002)
