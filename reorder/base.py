"""What an edge ordering is, what it is asked for, and the registry of methods that make one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import LRU, MIN, PINNING_CODES, POLICY_CODES
from traces.base.errors import InputError, shown
from traces.base.progress import Progress
from traces.base.registry import Registry
from traces.base.reprs import OneLineRepr
from traces.networks.checks import check_order
from traces.networks.network import Network, ReadOnlyCopies

__all__ = ["ORDERINGS", "PINNINGS", "POLICIES", "Make", "Method", "Ordering", "Progress", "Task", "check_order"]

POLICIES = tuple(POLICY_CODES)
PINNINGS = tuple(PINNING_CODES)


@dataclass(frozen=True)
class Task:
    """What an ordering method is asked for: the fast memory, the objective, the seed and the budget.

    memory: M, neuron values plus the connection in hand (Gleinig et al. 2023, section II); at least 3.
    objective: name or object of reorder.edges.search.objectives; 'io' is reads plus writes under `policy`.
    time_limit_s: wall-clock limit; None: the number of search steps decides (then the result is deterministic).
    """

    memory: int
    policy: str = "min"
    pinning: str = "literal"
    objective: Any = "io"
    seed: int = 0
    time_limit_s: float | None = None
    progress: Progress | None = None
    prepared: Any = None  # reorder.edges.search.intervals.Items of the network where a portfolio has made them already

    @property
    def sees_future(self) -> bool:
        """Whether the policy evicts by what comes later (Belady's MIN)."""
        return POLICY_CODES[self.policy] == MIN

    @property
    def keeps_touched(self) -> bool:
        """Whether the policy evicts what was touched longest ago (LRU)."""
        return POLICY_CODES[self.policy] == LRU


@dataclass(frozen=True, eq=False)
class Ordering(ReadOnlyCopies, OneLineRepr):
    """An order of work. ``edges[k]`` is the index (in the network's own order) of the k-th processed connection.

    method, parameters: what made it. curve: best-so-far points (search steps, seconds, objective) of a search, empty
    for a construction.
    truncated: a wall-clock limit ended the search, so another run may give another result.
    """

    edges: npt.NDArray[np.int64]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    curve: tuple[tuple[int, float, float], ...] = ()
    truncated: bool = False

    __repr__ = OneLineRepr.__repr__

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges)
        if edges.ndim != 1:
            raise InputError(f"edges: connections in order are wanted, int[W], not {shown(self.edges)}")
        if edges.flags.writeable or edges.base is not None:  # an order stays what was checked
            edges = edges.copy()
            edges.setflags(write=False)
        object.__setattr__(self, "edges", edges)

    def _repr_fields(self) -> dict[str, object]:
        best = self.curve[-1][2] if self.curve else None
        return {
            "method": self.method, "connections": len(self.edges), "objective": best, "seed": self.seed,
            **dict(self.parameters), "truncated": self.truncated or None,
        }  # fmt: skip


Make = Callable[[Network, Task, Any], Ordering]
"""What makes an order: a function of a network, a task and its own frozen parameters (None if it takes none)."""

F = TypeVar("F", bound=Make)


@dataclass(frozen=True)
class Method:
    """An ordering method and what it declares.

    searches: it spends a budget and notes a curve; without it, the method is a construction.
    portfolio: where `auto` tries it with its default parameters, lower first; None: it does not.
    whole_rows: its orders keep the connections into each neuron side by side, so row layouts hold them.
    blocking: tiles of fixed shape, what a kernel writer does by hand: orders that search are compared with it.
    only_local: without locality (reorder.edges.search.locality) it has nothing to go by.
    extra: the extra of this distribution that it needs; None: it needs none.
    suits: whether it can order a network at all; None: every network.
    tries: names of the other methods that it may take an order from; None: it asks none.
    chooses: it picks among the other methods; objectives of a machine or a processor have a chooser of their own, which
    takes its place.
    steps: its parameter that says how many steps it searches for; None: it has none.
    effort: microseconds per connection that a construction takes, roughly: choosers in a hurry begin with low ones.
    local_effort: the same with locality, where it takes much more; None: it does not.
    """

    make: Make
    searches: bool = False
    portfolio: float | None = None
    only_local: bool = False
    extra: str | None = None
    suits: Callable[[Network], bool] | None = None
    whole_rows: bool = False
    blocking: bool = False
    tries: Callable[[], Iterable[str]] | None = None
    chooses: bool = False
    steps: str | None = None
    effort: float = 0.1
    local_effort: float | None = None

    def __call__(self, network: Network, task: Task, parameters: Any) -> Ordering:
        """Make an order whose edges are not checked: for portfolios and tests; others call reorder.order.order."""
        made = self.make(network, task, parameters)
        if not isinstance(made, Ordering):
            name = getattr(self.make, "__qualname__", type(self.make).__name__)
            raise InputError(
                f"the ordering method {name} of {self.make.__module__} returned {shown(made)}, no Ordering"
            )
        return made


class Orderings(Registry[Method]):
    """Name -> method; what a function is registered with besides its name is what it declares."""

    def register(self, name: str, *, summary: str, parameters: type | None = None, **declared: Any) -> Callable[[F], F]:
        """Return a decorator that adds a function under `name` and leaves it as it is. declared: fields of Method."""

        def add(make: F) -> F:
            method = Method(make, **declared)
            add_method = super(Orderings, self).register
            add_method(name, summary=summary, parameters=parameters, module=make.__module__)(method)
            return make

        return add


ORDERINGS = Orderings("ordering", "edgewatt.orderings", folder="reorder.edges.methods")
