"""safetensors files: two-dimensional tensors become layers, with the one-dimensional bias of the same name.

A state dict says nothing of strides, padding and pooling; layers follow each other in the order of their names.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traces.base.checks import whole_number
from traces.base.errors import InputError, did_you_mean
from traces.base.memory import claim
from traces.networks.network import Network
from traces.readers.parts.layers import Matrix, dense_layers, from_layers, natural_key
from traces.readers.parts.model_network import Ids, Unrolled, Window
from traces.readers.parts.weights import TYPES, StoredTensor, dtype_of, read_header
from traces.readers.reader import NETWORK_READERS, MatrixReader, ReadOptions

_GEOMETRY: Mapping[str, int | None] = {"stride": 1, "dilation": 1, "pool": 1, "padding": None}
"""How a convolution of a state dict is laid. padding: None: (side - 1) // 2, as large as before; pool: side of the
windows whose mean follows, 1: none."""


@dataclass(frozen=True, eq=False)
class NamedLayer:
    name: str
    weights: np.ndarray
    bias: np.ndarray | None


def _is_meant(name: str, pattern: str) -> bool:
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def _geometry_of(name: str, windows: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    given: dict[str, Any] = dict(_GEOMETRY)
    for pattern, values in windows.items():
        if _is_meant(name, pattern):
            given |= values
    for key, value in given.items():
        if key not in _GEOMETRY:
            raise InputError(f"a convolution has no {key!r}{did_you_mean(key, _GEOMETRY)}")
        if value is not None or key != "padding":
            whole_number(value, f"{key} of a convolution", int(key != "padding"), 2**12)
    return given


def _chain(
    layers: Sequence[NamedLayer], image: tuple[int, ...], windows: Mapping[str, Mapping[str, int]], path: Path
) -> Network:
    """Return the network of the layers, one after the other, ReLU between them.

    image: (height, width) of the input, or (channels, height, width). Raises InputError naming the tensor at fault.
    """
    for pattern in windows:
        if not any(_is_meant(each.name, pattern) for each in layers):
            raise InputError(f"{path}: no tensor {pattern!r}{did_you_mean(pattern, [each.name for each in layers])}")
    made, first = Unrolled(str(path)), layers[0].weights
    if len(image) == 2:
        image = (first.shape[1] if first.ndim == 4 else 1, *image)
    if len(image) != 3 or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in image):
        raise InputError(f"an image has a height and a width (and channels before them), not {list(image)}")
    inputs = ids = made.image(*image)
    for given in layers:
        at = f"{path}: tensor {given.name!r}"
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
            bias = None if given.bias is None else given.bias.astype(np.float32)
            layer = NamedLayer(given.name, given.weights.astype(np.float32), bias)
        if not np.isfinite(layer.weights).all() or (bias is not None and not np.isfinite(bias).all()):
            raise InputError(f"{at} holds a value that is not finite")
        if layer.weights.ndim == 4:
            ids = _convolution(made, ids, layer, _geometry_of(layer.name, windows), at)
        else:
            ids = made.dense(_flat(made, ids, layer, at), layer.weights, at, bias=bias)
    return made.network(inputs, ids, activation="relu", name=path.stem)


def _convolution(made: Unrolled, ids: Ids, layer: NamedLayer, how: Mapping[str, Any], at: str) -> Ids:
    if ids.ndim != 3:
        raise InputError(f"{at} is a convolution behind a fully connected layer: choose tensors by `names`")
    _, inner, *sides = layer.weights.shape
    if not inner or ids.shape[0] % inner:
        raise InputError(f"{at} of shape {list(layer.weights.shape)} does not fit {ids.shape[0]} channels")
    stride, dilation, pool, padding = (how[key] for key in _GEOMETRY)
    y, x = ((side - 1) * dilation // 2 if padding is None else padding for side in sides)
    window = Window((stride, stride), (y, x, y, x), (dilation, dilation))
    ids = made.convolution(ids, layer.weights, window, at, groups=ids.shape[0] // inner, bias=layer.bias)
    return made.pool(ids, (pool, pool), Window((pool, pool)), at, count_padding=False) if pool > 1 else ids


def _flat(made: Unrolled, ids: Ids, layer: NamedLayer, at: str) -> Ids:
    n_inputs = layer.weights.shape[1]
    if ids.ndim != 3 or ids.size == n_inputs:
        return ids.ravel()
    channels, height, width = ids.shape
    side = math.isqrt(ids.size // n_inputs) if n_inputs and ids.size % n_inputs == 0 else 0
    if n_inputs == channels:
        made.notes.append(f"{layer.name}: the mean over the whole image before it is inferred from the sizes")
        return made.pool(ids, (height, width), Window(), at, count_padding=False).ravel()
    if side > 1 and side * side * n_inputs == ids.size and not (height % side or width % side):
        made.notes.append(f"{layer.name}: a mean over windows of {side} x {side} before it is inferred from the sizes")
        return made.pool(ids, (side, side), Window((side, side)), at, count_padding=False).ravel()
    raise InputError(f"{at} takes {n_inputs} inputs, but {channels} x {height} x {width} come: give strides or pools")


def _matrices(path: Path, layers: Sequence[NamedLayer]) -> list[Matrix]:
    flat = [each.weights.reshape(len(each.weights), math.prod(each.weights.shape[1:])) for each in layers]
    return dense_layers([(w, f"{path}: tensor {each.name!r}", each.bias) for w, each in zip(flat, layers, strict=True)])


def _layers(tensors: Mapping[str, StoredTensor], chosen: Sequence[str]) -> list[NamedLayer]:
    layers = []
    for name in chosen:
        bias = tensors.get(f"{name.removesuffix('.weight')}.bias")
        bias_values = None if bias is None or len(bias.shape) != 1 else _values(bias)
        layers.append(NamedLayer(name, _values(tensors[name]), bias_values))
    return layers


def _notes(tensors: Mapping[str, StoredTensor], layers: Sequence[NamedLayer], options: ReadOptions) -> list[str]:
    taken = {layer.name for layer in layers}
    taken |= {f"{layer.name.removesuffix('.weight')}.bias" for layer in layers if layer.bias is not None}
    left = sorted(tensors.keys() - taken, key=natural_key)
    by_name = ", in order of their names (names=[...], --names: another)"  # down_proj comes before up_proj
    how = by_name if options.names is None and len(layers) > 1 else ""
    notes = [f"read {len(layers)} of {len(tensors)} tensors as layers{how}: {_few([each.name for each in layers])}"]
    if left:
        shapes = [f"{name} {list(tensors[name].shape)}" for name in left]
        notes.append(f"left {len(left)} tensors: {_few(shapes)}")
    if options.image is None and any(len(tensors[name].shape) == 4 for name in left):
        notes.append("convolutions are read with the size of the input image: image=(height, width), --image HxW")
    if len(layers) > 1:
        notes.append("the file names no activation: ReLU between layers (--activation: another)")
    return notes


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _tensors(path: Path) -> dict[str, StoredTensor]:
    tensors = read_header(path)
    claim(2 * path.stat().st_size, str(path))
    return tensors


def _select(
    tensors: Mapping[str, StoredTensor], names: Sequence[str] | None, path: Path, ranks: tuple[int, ...]
) -> list[str]:
    known = sorted(tensors, key=natural_key)
    if names is None:
        chosen = [name for name in known if len(tensors[name].shape) in ranks]
        if not chosen:
            images = any(len(each.shape) == 4 for each in tensors.values())
            hint = " (its convolutions need the size of the input image: image=(height, width))" if images else ""
            raise InputError(
                f"{path}: holds no two-dimensional tensor to take as a layer{hint or did_you_mean('', known)}"
            )
        return chosen
    chosen = []
    for pattern in names:
        hits = [name for name in known if _is_meant(name, pattern)]
        if not hits:
            layers = [name for name in known if len(tensors[name].shape) in ranks]
            raise InputError(f"{path}: no tensor {pattern!r}{did_you_mean(pattern, layers or known)}")
        if pattern not in tensors:  # a pattern means the layers among what it matches, not their biases
            hits = [name for name in hits if len(tensors[name].shape) in ranks] or hits
        chosen += hits
    for name in chosen:
        shape = tensors[name].shape
        if len(shape) not in ranks:
            hint = ", a convolution four and an image" if 4 not in ranks else ", a convolution four"
            raise InputError(f"{path}: tensor {name!r} has shape {list(shape)}: a layer has two dimensions{hint}")
    return chosen


def _values(tensor: StoredTensor) -> np.ndarray:
    if tensor.kind not in TYPES:
        known = did_you_mean(tensor.kind, TYPES)
        raise InputError(f"{tensor.file}: tensor {tensor.name!r} is of type {tensor.kind}{known}")
    return tensor.words(0, math.prod(tensor.shape), dtype_of(tensor.kind)).reshape(tensor.shape)


class Safetensors(MatrixReader):
    suffixes = (".safetensors",)
    chooses_tensors = True
    unrolls = True

    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        """A convolution chosen by name is the matrix of its outputs and taps, float[O, I * R * S]."""
        tensors = _tensors(path)
        return _matrices(path, _layers(tensors, _select(tensors, names, path, (2,) if names is None else (2, 4))))

    def matrix_names(self, path: Path) -> list[str]:
        tensors = _tensors(path)
        return [name for name in sorted(tensors, key=natural_key) if len(tensors[name].shape) in (2, 4)]

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        path, image = files[0], options.image
        if len(files) > 1:
            if image is not None:
                raise InputError(f"{path}: an image is given for the layers of one file, not of {len(files)}")
            return super().network(files, options)
        tensors = _tensors(path)
        layers = _layers(tensors, _select(tensors, options.names, path, (2,) if image is None else (2, 4)))
        if image is None:
            network = from_layers(_matrices(path, layers), orientation=options.orientation, name=path.stem)
        else:
            network = _chain(layers, image, options.windows or {}, path)
        return network.with_(notes=(*_notes(tensors, layers, options), *network.notes))


NETWORK_READERS.register("safetensors", summary="safetensors: two-dimensional tensors are layers")(Safetensors())
