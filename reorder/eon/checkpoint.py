"""Checkpoints of EON: safetensors with everything a run needs to go on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save

from reorder.eon.contents import VERSION, CurvePoint, contents, fingerprint
from reorder.eon.training import TrainingState
from traces.base.errors import InputError, brief
from traces.base.files import whole_file
from traces.networks.network import Network


def write(path: str | Path, network: Network, state: TrainingState) -> None:
    """Write a checkpoint; the file is complete or as it was."""
    arrays = {f"parameter.{name}": each.detach().numpy() for name, each in state.parameters.items()}
    arrays |= {f"kept.{name}": each.numpy() for name, each in state.best_parameters.items()}
    for name, (first, second) in state.moments.items():
        arrays |= {f"first.{name}": first.numpy(), f"second.{name}": second.numpy()}
    arrays |= {
        "features": state.features,
        "generator": state.generator.get_state().numpy(),
        "best": state.best,
        "curve": np.array([tuple(vars(point).values()) for point in state.curve], np.float64).reshape(
            -1, len(CurvePoint.__dataclass_fields__)
        ),
    }
    about = {
        "version": VERSION, "seed": state.seed, "memory": state.memory, "iteration": state.iteration,
        "seconds": state.seconds, "network": fingerprint(network), "name": network.name,
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    with whole_file(path) as stream:
        stream.write(save(arrays, {"eon": json.dumps(about)}))


def read(path: str | Path, network: Network | None = None) -> TrainingState:
    """Return the run of a checkpoint; network and errors as of `contents`."""
    held = contents(path, network)
    generator = torch.Generator()
    try:
        generator.set_state(torch.from_numpy(held.generator))
    except (RuntimeError, TypeError) as error:
        raise InputError(f"{path}: the state of the random numbers is damaged ({brief(error)})") from error
    made = {kind: {name: torch.from_numpy(each) for name, each in of.items()} for kind, of in held.made.items()}
    moments = {name: (first, made["second"][name]) for name, first in made["first"].items()}
    return TrainingState(
        held.seed, held.memory, held.features, made["parameter"], moments, made["kept"], generator, held.best,
        held.iteration, held.seconds, held.curve,
    )  # fmt: skip
