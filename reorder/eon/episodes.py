"""Orders made step by step by EON's policy: many at once, drawn from it, or ones that always take the likeliest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from cython_ext.eon.frontier import Frontiers
from reorder.eon.policy import NOTHING, Graph, Parameters, Worlds, tables, values_of
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]


def frontiers(network: Network, count: int, capacity: int) -> Frontiers:
    """Return `count` orders of a network, begun; `capacity` neurons in a cache."""
    by_source = np.argsort(network.sources, kind="stable")
    start = np.concatenate(([0], np.cumsum(network.out_degree)))
    sources, targets, in_degree = (
        np.ascontiguousarray(each, np.int64) for each in (network.sources, network.targets, network.in_degree)
    )
    return Frontiers(sources, targets, in_degree, start.astype(np.int64), by_source.astype(np.int64), count, capacity)


def observed(world: Frontiers) -> Worlds:
    """Return the observations of the policy, as wide as the widest frontier."""
    return Worlds(world.frontier[:, : int(world.size.max())].copy(), world.size.copy(), world.cache.copy())


@dataclass(frozen=True, eq=False)
class Episodes:
    """One finished order in each of B worlds. seen: the observation before each of the W steps.

    edges, misses: int64[W, B]. positions: int64[W, B], of the chosen ones in the frontiers.
    log_probability, value: [W, B].
    """

    seen: list[Worlds]
    edges: Int64Array
    misses: Int64Array
    positions: Int64Array
    log_probability: npt.NDArray[np.float32]
    value: npt.NDArray[np.float32]


@torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
def play(
    parameters: Parameters,
    graph: Graph,
    world: Frontiers,
    generator: torch.Generator,
    *,
    greedy: int = 0,
    keep: bool = False,
) -> Episodes:
    """Make an order in every world.

    generator: draws from the policy. greedy: so many worlds, the first ones, always take the likeliest connection
    instead, the first of equals. keep: remember what was seen, for learning.
    """
    world.reset()
    steps, count, seen = len(graph.sources), len(world.size), []
    edges, misses = np.empty((steps, count), np.int64), np.empty((steps, count), np.int64)
    positions, log_probability = np.empty((steps, count), np.int64), np.empty((steps, count), np.float32)
    attention, each = tables(parameters, graph).kernel(), np.arange(count)
    summaries = np.empty((steps, count, len(parameters["sentinel"])), np.float32)
    drawn = torch.rand(steps, count, generator=generator).numpy()
    for step in range(steps):
        now = observed(world)
        logits, summaries[step] = attention.forward(*now, NOTHING)
        chosen = logits.argmax(axis=1)
        logits -= logits[each, chosen][:, None]
        sums = np.exp(logits).cumsum(axis=1)
        inside = np.minimum((sums <= (drawn[step] * sums[:, -1])[:, None]).sum(axis=1), now.size - 1)
        chosen[greedy:] = inside[greedy:]
        positions[step] = chosen
        log_probability[step] = logits[each, chosen] - np.log(sums[:, -1])
        edges[step], misses[step] = world.step(chosen)
        if keep:
            seen.append(now)
    value = values_of(parameters, torch.from_numpy(summaries)).numpy()
    return Episodes(seen, edges, misses, positions, log_probability, value)


def likeliest(parameters: Parameters, graph: Graph, network: Network, capacity: int) -> tuple[Int64Array, int]:
    """Return the order int64[W] that always takes the likeliest connection, and its misses."""
    made = play(parameters, graph, frontiers(network, 1, capacity), torch.Generator(), greedy=1)
    return made.edges[:, 0], int(made.misses.sum())
