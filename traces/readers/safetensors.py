"""safetensors files: two-dimensional tensors become layers, with the one-dimensional bias of the same name."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traces.base.errors import InputError, brief, did_you_mean
from traces.base.memory import claim
from traces.readers.parts.layers import Matrix, dense_layer
from traces.readers.parts.names import natural_key
from traces.readers.reader import NETWORK_READERS, MatrixReader

# safetensors' type names -> numpy's (the small floats are ml_dtypes')
_TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


def read(path: str | Path, *, names: Sequence[str] | None = None) -> list[Matrix]:
    """Read the layers of a file, in natural order of their names (layer.2 before layer.10).

    names: tensor names or patterns (``encoder.*.weight``) in the order wanted; None takes every two-dimensional tensor.
    A tensor `x.bias` of one dimension belongs to `x.weight`. Raises InputError naming file and tensor.
    """
    tensors = _tensors(path)
    layers = []
    for name in _select(tensors, names, path):
        stem = name.removesuffix(".weight")
        bias = tensors.get(f"{stem}.bias")
        values = _values(tensors[name], name, path)
        bias_values = None if bias is None or len(bias["shape"]) != 1 else _values(bias, f"{stem}.bias", path)
        layers.append(dense_layer(values, f"{path}: tensor {name!r}", bias=bias_values))
    return layers


def _tensors(path: str | Path) -> dict[str, dict[str, Any]]:
    from safetensors import SafetensorError, deserialize

    try:
        claim(2 * Path(path).stat().st_size, str(path))
        return dict(deserialize(Path(path).read_bytes()))  # checks every offset against the file's length
    except SafetensorError as error:
        raise InputError(f"{path}: damaged or no safetensors file ({brief(error)})") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _select(tensors: dict[str, dict[str, Any]], names: Sequence[str] | None, path: str | Path) -> list[str]:
    known = sorted(tensors, key=natural_key)
    if names is None:
        chosen = [name for name in known if len(tensors[name]["shape"]) == 2]
        if not chosen:
            raise InputError(f"{path}: holds no two-dimensional tensor to take as a layer{did_you_mean('', known)}")
        return chosen
    chosen = []
    for pattern in names:
        hits = [name for name in known if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not hits:
            raise InputError(f"{path}: no tensor {pattern!r}{did_you_mean(pattern, known)}")
        chosen += hits
    for name in chosen:
        if len(tensors[name]["shape"]) != 2:
            raise InputError(f"{path}: tensor {name!r} has shape {tensors[name]['shape']}: a layer has two dimensions")
    return chosen


def _values(tensor: dict[str, Any], name: str, path: str | Path) -> np.ndarray:
    import ml_dtypes

    numpy_name = _TYPES.get(tensor["dtype"])
    if numpy_name is None:
        raise InputError(f"{path}: tensor {name!r} is of type {tensor['dtype']}{did_you_mean(tensor['dtype'], _TYPES)}")
    dtype = np.dtype(getattr(ml_dtypes, numpy_name, numpy_name))
    shape = tensor["shape"]
    if len(tensor["data"]) != math.prod(shape) * dtype.itemsize:
        raise InputError(
            f"{path}: tensor {name!r} has {len(tensor['data'])} bytes, which do not fill its shape {shape}"
        )
    return np.frombuffer(tensor["data"], dtype.newbyteorder("<")).reshape(shape)


class Safetensors(MatrixReader):
    suffixes = (".safetensors",)
    chooses_tensors = True

    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        return read(path, names=names)


NETWORK_READERS.register("safetensors", summary="safetensors: two-dimensional tensors are layers")(Safetensors())
