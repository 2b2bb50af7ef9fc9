"""Training inside the windows of a memory: masks for a stack of PyTorch layers (extra `torch`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewatt.prune.mask import fitting, order_in, target_of
from traces.base.errors import InputError, MissingExtraError
from traces.networks.checks import checked_memory
from traces.networks.network import Network
from traces.pruning.selection import Candidates, choose
from traces.pruning.windows import mixed, pairs_of
from traces.readers.parts.layers import dense_layer, from_layers

if TYPE_CHECKING:
    import torch


class MemoryPruning:
    """Prunes an `nn.Linear` or `nn.Conv2d` stack gradually inside the windows of a memory, while you train it.

    Call `step(share)` after each optimiser's step, `share` of the training being done: from `begin` to `end` the
    connections fall along the cubic schedule of Zhu and Gupta 2017 to those asked for, the largest magnitudes of all
    layers stay, and what went stays 0. `network()` then gives the pruned network, `order()` its order of work.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        memory: int,
        density: float | None = None,
        connections: int | None = None,
        neurons: int | None = None,
        values: Sequence[int] | None = None,
        extra: int = 0,
        begin: float = 0.15,
        end: float = 0.7,
        every: int = 20,
        seed: int = 0,
    ) -> None:
        """Choose windows, and set the weights outside them to zero.

        module: its `nn.Linear` and `nn.Conv2d` layers, in the order in which it names them, lead from one to the next.
        memory, density, connections, neurons, values, extra: as `edgewatt.memory_mask`. A
        convolution's connection is a pair of channels, and `values` are the pixels of each layer's maps. every: steps
        between two prunings. Raises MissingExtraError without PyTorch, InputError for layers that do not follow each
        other, and for a memory without room.
        """
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("torch", "torch") from error
        kinds = (torch.nn.Linear, torch.nn.Conv2d)
        self.layers: list[Any] = [layer for layer in module.modules() if isinstance(layer, kinds)]
        if not self.layers or any(getattr(layer, "groups", 1) != 1 for layer in self.layers):
            raise InputError("MemoryPruning takes nn.Linear and nn.Conv2d layers without groups, one or more")
        shapes = [tuple(layer.weight.shape[:2]) for layer in self.layers]
        for k, ((n_out, _), (_, n_in)) in enumerate(pairwise(shapes)):
            if n_out != n_in:
                raise InputError(f"layer {k} gives {n_out} outputs, but layer {k + 1} takes {n_in}: no chain of layers")
        self.widths = (shapes[0][1], *(n_out for n_out, _ in shapes))
        self.memory = checked_memory(memory)
        self.connections = target_of(connections, density, sum(a * b for a, b in pairs_of(self.widths)))
        found, near = fitting(self.widths, self.memory, self.connections, 1, tuple(values or ()), extra)
        if near:
            raise InputError(near)
        self.windows = mixed(found[0], seed)
        self.neurons, self.begin, self.end, self.every = neurons, begin, end, every
        self._pairs = [self.windows.pairs(k) for k in range(len(shapes))]
        self._steps = 0
        self._set(self.windows.allowed())
        with torch.no_grad():  # a neuron with fewer inputs starts with larger weights
            for layer, mask in zip(self.layers, self._masks, strict=True):
                layer.weight *= (mask.shape[1] * mask.any(dim=1).sum() / mask.sum()).sqrt()
        self.apply()

    def step(self, share: float) -> None:
        """Prune if it is time, and set pruned weights to zero. share: of the training that is done, 0 to 1."""
        self._steps += 1
        t = min(1.0, max(0.0, (share - self.begin) / (self.end - self.begin)))
        if self.begin <= share and (t < 1 or not self.done) and (self._steps % self.every == 0 or t == 1):
            allowed, n = self.windows.capacity, sum(self.widths)
            keep = self.connections + round((allowed - self.connections) * (1 - t) ** 3)
            dead = 0 if self.neurons is None else (n - self.neurons) * (allowed - keep)
            most = n - dead // max(1, allowed - self.connections)
            self._set(choose(Candidates(self.widths, self._pairs, self._magnitudes()), keep, neurons=most))
        self.apply()

    @property
    def done(self) -> bool:
        """Whether as few connections are left as asked for."""
        return sum(int(mask.sum()) for mask in self._masks) == self.connections

    def apply(self) -> None:
        """Set the weights of connections that are gone to zero."""
        import torch

        with torch.no_grad():
            for layer, mask in zip(self.layers, self._masks, strict=True):
                layer.weight *= mask.reshape(*mask.shape, *[1] * (layer.weight.dim() - 2))

    def masks(self) -> list[np.ndarray]:
        """Return bool[outputs, inputs] of each layer: the connections that are left."""
        return [mask.cpu().numpy().astype(bool) for mask in self._masks]

    def network(self) -> Network:
        """Return the network of an `nn.Linear` stack with ReLU between its layers. Raises InputError for others."""
        if any(layer.weight.dim() != 2 for layer in self.layers):
            raise InputError("a network of convolutions depends on its images: export it to ONNX and load that")
        dense = []
        for k, (layer, mask) in enumerate(zip(self.layers, self.masks(), strict=True)):
            weight = layer.weight.detach().cpu().numpy()
            bias = None if layer.bias is None else layer.bias.detach().cpu().numpy()
            dense.append(dense_layer(np.where(mask & (weight == 0), 1e-30, weight), f"layer {k}", bias=bias))
        return from_layers(dense, name="-".join(map(str, self.widths)))

    def order(self, network: Network) -> np.ndarray:
        """Return the order of work that belongs to the windows, for `network()` or an unrolled stack: int64[W]."""
        return order_in(self.windows, network)

    def _magnitudes(self) -> list[np.ndarray]:
        squares = [(layer.weight.detach() ** 2).reshape(*layer.weight.shape[:2], -1) for layer in self.layers]
        return [np.sqrt(each.sum(dim=2).cpu().numpy()) for each in squares]

    def _set(self, masks: Sequence[np.ndarray]) -> None:
        import torch

        self._masks = [
            torch.as_tensor(mask, dtype=layer.weight.dtype, device=layer.weight.device)
            for mask, layer in zip(masks, self.layers, strict=True)
        ]
