"""Orders made step by step by EON's policy: many at once, drawn from it, or ones that always take the likeliest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from cython_ext.edges.frontier import Frontiers
from reorder.learning.eon.policy import Graph, Parameters, forward, tables
from traces.work.network import Network

Int64Array = npt.NDArray[np.int64]


def frontiers(network: Network, count: int, capacity: int) -> Frontiers:
    """Return `count` orders of a network, begun; `capacity` neurons in a cache."""
    by_source = np.argsort(network.sources, kind="stable")
    start = np.concatenate(([0], np.cumsum(network.out_degree)))
    ends = (np.ascontiguousarray(each, np.int64) for each in (network.sources, network.targets, network.in_degree))
    return Frontiers(*ends, start.astype(np.int64), by_source.astype(np.int64), count, capacity)


def observed(world: Frontiers) -> tuple[Int64Array, Int64Array]:
    """Return int64[B, F] frontiers, as wide as the widest, and int64[B, C] caches; -1 where there is nothing."""
    widest = int(world.size.max())
    frontier = world.frontier[:, :widest].astype(np.int64)
    frontier[np.arange(widest) >= world.size[:, None]] = -1
    return frontier, world.cache.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Episodes:
    """One finished order in each of B worlds. seen: the observation before each of the W steps.

    edges, misses: int64[W, B]. places: int64[W, B], chosen places of the frontiers. log_probability, value: [W, B].
    """

    seen: list[tuple[torch.Tensor, torch.Tensor]]
    edges: Int64Array
    misses: Int64Array
    places: torch.Tensor
    log_probability: torch.Tensor
    value: torch.Tensor


@torch.no_grad()
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
    steps, seen = graph.n_connections, []
    count = len(world.size)
    edges, misses = np.empty((steps, count), np.int64), np.empty((steps, count), np.int64)
    places = torch.empty(steps, count, dtype=torch.long)
    log_probability, value = torch.empty(steps, count), torch.empty(steps, count)
    known = tables(parameters, graph)
    for step in range(steps):
        frontier, cache = (torch.from_numpy(each) for each in observed(world))
        logits, value[step] = forward(parameters, graph, known, frontier, cache)
        logs = logits.log_softmax(-1)
        chosen = places[step]
        chosen[:greedy] = logits[:greedy].argmax(-1)
        if greedy < count:
            chosen[greedy:] = torch.multinomial(logs[greedy:].exp(), 1, generator=generator)[:, 0]
        log_probability[step] = logs.gather(1, chosen[:, None])[:, 0]
        edges[step], misses[step] = world.step(chosen.numpy())
        if keep:
            seen.append((frontier, cache))
    return Episodes(seen, edges, misses, places, log_probability, value)


def likeliest(parameters: Parameters, graph: Graph, network: Network, capacity: int) -> tuple[Int64Array, int]:
    """Return the order int64[W] that always takes the likeliest connection, and its misses."""
    made = play(parameters, graph, frontiers(network, 1, capacity), torch.Generator(), greedy=1)
    return made.edges[:, 0], int(made.misses.sum())
