"""Connection Reordering: simulated annealing over edge orders as published (Gleinig et al. 2023, section IV).

One iteration draws a connection, a number of further ones below the window size and a direction, moves the window's
connections one by one as far as order and locality let them, and keeps the result if the objective falls, else with
probability 2^(-delta t^sigma) in iteration t. The kernel counts a changed order's I/Os incrementally; counting each
order from scratch gives the same course (`incremental=False`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Interrupts, Scorer, check_counts, so_far
from reorder.edges.search.edge_moves import annealer, begins_within
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown
from traces.networks.network import Int64Array, Network

SLICE_S = 0.2  # between two looks at the clock, the progress bar and Ctrl-C
STARTS: dict[str, Callable[[Network], Int64Array]] = {
    "two-optimal": two_optimal_order,
    "own": lambda network: np.arange(network.n_connections),
}


@dataclass(frozen=True)
class ConnectionReorderingParameters:
    """iterations: T. window: window size ws; None is the paper's 4 W / (N - I). sigma: cooling rate, the paper's 0.2.

    start: 'two-optimal' as in the paper, or 'own' for the network's own order.
    incremental: False counts every order from scratch; slower, the same result.
    """

    iterations: int = 10_000
    window: int | None = None
    sigma: float = 0.2
    start: str = "two-optimal"
    incremental: bool = True

    def __post_init__(self) -> None:
        whole_number(self.iterations, "iterations", 0)
        check_counts(self, window=1)
        if not isinstance(self.sigma, int | float) or not math.isfinite(self.sigma):
            raise InputError(f"sigma must be a finite number, not {shown(self.sigma)}")
        if self.start not in STARTS:
            raise InputError(f"start must be {' or '.join(map(repr, STARTS))}, not {shown(self.start)}")


def paper_window(network: Network) -> int:
    """Return four times the average in-degree of computed neurons (Gleinig et al. 2023, section VI-A)."""
    computed = int(network.touched.sum()) - int(network.touched[network.inputs].sum())
    return max(1, round(4 * network.n_connections / computed))


def curve_points(iterations: int) -> list[int]:
    """Return the iterations at which the best-so-far curve is noted: 1-2-5 steps, then every hundredth part."""
    steps = {m * 10**k for k in range(len(str(iterations))) for m in (1, 2, 5)}
    steps |= set(np.linspace(0, iterations, 101, dtype=np.int64).tolist())
    return sorted(step for step in steps | {iterations} if 0 < step <= iterations)


@ORDERINGS.register(
    "connection-reordering",
    summary="the published simulated annealing over edge moves (Gleinig et al. 2023)",
    parameters=ConnectionReorderingParameters,
    searches=True,
    steps="iterations",
)
def connection_reordering(network: Network, task: Task, parameters: ConnectionReorderingParameters) -> Ordering:
    """Anneal from the start order; return the best order met, with the curve of the best objective so far.

    Where a time limit ends before annealing could begin, that is the start order.
    """
    began = time.monotonic()
    start = STARTS[parameters.start](network)
    window = paper_window(network) if parameters.window is None else parameters.window
    if task.time_limit_s is not None and not begins_within(network, began + task.time_limit_s - time.monotonic()):
        value = Scorer(network, task)(start)
        noted = ((0, time.monotonic() - began, value),)
        reported = {**asdict(parameters), "window": window, "accepted": 0, "played": 0}
        return Ordering(start, "connection-reordering", reported, task.seed, noted, truncated=True)
    search = annealer(network, task, start, window, parameters.sigma, parameters.incremental)
    curve = [(0, time.monotonic() - began, search.best)]
    deadline = math.inf if task.time_limit_s is None else began + task.time_limit_s
    over = None if task.time_limit_s is None else lambda: time.monotonic() >= deadline
    chunk, truncated = 1, False  # one iteration may take long
    for point in curve_points(parameters.iterations):
        while search.iteration < point and not truncated:
            before = time.monotonic()
            try:
                search.run(min(chunk, point - search.iteration), over)
            except KeyboardInterrupt:
                Interrupts.stop()
                deadline = 0.0
            now = time.monotonic()
            chunk = max(1, min(4 * chunk, int(chunk * SLICE_S / max(now - before, 1e-4))))
            truncated = now >= deadline and search.iteration < parameters.iterations
            if task.progress is not None:
                task.progress(search.iteration, parameters.iterations, so_far(search.best, task.objective))
        curve.append((search.iteration, time.monotonic() - began, search.best))
        if truncated:
            break
    edges, played = start[search.best_found()], search.accesses_played()
    reported = {**asdict(parameters), "window": window, "accepted": search.accepted, "played": played}
    return Ordering(edges, "connection-reordering", reported, task.seed, tuple(curve), truncated)
