"""by-fan-in: depth by depth, neurons by the number of their inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from traces.base.errors import InputError
from traces.networks.network import Network


@dataclass(frozen=True)
class FanInParameters:
    """first: the neurons of a depth that come first, 'few' or 'many' inputs."""

    first: str = "few"

    def __post_init__(self) -> None:
        if self.first not in ("few", "many"):
            raise InputError(f"first must be 'few' or 'many', not {self.first!r}")


@ORDERINGS.register(
    "by-fan-in", summary="depth by depth, neurons by their number of inputs", parameters=FanInParameters
)
def by_fan_in(network: Network, task: Task, parameters: FanInParameters) -> Ordering:
    """Sort the connections by depth, fan-in, target and source. O(W log W)."""
    fan_in = np.bincount(network.targets, minlength=network.n_neurons)
    key = fan_in if parameters.first == "few" else -fan_in
    target = network.targets
    return Ordering(np.lexsort((network.sources, target, key[target], network.depth[target])), "by-fan-in")
