"""Trained layers as connections: a convolution becomes one connection per non-zero weight and output position.

A tensor is an array of neuron numbers in the tensor's own shape, so that reshaping, transposing and concatenating
tensors only rearranges numbers (-1: a zero that no neuron holds, as padding). Connections of one convolution weight
share it in storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.network import MAX_NEURONS, Network
from traces.readers.parts.layers import MOST_LOOKED_AT, claim_network, zero_pattern

Ids = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Window:
    """How a window moves over an image: strides and dilations (y, x), padding (top, left, bottom, right)."""

    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)

    def output(self, image: tuple[int, int], window: tuple[int, int], where: str) -> tuple[int, int]:
        """Return the size of the output image. Raises InputError where the window does not fit."""
        if (
            min(*self.strides, *self.dilations) < 1
            or min(self.padding) < 0
            or max(*self.strides, *self.padding) > 2**20
        ):
            raise InputError(f"{where}: strides {self.strides}, dilations {self.dilations}, padding {self.padding}")
        reach = [(side - 1) * step + 1 for side, step in zip(window, self.dilations, strict=True)]
        sides = [
            (side + self.padding[a] + self.padding[a + 2] - reach[a]) // self.strides[a] + 1
            for a, side in enumerate(image)
        ]
        if min(sides) < 1:
            raise InputError(f"{where}: a window of {reach} does not fit the image of {list(image)} with its padding")
        return sides[0], sides[1]


@dataclass(eq=False)
class Unrolled:
    """A network in the making: neurons are numbered as they come, connections are kept layer by layer.

    where: the file, for messages. n_neurons, n_weights: so far. notes: sentences about what was read otherwise.
    """

    where: str
    n_neurons: int = 0
    n_weights: int = 0
    n_connections: int = 0
    layers: list[tuple[Ids, Ids, npt.NDArray[np.float32], Ids]] = field(default_factory=list)
    positions: list[Ids] = field(default_factory=list)
    biases: list[npt.NDArray[np.float32]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_layers: int = 0

    # -- neurons -------------------------------------------------------------------------------------------------------

    def image(self, channels: int, height: int, width: int) -> Ids:
        """Return new neurons (C, H, W), a layer of their own."""
        n = channels * height * width
        if min(channels, height, width) < 1 or self.n_neurons + n > MAX_NEURONS:
            raise InputError(
                f"{self.where}: {channels} x {height} x {width} more neurons: at most {MAX_NEURONS} can be numbered"
            )
        claim_network(self.n_connections, self.n_neurons + n, self.where)
        y, x = np.divmod(np.arange(n) % (height * width), width)
        self.positions.append(np.stack((np.full(n, self.n_layers), y, x), axis=1))
        return self._new(n).reshape(channels, height, width)

    def vector(self, n: int) -> Ids:
        """Return n new neurons without a place in an image, a layer of their own."""
        if n < 1 or self.n_neurons + n > MAX_NEURONS:
            raise InputError(f"{self.where}: {n} more neurons: at most {MAX_NEURONS} can be numbered")
        claim_network(self.n_connections, self.n_neurons + n, self.where)
        self.positions.append(np.stack((np.full(n, self.n_layers), np.full(n, -1), np.full(n, -1)), axis=1))
        return self._new(n)

    def _new(self, n: int) -> Ids:
        ids = self.n_neurons + np.arange(n)
        self.n_neurons += n
        self.n_layers += 1
        self.biases.append(np.zeros(n, np.float32))
        return ids

    # -- connections ---------------------------------------------------------------------------------------------------

    def convolution(
        self, image: Ids, kernel: npt.NDArray[np.float32], window: Window, where: str, *, groups: int = 1,
        bias: npt.NDArray[np.float32] | None = None, out: Ids | None = None,
    ) -> Ids:  # fmt: skip
        """Connect a convolution and return its neurons (O, H', W').

        image: (C, H, W). kernel: float32[O, C / groups, R, S]; zeros are no connections. out: neurons that take the
        results as well (sums of branches), else new ones. bias: float32[O] or None.
        """
        outputs, inner, rows, columns = kernel.shape
        channels, height, width = image.shape
        if groups < 1 or channels != inner * groups or outputs % groups:
            raise InputError(
                f"{where}: weights of shape {list(kernel.shape)} in {groups} groups do not fit {channels} channels"
            )
        size = window.output((height, width), (rows, columns), where)
        self._tell_pattern(kernel, where)
        out = self._results(out, (outputs, *size), where)
        o, i, r, s = np.nonzero(kernel)
        weights = kernel[o, i, r, s]
        first_channel = o // (outputs // groups) * inner
        claim_network(self.n_connections + len(o) * size[0] * size[1], self.n_neurons, where)
        top, left = window.padding[:2]
        parts = []
        for tap_y, tap_x in np.unique(np.stack((r, s)), axis=1).T.tolist():
            taps = np.flatnonzero((r == tap_y) & (s == tap_x))
            ys, from_y = _inside(size[0], window.strides[0], tap_y * window.dilations[0] - top, height)
            xs, from_x = _inside(size[1], window.strides[1], tap_x * window.dilations[1] - left, width)
            source = image[(first_channel + i)[taps][:, None, None], from_y[:, None], from_x]
            target = out[o[taps][:, None, None], ys[:, None], xs]
            parts.append((source.ravel(), target.ravel(), np.repeat(taps, len(ys) * len(xs))))
        source, target, tap = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else _nothing()
        self._connect(source, target, weights[tap] if len(tap) else np.zeros(0, np.float32), self.n_weights + tap)
        self.n_weights += len(o)
        self._add_bias(out, bias, where)
        return out

    def dense(
        self, given: Ids, matrix: npt.NDArray[np.float32], where: str, *, bias: npt.NDArray[np.float32] | None = None,
        out: Ids | None = None,
    ) -> Ids:  # fmt: skip
        """Connect a matrix float32[outputs, inputs] to the neurons `given`, in their order; return the outputs."""
        given = given.ravel()
        if matrix.ndim != 2 or matrix.shape[1] != len(given):
            raise InputError(f"{where}: weights of shape {list(matrix.shape)} do not fit {len(given)} inputs")
        self._tell_pattern(matrix, where)
        out = self._results(out, (matrix.shape[0],), where)
        row, column = np.nonzero(matrix)
        self._connect(given[column], out[row], matrix[row, column], self.n_weights + np.arange(len(row)))
        self.n_weights += len(row)
        self._add_bias(out, bias, where)
        return out

    def pool(self, image: Ids, sides: tuple[int, int], window: Window, where: str, *, count_padding: bool) -> Ids:
        """Connect the mean over windows (C, H', W'): every output to all that its window holds.

        One stored weight per number of elements that a window holds. count_padding: padding counts as elements.
        """
        channels, height, width = image.shape
        size = window.output((height, width), sides, where)
        out = self.image(channels, *size)
        top, left = window.padding[:2]
        claim_network(self.n_connections + out.size * sides[0] * sides[1], self.n_neurons, where)
        sources, targets = [], []
        for tap_y in range(sides[0]):
            for tap_x in range(sides[1]):
                ys, from_y = _inside(size[0], window.strides[0], tap_y * window.dilations[0] - top, height)
                xs, from_x = _inside(size[1], window.strides[1], tap_x * window.dilations[1] - left, width)
                sources.append(image[:, from_y[:, None], from_x].ravel())
                targets.append(out[:, ys[:, None], xs].ravel())
        source, target = np.concatenate(sources), np.concatenate(targets)
        held = np.bincount(target - out.flat[0], minlength=out.size)
        each = np.full(out.size, sides[0] * sides[1]) if count_padding else np.maximum(held, 1)
        counts, kind = np.unique(each, return_inverse=True)
        which = kind[target - out.flat[0]]
        self._connect(source, target, (1 / counts).astype(np.float32)[which], self.n_weights + which)
        self.n_weights += len(counts)
        return out

    def identity(self, given: Ids, out: Ids, where: str) -> Ids:
        """Add `given` to the neurons `out` of the same number: one stored weight of 1."""
        if given.size != out.size:
            raise InputError(f"{where}: {given.size} and {out.size} values cannot be added")
        source, target = given.ravel(), out.ravel()
        self._connect(source, target, np.ones(len(source), np.float32), np.full(len(source), self.n_weights))
        self.n_weights += 1
        return out

    def _results(self, out: Ids | None, shape: tuple[int, ...], where: str) -> Ids:
        if out is None:
            return self.image(*shape) if len(shape) == 3 else self.vector(shape[0])
        if out.size != math.prod(shape):
            raise InputError(f"{where}: {math.prod(shape)} results for {out.size} neurons")
        return out.reshape(shape)

    def _connect(self, source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids) -> None:
        kept = source != NOBODY
        self.layers.append((source[kept], target[kept], weight[kept], weight_id[kept]))
        self.n_connections += int(kept.sum())

    def _add_bias(self, out: Ids, bias: npt.NDArray[np.float32] | None, where: str) -> None:
        if bias is None:
            return
        if bias.shape != (out.shape[0],):
            raise InputError(f"{where}: a bias of shape {list(bias.shape)} for {out.shape[0]} outputs")
        flat = np.concatenate(self.biases)
        flat[out.ravel()] += np.repeat(bias, out.size // len(bias))
        self.biases = [flat]

    def _tell_pattern(self, weights: npt.NDArray[np.float32], where: str) -> None:
        pattern = zero_pattern(weights) if weights.size <= MOST_LOOKED_AT else ""
        if pattern:
            self.notes.append(f"{where} is {pattern}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def network(self, inputs: Ids, outputs: Ids, *, activation: str, name: str) -> Network:
        """Return the network: connections by layer of their target, then target, then source (two-optimal)."""
        source, target, weight, weight_id = (np.concatenate(column) for column in zip(*self.layers, strict=True))
        positions = np.concatenate(self.positions)
        if not len(source):
            raise InputError(f"{self.where}: all weights are zero: no connection is left")
        order = np.lexsort((source, target))
        source, target, weight, weight_id = source[order], target[order], weight[order], weight_id[order]
        source, target, weight, weight_id = _added(source, target, weight, weight_id)
        ids = (np.cumsum(np.bincount(weight_id) > 0) - 1)[weight_id]  # numbered from 0, without gaps
        outputs = outputs.ravel()
        used = np.zeros(self.n_neurons, bool)
        for neurons in (inputs.ravel(), outputs, source, target):
            used[neurons] = True
        keep = np.flatnonzero(used)
        number = np.where(used, np.cumsum(used) - 1, -1)
        biases = np.concatenate(self.biases)[keep]
        shared = len(ids) != ids.max() + 1
        try:
            return Network(
                number[source], number[target], n_neurons=len(keep), inputs=number[inputs.ravel()],
                outputs=number[outputs], weights=weight, biases=biases if biases.any() else None,
                layer=positions[target, 0] - 1, activation=activation, name=name,
                weight_ids=ids if shared else None, positions=positions[keep], notes=tuple(self.notes),
            )  # fmt: skip
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None


def _added(
    source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids
) -> tuple[Ids, Ids, npt.NDArray[np.float32], Ids]:
    """Return sorted connections with those of one pair of neurons added, as where branches of one tensor are summed.

    Sums of the same two stored weights are one stored weight.
    """
    while True:
        again = np.r_[False, (np.diff(source) == 0) & (np.diff(target) == 0)]
        second = np.flatnonzero(again & ~np.r_[False, again[:-1]])
        if not second.size:
            return source, target, weight, weight_id
        first = second - 1
        pairs = np.stack((weight_id[first], weight_id[second]))
        sums = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        weight[first] += weight[second]
        weight_id[first] = int(weight_id.max()) + 1 + sums
        kept = np.ones(len(source), bool)
        kept[second] = False
        source, target, weight, weight_id = source[kept], target[kept], weight[kept], weight_id[kept]


def _inside(n: int, stride: int, offset: int, side: int) -> tuple[Ids, Ids]:
    """Return the outputs of 0..n-1 whose tap lies inside the image, and where it lies."""
    outputs = np.arange(n)
    at = outputs * stride + offset
    inside = (at >= 0) & (at < side)
    return outputs[inside], at[inside]


def _nothing() -> tuple[Ids, Ids, Ids]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
