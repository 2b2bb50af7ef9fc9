"""Weights without a model (a state dict): a chain of convolutions and fully connected layers, in order of names.

Such a file says nothing of strides, padding and pooling, so that they are asked for; what is assumed is said.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traces.base.checks import whole_number
from traces.base.errors import InputError, did_you_mean
from traces.readers.parts.unroll import Ids, Unrolled, Window
from traces.work.network import Network


@dataclass(frozen=True)
class ConvolutionGeometry:
    """How a convolution of a state dict is laid: stride, padding (None: (side - 1) // 2, as large as before), dilation.

    pool: side of the windows whose mean follows it (1: none).
    """

    stride: int = 1
    padding: int | None = None
    dilation: int = 1
    pool: int = 1

    def __post_init__(self) -> None:
        for name in ("stride", "dilation", "pool", "padding"):
            value, least = getattr(self, name), 0 if name == "padding" else 1
            if value is None and name == "padding":
                continue
            whole_number(value, f"{name} of a convolution", least, 2**12)


@dataclass(frozen=True, eq=False)
class NamedLayer:
    """A named tensor real[O, I] or real[O, I, R, S] and its bias real[O] or None."""

    name: str
    weights: np.ndarray
    bias: np.ndarray | None

    def single(self) -> NamedLayer:
        """Return the layer in float32."""
        bias = None if self.bias is None else self.bias.astype(np.float32)
        return NamedLayer(self.name, self.weights.astype(np.float32), bias)


def geometry_of(name: str, windows: Mapping[str, Mapping[str, int]]) -> ConvolutionGeometry:
    """Return the geometry given for a tensor: all patterns that match, later ones winning."""
    given: dict[str, int] = {}
    for pattern, values in windows.items():
        if name == pattern or fnmatch.fnmatchcase(name, pattern):
            given |= values
    known = list(ConvolutionGeometry.__dataclass_fields__)
    for key in given:
        if key not in known:
            raise InputError(f"a convolution has no {key!r}{did_you_mean(key, known)}")
    return ConvolutionGeometry(**given)


def chain(
    layers: Sequence[NamedLayer],
    image: tuple[int, ...],
    windows: Mapping[str, Mapping[str, int]],
    where: str,
    name: str,
) -> Network:
    """Return the network of the layers, one after the other, ReLU between them.

    image: (height, width) of the input, or (channels, height, width). Raises InputError naming the tensor at fault.
    """
    for pattern in windows:
        if not any(each.name == pattern or fnmatch.fnmatchcase(each.name, pattern) for each in layers):
            raise InputError(f"{where}: no tensor {pattern!r}{did_you_mean(pattern, [each.name for each in layers])}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
        layers = [each.single() for each in layers]
    made, first = Unrolled(where), layers[0]
    if len(image) == 2:
        image = (first.weights.shape[1] if first.weights.ndim == 4 else 1, *image)
    if len(image) != 3 or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in image):
        raise InputError(f"an image has a height and a width (and channels before them), not {list(image)}")
    inputs = ids = made.image(*image)
    for layer in layers:
        at = f"{where}: tensor {layer.name!r}"
        if not np.isfinite(layer.weights).all() or (layer.bias is not None and not np.isfinite(layer.bias).all()):
            raise InputError(f"{at} holds a value that is not finite")
        if layer.weights.ndim == 4:
            ids = _convolution(made, ids, layer, geometry_of(layer.name, windows), at)
        else:
            ids = made.dense(_flat(made, ids, layer, at), layer.weights, at, bias=layer.bias)
    return made.network(inputs, ids, activation="relu", name=name)


def _convolution(made: Unrolled, ids: Ids, layer: NamedLayer, how: ConvolutionGeometry, at: str) -> Ids:
    if ids.ndim != 3:
        raise InputError(f"{at} is a convolution behind a fully connected layer: choose tensors by `names`")
    _, inner, rows, columns = layer.weights.shape
    if not inner or ids.shape[0] % inner:
        raise InputError(f"{at} of shape {list(layer.weights.shape)} does not fit {ids.shape[0]} channels")
    pads = [(side - 1) * how.dilation // 2 if how.padding is None else how.padding for side in (rows, columns)]
    window = Window((how.stride, how.stride), (pads[0], pads[1], pads[0], pads[1]), (how.dilation, how.dilation))
    ids = made.convolution(ids, layer.weights, window, at, groups=ids.shape[0] // inner, bias=layer.bias)
    if how.pool > 1:
        ids = made.pool(ids, (how.pool,) * 2, Window((how.pool,) * 2), at, count_padding=False)
    return ids


def _flat(made: Unrolled, ids: Ids, layer: NamedLayer, at: str) -> Ids:
    """Return the neurons a fully connected layer reads; pooling between is inferred where sizes leave one choice."""
    wanted = layer.weights.shape[1]
    if ids.ndim != 3 or ids.size == wanted:
        return ids.ravel()
    channels, height, width = ids.shape
    side = math.isqrt(ids.size // wanted) if wanted and ids.size % wanted == 0 else 0
    if wanted == channels:
        made.notes.append(f"{layer.name}: the mean over the whole image before it is inferred from the sizes")
        return made.pool(ids, (height, width), Window(), at, count_padding=False).ravel()
    if side > 1 and side * side * wanted == ids.size and not (height % side or width % side):
        made.notes.append(f"{layer.name}: a mean over windows of {side} x {side} before it is inferred from the sizes")
        return made.pool(ids, (side, side), Window((side, side)), at, count_padding=False).ravel()
    raise InputError(f"{at} takes {wanted} inputs, but {channels} x {height} x {width} come: give strides or pools")
