import numpy as np
import pytest

import edgewatt as ew
from traces.generators.networks import random_layered


def test_neurons_with_few_inputs_come_first() -> None:
    network = random_layered(n_layers=1, width=8, density=0.5)
    fan_in = np.bincount(network.targets, minlength=network.n_neurons)
    few = ew.order(network, "by-fan-in", memory=5)
    assert (np.diff(fan_in[network.targets[few.edges]]) >= 0).all()
    many = ew.order(network, "by-fan-in", memory=5, first="many")
    assert (np.diff(fan_in[network.targets[many.edges]]) <= 0).all()
    with pytest.raises(ew.InputError, match="first must be 'few' or 'many'"):
        ew.order(network, "by-fan-in", memory=5, first="some")
