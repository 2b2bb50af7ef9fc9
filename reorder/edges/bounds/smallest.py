"""The smallest memory that runs a network with W + N reads and S writes (question 2 of Gleinig et al. 2023).

For a given order it is exact (Theorem 2): no value may leave between its first and its last connection, so M - 1 is the
most values that lie there at once. For a network it is hard: orders found by search bound it from above, proofs that a
memory is too small from below.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from reorder.base import ORDERINGS, Ordering, Progress
from reorder.edges.bounds.bounds import cores, lower_bound
from reorder.order import order as make_order
from traces.networks.checks import check_order
from traces.networks.network import Network
from traces.networks.processing import widest_bag

LEAST = 3  # a connection and the two values it joins
_CHEAP = 1 << 30  # operations of a bound: about a second
_QUICK_METHODS = ("two-optimal", "depth-first", "by-source", "early-outputs")


@dataclass(frozen=True, eq=False)
class SmallestMemory:
    """memory: the least M at which an order with W + N + S I/Os is known, and `ordering`, which has them.

    lower_bound: no order has them with less; argument: why. exact: whether the two meet. searched: M -> the least M of
    the order that a search for M found.
    """

    memory: int
    ordering: Ordering
    lower_bound: int
    argument: str
    searched: dict[int, int]

    @property
    def exact(self) -> bool:
        return self.memory == self.lower_bound

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the order as JSON values."""
        return {
            "memory": self.memory,
            "method": self.ordering.method,
            "lower_bound": self.lower_bound,
            "argument": self.argument,
            "exact": self.exact,
            "searched": {str(memory): needs for memory, needs in self.searched.items()},
        }


def least_memory(network: Network, order: Any) -> int:
    """Return the least M with which an order has W + N + S I/Os under MIN: exact. order: an Ordering or int[W]."""
    edges = check_order(network, getattr(order, "edges", order))
    return max(1 + widest_bag(network.sources[edges], network.targets[edges], network.n_neurons), LEAST)


def smallest_memory(
    network: Network,
    order: Any = None,
    *,
    method: str | None = None,
    seed: int = 0,
    moves: int | None = 20_000,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> SmallestMemory:
    """Return the least M at which an order with W + N + S I/Os is known, and a proved lower bound on it.

    order: an Ordering or int[W]: M is then exact for it, and nothing is searched. method: orders of this method alone
    (default: some constructions, then `auto`, which searches with `moves` steps for each M tried). time_limit_s: of all
    searches together, which share what is left of it. Bisection between the lower bound and what is known: about log2
    of their distance searches.
    Raises InputError for an order of another network and an unknown method.
    """
    least, argument = _proved(network)
    if order is not None:
        given = order if isinstance(order, Ordering) else Ordering(check_order(network, order), "given")
        return SmallestMemory(least_memory(network, given), given, least, argument, {})
    if method is not None and method not in ORDERINGS:
        ORDERINGS[method]  # raises, with a suggestion
    searched: dict[int, int] = {}
    began = time.perf_counter()

    def share(of: int) -> float | None:
        return None if time_limit_s is None else max(1e-3, (time_limit_s + began - time.perf_counter()) / of)

    names = (method,) if method is not None else _QUICK_METHODS
    most = int(network.touched.sum()) + 1
    first = [_try(network, name, most, seed, moves, share(1)) for name in names]
    best, memory = min(first, key=lambda tried: tried[1])
    low, high = least, memory
    while low < high:
        middle = (low + high) // 2
        ordering, needs = _try(network, method or "auto", middle, seed, moves, share((high - low).bit_length()))
        searched[middle] = needs
        if needs < memory:
            best, memory = ordering, needs
        low, high = (low, min(middle, needs)) if needs <= middle else (middle + 1, high)
        if progress is not None:
            progress(len(searched), None, f"M {memory} known, at least {least}")
        if method is not None and not ORDERINGS[method].item.searches:
            break  # its order does not depend on M
    return SmallestMemory(memory, best, least, argument, searched)


def _try(
    network: Network, method: str, memory: int, seed: int, moves: int | None, time_limit_s: float | None
) -> tuple[Ordering, int]:
    steps = ORDERINGS[method].item.steps
    parameters: dict[str, Any] = {} if steps is None or moves is None else {steps: moves}
    memory = max(memory, LEAST)
    ordering = make_order(network, method, memory=memory, seed=seed, time_limit_s=time_limit_s, **parameters)
    return ordering, least_memory(network, ordering)


def _proved(network: Network) -> tuple[int, str]:
    """Return a lower bound on M and its argument: below it, every order is proved to have more I/Os."""
    core = int(cores(network).max(initial=0))
    low, argument = LEAST, "a connection and the two values it joins"
    if core + 2 > low:
        low, argument = core + 2, f"a part of the network has all degrees at least {core}"
    high = int(network.touched.sum()) + 2
    while low < high:  # the bounds fall as M grows; each one that is above W + N + S is a proof of its own
        middle = (low + high) // 2
        bound = lower_bound(network, middle, _CHEAP)
        if bound.extra:
            low, argument = middle + 1, f"with M = {middle}, at least {bound.extra} I/Os more ({bound.argument})"
        else:
            high = middle
    return low, argument
