"""Our own file of one network: an npz archive of its arrays in the smallest integer types that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traces.base.archive import read_npz
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.memory import claim
from traces.networks.network import Network
from traces.readers.parts.layers import claim_network
from traces.readers.reader import NETWORK_READERS, NetworkReader, ReadOptions

MARKER = "edgewatt_network"  # holds the version of this layout; its presence tells our files from SciPy's
VERSION = 1
_REQUIRED = ("sources", "targets", "n_neurons", "inputs", "outputs", "activation", "name")
_OPTIONAL = ("weights", "biases", "layer", "batch", "weight_ids", "positions", "activations", "slopes")
_EXTRA = "extra_"


def save(network: Network, path: str | Path, *, extras: Mapping[str, Any] | None = None) -> None:
    """Write the network, complete or not at all. The order of its connections is kept."""
    arrays: dict[str, Any] = {
        MARKER: np.int64(VERSION),
        "n_neurons": np.int64(network.n_neurons),
        "activation": np.array(network.activation),
        "name": np.array(network.name),
    }
    for name in ("sources", "targets", "inputs", "outputs", "layer", "weight_ids"):
        ids = getattr(network, name)
        if ids is not None:
            arrays[name] = ids.astype(np.min_scalar_type(int(ids.max(initial=0))))
    for name in ("weights", "biases", "batch", "positions", "activations", "slopes"):
        if getattr(network, name) is not None:
            arrays[name] = getattr(network, name)
    for name, value in (extras or {}).items():
        arrays[_EXTRA + name] = np.asarray(value)
        if arrays[_EXTRA + name].dtype.hasobject:
            raise InputError(f"extra {name!r} is not a plain array of numbers or text")
    with whole_file(path) as stream:
        np.savez_compressed(stream, **arrays)


def read_extras(path: str | Path) -> dict[str, np.ndarray]:
    arrays = read_npz(path)
    return {name.removeprefix(_EXTRA): value for name, value in arrays.items() if name.startswith(_EXTRA)}


def _single(arrays: Mapping[str, np.ndarray], name: str, path: Path, kinds: str) -> Any:
    value = arrays[name]
    if value.shape != () or value.dtype.kind not in kinds:
        expected = "text" if kinds == "U" else "one integer"
        raise InputError(f"{path}: array {name!r} must be {expected}, not {value.dtype} of shape {value.shape}")
    return value.item()


class Native(NetworkReader):
    suffixes = (".npz",)

    def recognises(self, path: Path) -> bool:
        return MARKER in read_npz(path, (MARKER,))

    def network(self, files: Sequence[Path], options: ReadOptions) -> Network:
        path = files[0]
        arrays = read_npz(path, (MARKER, *_REQUIRED, *_OPTIONAL))
        version = _single(arrays, MARKER, path, "iu")
        if version != VERSION:
            raise InputError(f"{path}: network file of version {version}, this edgewatt reads version {VERSION}")
        for name in _REQUIRED:
            if name not in arrays:
                raise InputError(f"{path}: array {name!r} is missing")
        n_neurons = _single(arrays, "n_neurons", path, "iu")
        claim_network(arrays["sources"].size, n_neurons, str(path))
        claim(16 * sum(array.size for array in arrays.values()), str(path), "its numbers as 64 bits, read and checked,")
        given = {name: arrays.get(name) for name in ("sources", "targets", "inputs", "outputs", *_OPTIONAL)}
        given |= {name: _single(arrays, name, path, "U") for name in ("activation", "name")}
        try:
            return Network(n_neurons=n_neurons, **given)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


NETWORK_READERS.register("edgewatt-npz", summary="our own npz: everything a network holds")(Native())
