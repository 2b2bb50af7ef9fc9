"""Read a checkpoint of EON and check it array by array, without PyTorch."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load
from scipy.sparse import coo_matrix, diags
from scipy.sparse.linalg import eigsh

from traces.base.errors import InputError, brief
from traces.base.files import need_regular
from traces.base.memory import claim
from traces.networks.checks import check_order
from traces.networks.network import Network

DENSE = 2000  # neurons up to which all eigenvectors are found at once


def features(network: Network, count: int) -> npt.NDArray[np.float32]:
    """Return float32[N, count]: ``v_i = Q[i, :count]`` of ``L = D - A = Q Lambda Q^-1``, largest eigenvalues first.

    Scaled by sqrt(N), so that entries are of order 1; each vector's largest entry is positive. Columns beyond N are 0.
    """
    n = network.n_neurons
    ones = np.ones(network.n_connections)
    adjacency = coo_matrix((ones, (network.sources, network.targets)), shape=(n, n)).tocsr()
    adjacency = ((adjacency + adjacency.T) > 0).astype(np.float64)
    laplacian = diags(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency
    computed = min(count, n)
    if n <= DENSE or computed >= n - 1:
        values, vectors = np.linalg.eigh(laplacian.toarray())
    else:
        values, vectors = eigsh(laplacian, computed, which="LA", v0=np.random.default_rng(0).standard_normal(n))
    largest = vectors[:, np.argsort(values, kind="stable")[::-1][:computed]]
    signs = np.sign(largest[np.argmax(np.abs(largest), axis=0), np.arange(computed)])
    result = np.zeros((n, count), np.float32)
    result[:, :computed] = largest * signs * np.sqrt(n)
    return result


VERSION = 2
KINDS = ("parameter", "kept", "first", "second")  # the parameters, those of the best likeliest order, Adam's moments

LINEAR = {  # name: inputs and outputs in units of (features, width)
    "edge": ((2, 0), (0, 1)), "node": ((1, 0), (0, 1)), "query": ((0, 1), (0, 1)), "key": ((0, 1), (0, 1)),
    "value": ((0, 1), (0, 1)), "mixed": ((0, 1), (0, 1)), "asks": ((0, 1), (0, 1)), "offers": ((0, 1), (0, 1)),
    "seen_key": ((0, 1), (0, 1)), "seen_value": ((0, 1), (0, 1)), "critic": ((0, 1), (0, 1)),
}  # fmt: skip


def shapes(features: int, width: int) -> dict[str, tuple[int, ...]]:
    result: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in LINEAR.items():
        n_in, n_out = (a * features + b * width for a, b in (inputs, outputs))
        result[f"{name}.weight"], result[f"{name}.bias"] = (n_out, n_in), (n_out,)
    result |= {"norm.weight": (width,), "norm.bias": (width,), "empty": (width,), "sentinel": (width,)}
    return result | {"critic_out.weight": (1, width), "critic_out.bias": (1,)}


@dataclass(frozen=True)
class CurvePoint:
    """One point of the curve: iterations and CPU seconds so far, mean misses of the orders drawn in this iteration.

    least: the fewest of one of its orders; best: so far. likeliest: misses of the order that takes the likeliest
    connections; best_likeliest: the fewest of those so far.
    """

    iteration: int
    seconds: float
    mean: float
    least: int
    best: int
    likeliest: int
    best_likeliest: int


@dataclass(frozen=True, eq=False)
class Contents:
    """A checkpoint's arrays. made: {kind: {parameter: float32 array}}; generator: uint8, PyTorch's state of it.

    features, best, curve, seed, memory, iteration, seconds: as in training.TrainingState.
    """

    made: dict[str, dict[str, npt.NDArray[np.float32]]]
    features: npt.NDArray[np.float32]
    generator: npt.NDArray[np.uint8]
    best: npt.NDArray[np.int64]
    curve: list[CurvePoint]
    seed: int
    memory: int
    iteration: int
    seconds: float


def fingerprint(network: Network) -> str:
    """Return the SHA-256 of a network's size and connections as they are numbered."""
    digest = hashlib.sha256(str(network.n_neurons).encode())
    for ends in (network.sources, network.targets):
        digest.update(np.ascontiguousarray(ends, "<i8").tobytes())
    return digest.hexdigest()


def contents(path: str | Path, network: Network | None = None) -> Contents:
    """Return the arrays of a checkpoint. network: the one it is trained for."""
    arrays, about = _read(Path(path))

    def need(name: str, dtype: str, shape: tuple[int | None, ...]) -> np.ndarray:
        array = arrays.get(name)
        fits = array is not None and array.dtype == dtype and len(array.shape) == len(shape)
        if array is None or not fits or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            raise InputError(f"{path}: a checkpoint of EON holds {name!r} as {dtype} of shape {shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{path}: {name!r} holds numbers that are not finite")
        return array

    table = need("features", "float32", (None, None))
    width = len(need("parameter.norm.weight", "float32", (None,)))
    sizes = shapes(table.shape[1], width)
    made = {kind: {name: need(f"{kind}.{name}", "float32", of).copy() for name, of in sizes.items()} for kind in KINDS}
    generator = need("generator", "uint8", (None,)).copy()
    best = need("best", "int64", (None,)).copy()
    curve = [
        CurvePoint(int(i), s, mean, *map(int, rest))
        for i, s, mean, *rest in need("curve", "float64", (None, len(CurvePoint.__dataclass_fields__))).tolist()
    ]
    if network is not None:
        if about["network"] != fingerprint(network):
            raise InputError(f"{path}: trained for another network ({about['name']}); EON is trained for one")
        if len(table) != network.n_neurons:
            raise InputError(f"{path}: features of {len(table)} neurons, the network has {network.n_neurons}")
        if len(best):
            try:
                check_order(network, best)
            except InputError as error:
                raise InputError(f"{path}: {error}") from error
    return Contents(
        made, table.copy(), generator, best, curve, about["seed"], about["memory"], about["iteration"], about["seconds"]
    )


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    need_regular(path)
    try:
        claim(2 * path.stat().st_size, str(path))
        raw = path.read_bytes()
        arrays = load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        about = json.loads(header["__metadata__"]["eon"])
        if about["version"] != VERSION:
            raise InputError(f"{path}: a checkpoint of version {about['version']}, this program reads {VERSION}")
        kinds = {"seed": int, "memory": int, "iteration": int, "seconds": float, "network": str, "name": str}
        typed = all(type(about[name]) is kind for name, kind in kinds.items())
        timed = typed and 0 <= about["seconds"] < math.inf and 0 <= about["iteration"] < 2**63
        if not (timed and 3 <= about["memory"] < 2**63 and 0 <= about["seed"] < 2**63):
            raise ValueError("its description")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: no checkpoint of `edgewatt learn eon`, or damaged ({brief(error)})") from error
    return arrays, about
