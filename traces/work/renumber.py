"""The same network with its neurons numbered otherwise: which of them lie beside each other in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.work.network import Network


def renumbered(network: Network, number: npt.ArrayLike) -> Network:
    """Return the network with neuron v called number[v]; it computes the same outputs from the same inputs.

    number: int[N], a permutation that keeps every neuron among the ids of its depth (its layer, in a layered network).
    Connections keep their places, so an order of the one is an order of the other; inputs and outputs are still listed
    in the same sequence. Raises InputError naming the first neuron at fault.
    """
    given = np.asarray(number)
    n = network.n_neurons
    if given.shape != (n,) or not np.issubdtype(given.dtype, np.integer):
        raise InputError(
            f"a numbering has one integer per neuron, {n} in all, not {given.dtype} of shape {given.shape}"
        )
    new = given.astype(np.int64)
    bad = np.flatnonzero((new < 0) | (new >= n))
    if bad.size:
        raise InputError(f"numbering: neuron {bad[0]} would become {new[bad[0]]}: ids are 0 to {n - 1}")
    old = np.full(n, -1, np.int64)
    old[new] = np.arange(n)
    if (old < 0).any():
        twice = int(np.flatnonzero(old[new] != np.arange(n))[0])
        raise InputError(f"numbering: neurons {twice} and {old[new[twice]]} would both become {new[twice]}")
    moved = np.flatnonzero(network.depth[new] != network.depth)
    if moved.size:
        v = int(moved[0])
        raise InputError(
            f"numbering: neuron {v} of depth {network.depth[v]} would take the id {new[v]} of depth "
            f"{network.depth[new[v]]}: neurons change places inside their layer only"
        )
    pick: Any = lambda values: None if values is None else values[old]  # noqa: E731
    return network.with_(
        sources=new[network.sources],
        targets=new[network.targets],
        inputs=new[network.inputs],
        outputs=new[network.outputs],
        biases=pick(network.biases),
        positions=pick(network.positions),
    )
