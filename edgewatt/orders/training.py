"""Training of the policy of `eon`, and its orders beside those of other methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hwmodel.fastmemory.iomodel import count_io
from reorder.order import order
from traces.base.errors import InputError, MissingExtraError
from traces.base.progress import Progress
from traces.networks.network import Network

if TYPE_CHECKING:
    from reorder.eon.training import TrainingState


def seeds_of(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0 or max(numbers) >= 2**32:
        raise InputError(f"--seeds {text}: whole numbers from 0 to 2^32 - 1, separated by commas")
    return numbers


OTHERS = ("layerwise", "two-optimal", "ego", "output-stationary", "learned", "connection-reordering", "residency")
SAVED_EVERY = 10  # iterations
MOST_CONNECTIONS = 20_000  # attention over the frontier is quadratic, and every step of every order is kept


def lru_misses(network: Network, edges: npt.NDArray[np.int64], memory: int) -> int:
    """Return the misses of an order in EON's world: an LRU cache of memory - 1 neurons, two looks a connection."""
    return int(count_io(network, edges, memory=memory, policy="lru").reads) - network.n_connections


def train_seeds(
    network: Network,
    *,
    memory: int,
    seeds: Sequence[int] = (0,),
    output: str | Path | None = None,
    resume: str | Path | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> list[TrainingState]:
    """Train EON once per seed and return the runs, the one with the best order first, which is written to `output`.

    iterations, seconds (CPU): of each run in all, one of them given. resume: a checkpoint to go on from. The same seed
    and iterations give the same run, resumed or not. Raises InputError for a network without connections or with more
    than 20,000, MissingExtraError without PyTorch.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("torch", "learn") from error
    from reorder.eon.checkpoint import read, write
    from reorder.eon.training import begin, train

    if memory < 3:
        raise InputError(f"memory must be at least 3, not {memory}")
    if not 1 <= network.n_connections <= MOST_CONNECTIONS:
        raise InputError(
            f"{network.n_connections} connections: EON attends from every connection of the frontier to every other: "
            f"it takes 1 to {MOST_CONNECTIONS}; `edgewatt order -m learned` has no such limit"
        )
    if iterations is None and seconds is None:
        raise InputError("say how long to train: iterations or seconds")
    states = [read(resume, network)] if resume else [begin(network, memory=memory, seed=seed) for seed in seeds]
    if any(state.memory != memory for state in states):
        raise InputError(f"{resume}: trained with memory {states[0].memory}, not {memory}")
    done: list[TrainingState] = []

    def best_first() -> list[TrainingState]:
        return sorted(done, key=lambda state: state.curve[-1].best if state.curve else 1 << 62)

    for number, state in enumerate(states):

        def after(now: TrainingState, number: int = number) -> None:
            share = max(now.iteration / (iterations or 1 << 62), now.seconds / (seconds or 1e300))
            if progress is not None:
                text = f"seed {now.seed}: best {now.curve[-1].best}, mean {now.curve[-1].mean:.0f} misses"
                progress(round(1000 * (number + min(share, 1)) / len(states)), 1000, text)
            if output is not None and now.iteration % SAVED_EVERY == 0 and not done:
                write(output, network, now)

        done.append(train(network, state, iterations=iterations, seconds=seconds, after=after))
        if output is not None:
            write(output, network, best_first()[0])
    return best_first()


def against_others(network: Network, memory: int, state: TrainingState) -> list[tuple[str, int]]:
    from reorder.eon.episodes import likeliest
    from reorder.eon.policy import Graph

    graph = Graph(state.features, network.sources, network.targets)
    greedy, _ = likeliest(state.best_parameters, graph, network, memory - 1)
    rows = [("eon, likeliest connection", lru_misses(network, greedy, memory))]
    if len(state.best):
        rows.append(("eon, best sample", lru_misses(network, state.best, memory)))
    for name in OTHERS:
        made = order(network, name, memory=memory, policy="lru")
        rows.append((name, lru_misses(network, made.edges, memory)))
    return rows
