"""EON's actor and critic (Kamatar 2023, Figure 2): self-attention over the frontier, cross-attention to the cache.

The policy is the softmax over the frontier of the largest attention to any neuron of the cache; the value comes from a
sentinel that attends to both. OUR CHOICES, on which the paper is silent: one head of `width` dimensions, a residual and
a normalisation after the self-attention, a learned key beside the cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from cython_ext.eon.attention import Attention
from reorder.eon.contents import shapes

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
        self.features = torch.from_numpy(np.ascontiguousarray(features))
        self.sources, self.targets = torch.from_numpy(sources.copy()), torch.from_numpy(targets.copy())


class Worlds(NamedTuple):
    """Observations of B orders.

    frontier: int32[B, F] connections, of which the first size: int64[B] count; cache: int32[B, C] neurons, -1 from
    where it is empty on.
    """

    frontier: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    cache: npt.NDArray[np.int32]


class Tables(NamedTuple):
    """Values that do not depend on the state, computed once for each connection and neuron.

    edge, query, key, value: float32[W, width] of connections. node: float32[N, width] of neurons; offer, offer_bias:
    [N + 1, width], [N + 1], the last of an empty cache, as the frontier's queries meet them. sentinel: [width], what
    the sentinel asks (its bias moves all of its scores alike). weight, bias: [width], of the normalisation.
    """

    edge: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    node: torch.Tensor
    offer: torch.Tensor
    offer_bias: torch.Tensor
    sentinel: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor

    def kernel(self) -> Attention:
        return Attention(*(each.detach().contiguous().numpy() for each in self))


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
        parameters["norm.weight"],
        parameters["norm.bias"],
    )


def forward(parameters: Parameters, known: Tables, worlds: Worlds) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32[B, F] logits of the frontier's connections and float32[B] values, for autograd too."""
    logits, summary = _Look.apply(worlds, *known)
    return logits, values_of(parameters, summary)


def values_of(parameters: Parameters, summary: torch.Tensor) -> torch.Tensor:
    """Return float32[...] values of what the sentinel saw, float32[..., width]."""
    hidden = torch.tanh(_linear(parameters, "critic", _linear(parameters, "seen_value", summary)))
    return _linear(parameters, "critic_out", hidden)[..., 0]


class _Look(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The compiled attention as a step of autograd: it looks again when it learns instead of keeping F x F weights."""

    @staticmethod
    def forward(ctx: Any, worlds: Worlds, *known: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.attention, ctx.worlds = Tables(*known).kernel(), worlds
        logits, summary = ctx.attention.forward(*worlds, NOTHING)
        return torch.from_numpy(logits), torch.from_numpy(summary)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        made = ctx.attention.learn(*ctx.worlds, *(each.contiguous().numpy() for each in gradients))
        return None, *(torch.from_numpy(each) for each in made)


def _linear(parameters: Parameters, name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])
