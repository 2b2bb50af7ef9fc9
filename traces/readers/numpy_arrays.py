"""NumPy files of dense arrays: each two-dimensional one is a layer, whose non-zeros are the connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from traces.base.archive import npz_names, read_npy, read_npz
from traces.base.errors import InputError, did_you_mean
from traces.networks.network import is_real
from traces.readers.parts.layers import Matrix, dense_layers, natural_key
from traces.readers.reader import NETWORK_READERS, MatrixReader

# Arrays of which the other npz files have at least one: networks, SciPy's matrices, orders, traces.
_OTHERS = {"edgewatt_network", "format", "shape", "data", "indices", "indptr", "row", "col", "edges", "meta.json"}


def _matrices(arrays: Mapping[str, np.ndarray]) -> list[str]:
    return sorted((name for name, values in arrays.items() if values.ndim == 2), key=natural_key)


def _layer(values: np.ndarray, where: str, bias: np.ndarray | None = None) -> tuple[np.ndarray, str, np.ndarray | None]:
    if values.ndim != 2 or not (values.dtype == bool or is_real(values.dtype)):
        raise InputError(f"{where}: a layer is a matrix of real numbers, not {values.dtype} of shape {values.shape}")
    return values, where, bias if bias is not None and bias.ndim == 1 else None


class NumpyArrays(MatrixReader):
    suffixes = (".npy", ".npz")
    chooses_tensors = True

    def recognises(self, path: Path) -> bool:
        return path.suffix.lower() == ".npy" or not _OTHERS & npz_names(path)

    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        """An array `x.bias` of one dimension belongs to `x.weight` or `x`."""
        if path.suffix.lower() == ".npy":
            return dense_layers([_layer(read_npy(path), f"{path}: the array")])
        arrays = read_npz(path)
        chosen = _matrices(arrays) if names is None else names
        if not chosen:
            raise InputError(f"{path}: holds no two-dimensional array to take as a layer{did_you_mean('', arrays)}")
        layers = []
        for name in chosen:
            if name not in arrays:
                raise InputError(f"{path}: has no array {name!r}{did_you_mean(name, arrays)}")
            bias = arrays.get(f"{name.removesuffix('.weight')}.bias")
            layers.append(_layer(arrays[name], f"{path}: array {name!r}", bias))
        return dense_layers(layers)

    def matrix_names(self, path: Path) -> list[str]:
        return [] if path.suffix.lower() == ".npy" else _matrices(read_npz(path))


NETWORK_READERS.register("numpy", summary="NumPy npy and npz: every dense two-dimensional array is a layer")(
    NumpyArrays()
)
