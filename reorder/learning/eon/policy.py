"""EON's actor and critic (Kamatar 2023, Figure 2): self-attention over the frontier, cross-attention to the cache.

A connection is the features of its two neurons side by side, a neuron of the cache its own. The frontier attends to
itself; the policy is the softmax over the frontier of the largest attention to any neuron of the cache; the value
comes from a sentinel that attends to the frontier and the cache. Equivariant to the order of the frontier, invariant to
that of the cache. OUR CHOICES, on which the paper is silent: one head of `width` dimensions, a residual and a
normalisation after the self-attention, a learned key beside the cache (the maximum over an empty cache is undefined).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from reorder.learning.eon.contents import shapes

Parameters = Mapping[str, Any]
NOTHING = -1e9  # the logit of what is not there


def initial(features: int, width: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Return fresh parameters: uniform in +-1/sqrt(inputs) as PyTorch's linear layers, float32."""
    made = {}
    for name, shape in shapes(features, width).items():
        bound = 1 / math.sqrt(shape[-1] if len(shape) == 2 else width)
        made[name] = (torch.rand(shape, generator=generator) * 2 - 1) * bound
    made["norm.weight"], made["norm.bias"] = torch.ones(width), torch.zeros(width)
    made["empty"] = torch.zeros(width)
    return made


class Graph:
    """A network as EON sees it: features float32[N, k] of its neurons and the ends of its connections."""

    def __init__(self, features: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> None:
        n = len(features)  # a neuron and a connection that are not there come last
        self.features = torch.from_numpy(np.vstack([features, np.zeros((1, features.shape[1]), np.float32)]))
        self.sources = torch.from_numpy(np.append(sources, n))
        self.targets = torch.from_numpy(np.append(targets, n))
        self.n_neurons, self.n_connections = n, len(sources)


@dataclass(frozen=True, eq=False)
class Tables:
    """What does not depend on the state, once for each connection and neuron and looked up from there.

    edge, query, key, value: float32[W + 1, width] of connections. node: float32[N + 1, width] of neurons; offer,
    offer_bias: [N + 2, width], [N + 2], the last of an empty cache, as the frontier's queries meet them. sentinel,
    sentinel_bias: [width] and a scalar, what the sentinel asks.
    """

    edge: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    node: torch.Tensor
    offer: torch.Tensor
    offer_bias: torch.Tensor
    sentinel: torch.Tensor
    sentinel_bias: torch.Tensor


def tables(parameters: Parameters, graph: Graph) -> Tables:
    """Return the tables of these parameters.

    Maps that follow each other are one: attention weights sum to 1, so ``mixed(A value(x)) = A mixed(value(x))``, and
    ``asks(x) . k = x . (asks^T k)``.
    """
    edge = _linear(parameters, "edge", torch.cat([graph.features[of] for of in (graph.sources, graph.targets)], -1))
    node = _linear(parameters, "node", graph.features)
    scale = 1 / math.sqrt(edge.shape[-1])
    keys = torch.cat([_linear(parameters, "offers", node), parameters["empty"][None]]) * scale
    return Tables(
        edge,
        _linear(parameters, "query", edge) * scale,
        _linear(parameters, "key", edge),
        _linear(parameters, "mixed", _linear(parameters, "value", edge)),
        node,
        keys @ parameters["asks.weight"],
        keys @ parameters["asks.bias"],
        parameters["sentinel"] @ parameters["seen_key.weight"] * scale,
        parameters["sentinel"] @ parameters["seen_key.bias"] * scale,
    )


def forward(
    parameters: Parameters, graph: Graph, known: Tables, frontier: torch.Tensor, cache: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32[B, F] logits of the frontier's connections and float32[B] values.

    frontier: int64[B, F] connections, cache: int64[B, C] neurons, both -1 where there is none.
    """
    no_edge, no_node = frontier < 0, cache < 0
    frontier = torch.where(no_edge, graph.n_connections, frontier)
    cache = torch.where(no_node, graph.n_neurons, cache)
    query, key, value, edge = (
        functional.embedding(frontier, table) for table in (known.query, known.key, known.value, known.edge)
    )
    scores = torch.baddbmm(no_edge[:, None, :] * NOTHING, query, key.transpose(1, 2))
    mixed = scores.softmax(-1) @ value
    edge = functional.layer_norm(edge + mixed, mixed.shape[-1:], parameters["norm.weight"], parameters["norm.bias"])

    seen = torch.cat([cache, cache.new_full((len(cache), 1), graph.n_neurons + 1)], 1)  # and the empty cache's key
    absent = torch.cat([no_node, no_node.new_zeros(len(cache), 1)], 1)
    offered = functional.embedding(seen, known.offer)
    bias = known.offer_bias[seen] + absent * NOTHING
    logits = torch.baddbmm(bias[:, None, :], edge, offered.transpose(1, 2)).max(-1).values.masked_fill(no_edge, NOTHING)

    both, nothing = torch.cat([edge, functional.embedding(cache, known.node)], 1), torch.cat([no_edge, no_node], 1)
    looks = (both @ known.sentinel + known.sentinel_bias).masked_fill(nothing, NOTHING).softmax(-1)
    summary = _linear(parameters, "seen_value", (looks[:, None, :] @ both)[:, 0])
    return logits, _linear(parameters, "critic_out", torch.tanh(_linear(parameters, "critic", summary)))[:, 0]


def _linear(parameters: Parameters, name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
