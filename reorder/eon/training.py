"""Proximal policy optimisation (Schulman et al. 2017) of EON on one network.

An iteration makes `batch` orders and goes over their steps `epochs` times; one more order always takes the likeliest
connection; the parameters of the best such order are the result. `TrainingState` holds all that a run needs to go on.
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

from reorder.eon.contents import CurvePoint, features
from reorder.eon.episodes import Episodes, frontiers, play
from reorder.eon.policy import Graph, Worlds, forward, initial, tables
from traces.base.errors import InputError
from traces.networks.network import Network

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Recipe:
    """What the paper leaves open: OUR CHOICES, measured on a network of 16 neurons a layer.

    features: eigenvectors. width: of the attention. batch: orders an iteration. epochs: passes over them. steps: of all
    orders, a gradient. discount, trace: gamma and lambda of the generalised advantage. rate: Adam's; it and the weight
    of the entropy halve every `half` iterations, down to a share of `coldest`. clip: of the ratio; critic: weight of
    the value's error; largest: norm of a gradient.
    """

    features: int = 128
    width: int = 48
    batch: int = 64
    epochs: int = 1
    steps: int = 8
    discount: float = 0.95
    trace: float = 0.95
    rate: float = 3e-3
    entropy: float = 0.03
    half: float = 45.0
    coldest: float = 0.05
    clip: float = 0.2
    critic: float = 0.25
    largest: float = 0.5


RECIPE = Recipe()


@dataclass(eq=False)
class TrainingState:
    """A run: its parameters, Adam's moments, the generator, and what it found. memory: M, the cache holds M - 1.

    best_parameters: those whose likeliest order was best. best: int64[W], the order of fewest misses seen.
    features: float32[N, k] of the network's neurons.
    """

    seed: int
    memory: int
    features: npt.NDArray[np.float32]
    parameters: dict[str, torch.Tensor]
    moments: dict[str, tuple[torch.Tensor, torch.Tensor]]
    best_parameters: dict[str, torch.Tensor]
    generator: torch.Generator
    best: npt.NDArray[np.int64]
    iteration: int = 0
    seconds: float = 0.0
    curve: list[CurvePoint] = field(default_factory=list)


def begin(network: Network, *, memory: int, seed: int = 0) -> TrainingState:
    """Return a run that has not begun. memory: M >= 3."""
    generator = torch.Generator().manual_seed(seed)
    parameters = initial(RECIPE.features, RECIPE.width, generator)
    moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in parameters.items()}
    copies = {name: each.clone() for name, each in parameters.items()}
    table = features(network, RECIPE.features)
    return TrainingState(seed, memory, table, parameters, moments, copies, generator, np.zeros(0, np.int64))


@np.errstate(over="ignore", invalid="ignore")  # told below, as an error
def train(
    network: Network,
    state: TrainingState,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    after: Callable[[TrainingState], Any] | None = None,
) -> TrainingState:
    """Go on with a run until it has so many iterations or CPU seconds in all; `after` is called after each iteration.

    The same iterations give the same state, in one piece or in several. Raises InputError where parameters overflow.
    """
    torch.set_num_threads(1)
    graph = Graph(state.features, network.sources, network.targets)
    world = frontiers(network, 1 + RECIPE.batch, state.memory - 1)
    weights = {name: each.requires_grad_() for name, each in state.parameters.items()}
    optimiser = _optimiser(state, weights, network.n_connections)
    began, spent = time.process_time(), state.seconds
    least, likeliest = (state.curve[-1].best, state.curve[-1].best_likeliest) if state.curve else (NEVER, NEVER)
    while (iterations is None or state.iteration < iterations) and (seconds is None or state.seconds < seconds):
        episodes = play(weights, graph, world, state.generator, greedy=1, keep=True)
        total = episodes.misses.sum(axis=0)
        if total.min() < least:
            least, state.best = int(total.min()), episodes.edges[:, int(total.argmin())].copy()
        if total[0] <= likeliest:  # of equals the last, which has learned more
            likeliest = int(total[0])
            state.best_parameters = {name: each.detach().clone() for name, each in weights.items()}
        _learn(weights, optimiser, graph, episodes, state)
        state.iteration += 1
        if not all(each.isfinite().all() for each in weights.values()):
            raise InputError(
                f"iteration {state.iteration}: parameters are no longer finite; go on from another checkpoint, or anew"
            )
        state.seconds = spent + time.process_time() - began
        drawn = total[1:]
        point = CurvePoint(
            state.iteration, state.seconds, float(drawn.mean()), int(drawn.min()), least, int(total[0]), likeliest
        )
        state.curve.append(point)
        state.moments = {
            name: (optimiser.state[each]["exp_avg"], optimiser.state[each]["exp_avg_sq"])
            if each in optimiser.state
            else state.moments[name]  # what nothing depends on
            for name, each in weights.items()
        }
        if after is not None:
            after(state)
    state.parameters = {name: each.detach() for name, each in weights.items()}
    return state


def advantages(
    misses: npt.NDArray[np.int64], value: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return float32[W, B] generalised advantages and returns of rewards -misses, less their mean."""
    reward = (misses.mean() - misses).astype(np.float32)
    advantage, ahead = np.zeros_like(value), np.zeros(value.shape[1], np.float32)
    for step in range(len(value) - 1, -1, -1):
        following = value[step + 1] if step + 1 < len(value) else np.float32(0)
        ahead = reward[step] + RECIPE.discount * following - value[step] + RECIPE.discount * RECIPE.trace * ahead
        advantage[step] = ahead
    return advantage, advantage + value


