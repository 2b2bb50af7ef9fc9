"""Training of the `learned` ordering on files: which networks train and which validate; the weights are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reorder.edges.search.streaming import read_weights, weights_file
from reorder.learning.networks import generated
from reorder.learning.train import Training, train
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.networks.network import Network
from traces.readers import load

TRAINING_SEED, VALIDATION_SEED = 1, 99  # of generated networks


def load_network(path: str) -> Network:
    """Read a network to train on. Raises InputError for an operator graph."""
    loaded = load(path, kind="network")
    if not isinstance(loaded, Network):
        raise InputError(f"{path}: training needs networks of neurons, not an operator graph")
    return loaded


def seeds_of(text: str) -> list[int]:
    """Read seeds with commas between them."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0 or max(numbers) >= 2**32:
        raise InputError(f"--seeds {text}: whole numbers from 0 to 2^32 - 1, separated by commas")
    return numbers


def train_on_files(
    files: Sequence[str],
    *,
    kind: str,
    memory: int,
    policy: str,
    objective: Any,
    seconds: float,
    seeds: Sequence[int],
    start: str | None,
    output: str,
    progress: Progress | None = None,
) -> tuple[Training, int]:
    """Train weights and write them; return what came of it, and on how many networks it was validated.

    files: networks, every third of which validates (of one or two: generated ones); none: generated networks of `kind`.
    start: a weights file to go on from.
    """
    first = read_weights(start)[0] if start else None
    if files:
        own = [(load_network(path), memory) for path in files]
        training = [pair for k, pair in enumerate(own) if k % 3 != 2]
        validation = own[2::3] or generated(kind, VALIDATION_SEED, 12)
    else:
        training, validation = generated(kind, TRAINING_SEED, 80), generated(kind, VALIDATION_SEED, 24)
    made_with = {"networks": [Path(path).name for path in files] or kind, "start": first.name if first else ""}
    trained = train(
        training, validation, policy=policy, objective=objective, seeds=seeds, seconds=seconds, start=first,
        name=Path(output).stem, made_with=made_with, progress=progress,
    )  # fmt: skip
    with whole_file(output) as stream:
        stream.write(weights_file(list(trained.sets)))
    return trained, len(validation)
