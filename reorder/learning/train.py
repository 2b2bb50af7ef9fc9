"""Training by CMA-ES (extra `learn`): weights that lower the exact objective of the orders they make.

One candidate is judged by the mean, over a few networks drawn anew in every generation, of log(extra / extra of the
start), where extra is the objective above the Theorem 1 bound. The best mean of the distribution on networks that
training does not see is kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import Progress, Task
from reorder.edges.bounds.bounds import theorem_1
from reorder.edges.search.budget import Scorer
from reorder.edges.search.initial_states import slot_choices
from reorder.edges.search.intervals import Items
from reorder.edges.search.objectives import make_objective
from reorder.edges.search.streaming import StreamingWeights, plain_weights, stream_items
from traces.base.errors import InputError, MissingExtraError
from traces.networks.network import Network

LONGEST_S = 300.0  # CPU seconds of one training, over all seeds
PER_GENERATION = 8  # networks on which a generation is judged
SPREAD, SPREAD_AGAIN = 0.3, 0.12  # of the first generation, from the plain start and from trained weights
LOOKS = 20  # at the validation networks, per seed
DELAYS = {"min": (0,), "lru": (0, 8), "rr": (0, 8)}  # tried when a candidate is judged


@dataclass(frozen=True)
class Validation:
    """One look at the validation networks: seed, evaluations, CPU seconds, mean log ratio to the start."""

    seed: int
    evaluations: int
    seconds: float
    validation: float


@dataclass(frozen=True)
class Training:
    """The best weights of each seed, best first, and how validation fell. validation: of each set, in that order."""

    sets: tuple[StreamingWeights, ...]
    validation: tuple[float, ...]
    curve: tuple[Validation, ...]


class Case:
    """A network with a memory size, ready to be ordered again and again."""

    def __init__(self, network: Network, memory: int, policy: str, objective: Any) -> None:
        self.task = make_objective(objective).within(Task(memory, policy, objective=objective))
        self.items, self.score = Items(network), Scorer(network, self.task)
        terms = [term.within(self.task) for term in self.score.objective.io]
        self.bound = sum(weight for weight, *_ in terms) * theorem_1(network)
        self.bound += self.score.objective.runs * int((network.in_degree > 0).sum())
        self.slots = slot_choices(self.task)[0]
        self.start = 0.0

    def extra(self, weights: StreamingWeights) -> float:
        """Return the objective above its bound."""
        state = stream_items(self.items, self.slots, weights)
        assert state is not None
        search = self.items.search(state.slots, still=True)
        search.set_state(state.opens, state.drops)
        delays = DELAYS[self.task.policy]
        return min(self.score.polished(self.items.decode(search, d))[1] for d in delays) - self.bound

    def against_start(self, weights: StreamingWeights) -> float:
        """Return log(extra / extra of the start)."""
        return float(np.log((self.extra(weights) + 1) / (self.start + 1)))


def train(
    training: Sequence[tuple[Network, int]],
    validation: Sequence[tuple[Network, int]],
    *,
    policy: str = "min",
    objective: Any = "io",
    seeds: Sequence[int] = (0, 1, 2),
    seconds: float = 120.0,
    start: StreamingWeights | None = None,
    name: str = "own",
    made_with: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Training:
    """Train one set of weights per seed on (network, memory) pairs, for `seconds` of CPU time in all.

    Needs the extra `learn`. Raises InputError for empty sets, more than 300 seconds, or fewer than one seed.
    """
    try:
        from cmaes import CMA
    except ImportError as error:
        raise MissingExtraError("cmaes", "learn") from error
    if not training or not validation or not seeds:
        raise InputError("training needs networks to train on, others to validate on, and at least one seed")
    if not 0 < seconds <= LONGEST_S:
        raise InputError(f"seconds must be above 0 and at most {LONGEST_S:g}, not {seconds!r}")
    first = start or plain_weights()
    cases, checks = ([Case(n, m, policy, objective) for n, m in some] for some in (training, validation))
    reference = plain_weights()
    for case in (*cases, *checks):
        case.start = case.extra(reference)
    curve: list[Validation] = []
    trained: list[tuple[float, StreamingWeights]] = []
    provenance = {**(made_with or {}), "policy": policy, "objective": objective, "version_of_rule": 1}
    for number, seed in enumerate(seeds):
        search = CMA(mean=first.vector(), sigma=SPREAD if start is None else SPREAD_AGAIN, seed=seed)
        drawn = np.random.default_rng(seed)
        began, share, done, next_look = time.process_time(), seconds / len(seeds), 0, 0.0
        best = (_mean(checks, first), first.vector())
        while (spent := time.process_time() - began) < share:
            some = [cases[k] for k in drawn.choice(len(cases), min(PER_GENERATION, len(cases)), replace=False)]
            asked = [search.ask() for _ in range(search.population_size)]
            search.tell([(x, _mean(some, StreamingWeights.from_vector(x))) for x in asked])
            done += len(asked)
            if spent >= next_look:
                next_look = spent + share / LOOKS
                mean: npt.NDArray[np.float64] = search.mean
                value = _mean(checks, StreamingWeights.from_vector(mean))
                best = min(best, (value, mean.copy()), key=lambda one: one[0])
                curve.append(Validation(seed, done, time.process_time() - began, value))
                if progress:
                    progress(round(1000 * (number + spent / share) / len(seeds)), 1000, f"seed {seed}: {best[0]:.4f}")
        more = {"seed": seed, "cpu_seconds": round(share), "evaluations": done, "validation": round(best[0], 4)}
        trained.append(
            (best[0], StreamingWeights.from_vector(np.round(best[1], 4), f"{name}-{seed}", {**provenance, **more}))
        )
    trained.sort(key=lambda one: one[0])
    return Training(tuple(w for _, w in trained), tuple(v for v, _ in trained), tuple(curve))


def _mean(cases: Sequence[Case], weights: StreamingWeights) -> float:
    return float(np.mean([case.against_start(weights) for case in cases]))