def _learn(
    weights: dict[str, torch.Tensor],
    optimiser: torch.optim.Adam,
    graph: Graph,
    episodes: Episodes,
    state: TrainingState,
) -> None:
    """Take the gradient steps of one iteration; the first order, the likeliest, is not learned from."""
    cooled = max(RECIPE.coldest, 0.5 ** (state.iteration / RECIPE.half))
    for group in optimiser.param_groups:
        group["lr"] = RECIPE.rate * cooled
    advantage, target = advantages(episodes.misses[:, 1:], episodes.value[:, 1:])
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    for _ in range(RECIPE.epochs):
        for chosen in torch.randperm(len(episodes.seen), generator=state.generator).split(RECIPE.steps):
            steps = chosen.numpy()
            gain, returns, before, chosen_positions = (
                torch.from_numpy(each[steps].ravel())
                for each in (advantage, target, episodes.log_probability[:, 1:], episodes.positions[:, 1:])
            )
            logits, value = forward(weights, tables(weights, graph), _together([episodes.seen[step] for step in steps]))
            logs = logits.log_softmax(-1)
            entropy = -(logs.exp() * logs.clamp(min=-50)).sum(-1).mean()
            ratio = (logs.gather(1, chosen_positions[:, None])[:, 0] - before).exp()
            policy = torch.min(ratio * gain, ratio.clamp(1 - RECIPE.clip, 1 + RECIPE.clip) * gain).mean()
            value_loss = functional.mse_loss(value, returns)
            optimiser.zero_grad()
            (RECIPE.critic * value_loss - policy - RECIPE.entropy * cooled * entropy).backward()
            torch.nn.utils.clip_grad_norm_(list(weights.values()), RECIPE.largest)
            optimiser.step()


def _together(seen: list[Worlds]) -> Worlds:
    """Return the worlds of several steps below each other, without the first of each step."""
    widest = max(each.frontier.shape[1] for each in seen)
    frontiers = [np.pad(each.frontier[1:], ((0, 0), (0, widest - each.frontier.shape[1]))) for each in seen]
    sizes, caches = [each.size[1:] for each in seen], [each.cache[1:] for each in seen]
    return Worlds(np.concatenate(frontiers), np.concatenate(sizes), np.concatenate(caches))


def _optimiser(state: TrainingState, weights: dict[str, torch.Tensor], steps: int) -> torch.optim.Adam:
    """Return Adam over the parameters, with the moments of the run so far; an order has so many steps."""
    optimiser = torch.optim.Adam(list(weights.values()), RECIPE.rate)
    updates = float(state.iteration * RECIPE.epochs * -(-steps // RECIPE.steps))
    for name, weight in weights.items() if state.iteration else ():
        first, second = state.moments[name]
        optimiser.state[weight] = {"step": torch.tensor(updates), "exp_avg": first, "exp_avg_sq": second}
    return optimiser
