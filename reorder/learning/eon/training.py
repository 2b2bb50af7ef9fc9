"""Proximal policy optimisation (Schulman et al. 2017) of EON on one network.

An iteration makes `BATCH` orders, and goes over their steps EPOCHS times. What was needed to learn at all: rewards less
their mean, a discount of 0.95 and a learning rate of 2e-3. Everything a run needs to go on is in `State`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from reorder.learning.eon.episodes import Episodes, frontiers, play
from reorder.learning.eon.policy import Graph, forward, initial
from reorder.learning.eon.spectrum import features
from traces.work.network import Network

BATCH, EPOCHS, STEPS = 32, 3, 16  # orders an iteration, passes over them, steps (of all orders) a gradient
DISCOUNT, TRACE = 0.95, 0.95  # gamma and lambda of the generalised advantage
RATE, CLIP, ENTROPY, CRITIC, LARGEST = 2e-3, 0.2, 0.01, 0.25, 0.5
FEATURES, WIDTH = 16, 32


@dataclass(frozen=True)
class Look:
    """One point of the curve: iterations and CPU seconds so far, mean and least misses of an order, least of all."""

    iteration: int
    seconds: float
    mean: float
    least: int
    best: int


@dataclass(eq=False)
class State:
    """A run: its parameters, Adam's moments, the generator, and what it found. memory: M, the cache holds M - 1.

    best: int64[W], the order of fewest misses seen. features: float32[N, k] of the network's neurons.
    """

    seed: int
    memory: int
    features: npt.NDArray[np.float32]
    parameters: dict[str, torch.Tensor]
    moments: dict[str, tuple[torch.Tensor, torch.Tensor]]
    generator: torch.Generator
    best: npt.NDArray[np.int64]
    iteration: int = 0
    seconds: float = 0.0
    curve: list[Look] = field(default_factory=list)


def begin(network: Network, *, memory: int, seed: int = 0, n_features: int = FEATURES, width: int = WIDTH) -> State:
    """Return a run that has not begun. memory: M >= 3."""
    generator = torch.Generator().manual_seed(seed)
    parameters = initial(n_features, width, generator)
    moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in parameters.items()}
    return State(seed, memory, features(network, n_features), parameters, moments, generator, np.zeros(0, np.int64))


def train(
    network: Network,
    state: State,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    after: Callable[[State], Any] | None = None,
) -> State:
    """Go on with a run until it has so many iterations or CPU seconds in all; `after` is called after each iteration.

    The same iterations give the same state, in one piece or in several.
    """
    torch.set_num_threads(1)
    graph = Graph(state.features, network.sources, network.targets)
    world = frontiers(network, BATCH, state.memory - 1)
    weights = {name: each.requires_grad_() for name, each in state.parameters.items()}
    optimiser = _optimiser(state, weights)
    began, spent = time.process_time(), state.seconds
    least = state.curve[-1].best if state.curve else np.iinfo(np.int64).max
    while (iterations is None or state.iteration < iterations) and (seconds is None or state.seconds < seconds):
        made = play(weights, graph, world, state.generator, keep=True)
        total = made.misses.sum(axis=0)
        if total.min() < least:
            least, state.best = int(total.min()), made.edges[:, int(total.argmin())].copy()
        learn(weights, optimiser, graph, made, state.generator)
        state.iteration += 1
        state.seconds = spent + time.process_time() - began
        state.curve.append(Look(state.iteration, state.seconds, float(total.mean()), int(total.min()), least))
        state.moments = {
            name: (optimiser.state[each]["exp_avg"], optimiser.state[each]["exp_avg_sq"])
            for name, each in weights.items()
        }
        if after is not None:
            after(state)
    state.parameters = {name: each.detach() for name, each in weights.items()}
    return state


def advantages(misses: npt.NDArray[np.int64], value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float32[W, B] generalised advantages and returns of rewards -misses, less their mean."""
    reward = torch.from_numpy(-(misses - misses.mean())).float()
    found, ahead = torch.zeros_like(value), torch.zeros(value.shape[1])
    for step in range(len(value) - 1, -1, -1):
        following = value[step + 1] if step + 1 < len(value) else 0.0
        ahead = reward[step] + DISCOUNT * following - value[step] + DISCOUNT * TRACE * ahead
        found[step] = ahead
    return found, found + value


def learn(
    weights: dict[str, torch.Tensor],
    optimiser: torch.optim.Adam,
    graph: Graph,
    made: Episodes,
    generator: torch.Generator,
) -> None:
    """Take the gradient steps of one iteration."""
    advantage, target = advantages(made.misses, made.value)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(made.seen), generator=generator).split(STEPS):
            seen = [made.seen[step] for step in chosen.tolist()]
            widest = max(frontier.shape[1] for frontier, _ in seen)
            frontier = torch.cat([functional.pad(f, (0, widest - f.shape[1]), value=-1) for f, _ in seen])
            logits, value = forward(weights, graph, frontier, torch.cat([cache for _, cache in seen]))
            logs = logits.log_softmax(-1)
            entropy = -(logs.exp() * logs.clamp(min=-50)).sum(-1).mean()
            now = logs.gather(1, made.places[chosen].reshape(-1, 1))[:, 0]
            ratio = (now - made.log_probability[chosen].reshape(-1)).exp()
            gain = advantage[chosen].reshape(-1)
            policy = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            wrong = functional.mse_loss(value, target[chosen].reshape(-1))
            optimiser.zero_grad()
            (CRITIC * wrong - policy - ENTROPY * entropy).backward()
            torch.nn.utils.clip_grad_norm_(list(weights.values()), LARGEST)
            optimiser.step()


def _optimiser(state: State, weights: dict[str, torch.Tensor]) -> torch.optim.Adam:
    """Return Adam over the parameters, with the moments of the run so far."""
    optimiser = torch.optim.Adam(list(weights.values()), RATE)
    updates = float(state.iteration * EPOCHS * -(-len(state.best) // STEPS))
    for name, weight in weights.items() if state.iteration else ():
        first, second = state.moments[name]
        optimiser.state[weight] = {"step": torch.tensor(updates), "exp_avg": first, "exp_avg_sq": second}
    return optimiser
