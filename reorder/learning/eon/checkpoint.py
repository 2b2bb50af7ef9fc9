"""Checkpoints of EON: safetensors with everything a run needs to go on, checked array by array when read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reorder.learning.eon.policy import shapes
from reorder.learning.eon.training import Look, State
from traces.base.errors import InputError, brief
from traces.base.files import whole_file
from traces.base.memory import claim
from traces.work.checks import check_order
from traces.work.network import Network

VERSION = 2
_COLUMNS = 7


def fingerprint(network: Network) -> str:
    """Return what tells one network from another for an order: neurons and connections as they are numbered."""
    digest = hashlib.sha256(str(network.n_neurons).encode())
    for ends in (network.sources, network.targets):
        digest.update(np.ascontiguousarray(ends, "<i8").tobytes())
    return digest.hexdigest()


def write(path: str | Path, network: Network, state: State) -> None:
    """Write a checkpoint; the file is complete or as it was."""
    arrays = {f"parameter.{name}": each.detach().numpy() for name, each in state.parameters.items()}
    arrays |= {f"kept.{name}": each.numpy() for name, each in state.kept.items()}
    for name, (first, second) in state.moments.items():
        arrays |= {f"first.{name}": first.numpy(), f"second.{name}": second.numpy()}
    arrays |= {
        "features": state.features,
        "generator": state.generator.get_state().numpy(),
        "best": state.best,
        "curve": np.array([tuple(vars(look).values()) for look in state.curve], np.float64).reshape(-1, _COLUMNS),
    }
    about = {
        "version": VERSION, "seed": state.seed, "memory": state.memory, "iteration": state.iteration,
        "seconds": state.seconds, "network": fingerprint(network), "name": network.name,
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    with whole_file(path) as stream:
        stream.write(save(arrays, {"eon": json.dumps(about)}))


def read(path: str | Path, network: Network | None = None) -> State:
    """Return the run of a checkpoint. network: the one it goes on with, or is used on.

    Raises InputError naming the file for what is no checkpoint, is damaged, or holds numbers that cannot be; with
    `network`, for a checkpoint of another one.
    """
    arrays, about = _read(Path(path))

    def need(name: str, dtype: str, shape: tuple[int | None, ...]) -> np.ndarray:
        array = arrays.get(name)
        fits = array is not None and array.dtype == dtype and len(array.shape) == len(shape)
        if array is None or not fits or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            raise InputError(f"{path}: a checkpoint of EON holds {name!r} as {dtype} of shape {shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{path}: {name!r} holds numbers that are not finite")
        return array

    found = need("features", "float32", (None, None))
    width = len(need("parameter.norm.weight", "float32", (None,)))
    made = {
        kind: {name: torch.from_numpy(need(f"{kind}.{name}", "float32", shape).copy())
               for name, shape in shapes(found.shape[1], width).items()}
        for kind in ("parameter", "kept", "first", "second")
    }  # fmt: skip
    generator = torch.Generator()
    try:
        generator.set_state(torch.from_numpy(need("generator", "uint8", (None,)).copy()))
    except (RuntimeError, TypeError) as error:
        raise InputError(f"{path}: the state of the random numbers is damaged ({brief(error)})") from error
    best = need("best", "int64", (None,)).copy()
    curve = [
        Look(int(i), s, mean, *map(int, rest))
        for i, s, mean, *rest in need("curve", "float64", (None, _COLUMNS)).tolist()
    ]
    if network is not None:
        if about["network"] != fingerprint(network):
            raise InputError(f"{path}: trained for another network ({about['name']}); EON is trained for one")
        if len(found) != network.n_neurons:
            raise InputError(f"{path}: features of {len(found)} neurons, the network has {network.n_neurons}")
        if len(best):
            check_order(network, best)
    moments = {name: (first, made["second"][name]) for name, first in made["first"].items()}
    return State(
        about["seed"], about["memory"], found.copy(), made["parameter"], moments, made["kept"], generator, best,
        about["iteration"], about["seconds"], curve,
    )  # fmt: skip


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        claim(2 * path.stat().st_size, str(path))
        raw = path.read_bytes()
        arrays = load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        about = json.loads(header["__metadata__"]["eon"])
        if about["version"] != VERSION:
            raise InputError(f"{path}: a checkpoint of version {about['version']}, this program reads {VERSION}")
        kinds = {"seed": int, "memory": int, "iteration": int, "seconds": float, "network": str, "name": str}
        if any(type(about[name]) is not kind for name, kind in kinds.items()):
            raise ValueError("its description")
        if about["memory"] < 3 or not 0 <= about["seed"] < 2**63 or about["iteration"] < 0:
            raise ValueError("its description")
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: no checkpoint of `edgewatt learn eon`, or damaged ({brief(error)})") from error
    return arrays, about
