"""Recursive connected components of ranges of depths: the order of a recursive FFT, of stencils in trapezoids."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

import cython_ext.edges.topological as kernel
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import by_target, sorted_by
from reorder.edges.search.budget import Best, Budget, Scorer, at_least, check_counts, worth_more
from traces.base.errors import InputError
from traces.networks.network import Int64Array, Network

BLOCK_SHARES = {"min": 1.0, "lru": 0.6, "rr": 0.4}  # of the M - 2 values that partial sums of a block fill, by policy


@dataclass(frozen=True)
class ComponentsParameters:
    """split: share of a range's depths that come first. narrow: components with at most so many targets a depth are not
    cut but walked layer by layer. block: targets of one depth that sources stream past together; 0: target by target.
    None: tried out."""

    split: float | None = None
    narrow: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, narrow=0, block=0)
        at_least("split", self.split, 0)
        if self.split is not None and not 0 < self.split < 1:
            raise InputError(f"split must be between 0 and 1, not {self.split}")


def by_components(network: Network, split: float, narrow: int, block: int) -> Int64Array:
    """Return int64[W]: the connected components of a range of depths one after another, each cut into two ranges of
    depths, and so on; single depths target by target, or in blocks of targets. O(W log W).

    Of an FFT on 2^k points these are the two halves of the recursion (Hong and Kung 1981 prove its I/Os least, but for
    a factor).
    """
    base = by_target(network, network.depth)
    edges, group = kernel.components(network.ends, network.depth, base, split, narrow)
    if not block:
        return edges
    s, t = network.sources[edges], network.targets[edges]
    new = np.concatenate(([True], (t[1:] != t[:-1]) | (group[1:] != group[:-1])))[: len(t)]
    rank = np.cumsum(new)
    rank -= rank[group]  # among the targets of the group, which begins at connection `group`
    tile = rank // block
    return edges[sorted_by(group, tile, np.where(tile % 2 == 1, network.n_neurons - s, s), t)]


def choices(memory: int, policy: str) -> list[ComponentsParameters]:
    """Return what to try for M = memory. A policy that keeps what was touched last walks components that fit layer by
    layer: cut further, their values would be too long ago. Splits off the middle suit what is not a power of two."""
    stay = max(1, int(BLOCK_SHARES[policy] * (memory - 2)))
    narrow = 0 if policy == "min" else max(1, (memory - 1) // 2 - 1)
    tried = [(0.5, narrow, 0), (0.5, 0, stay), (0.67, narrow, 0), *([(0.4, narrow, 0)] if narrow else [])]
    return [ComponentsParameters(*one) for one in tried]


@ORDERINGS.register(
    "components",
    summary="connected components of ranges of depths, recursively: FFTs, stencils, blocks",
    parameters=ComponentsParameters,
    portfolio=0.58,
    effort=0.4,
)
def components(network: Network, task: Task, parameters: ComponentsParameters) -> Ordering:
    """Return the best of some splits and blocks under the objective, as far as time allows."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    given = {name: value for name, value in asdict(parameters).items() if value is not None}
    for choice in choices(task.memory, task.policy):
        settings = asdict(choice) | given
        if best.edges is not None and not (best.has_time and worth_more(best)):
            break
        best.work += 1
        best.offer(by_components(network, **settings), **settings)
    return best.ordering("components", best.parameters, best.budget.over)
