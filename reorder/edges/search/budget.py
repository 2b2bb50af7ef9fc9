"""What a search may spend and what it has found: limits, progress, the best order so far and its curve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reorder.base import Ordering, Progress, Task
from reorder.edges.search.objectives import make_objective
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown
from traces.networks.network import Int64Array, Network

Int32Array = npt.NDArray[np.int32]

WIDTHS = (8, 32, 128)  # sources per batch, looked at first


def in_batches(sources: Int32Array, targets: Int32Array, edges: Int64Array, width: int) -> Int64Array:
    """Return the order with every `width` sources in a row used together, target by target. O(W log W).

    sources, targets: int32[W] by connection. An order streams a source when consecutive connections leave it; each
    such stretch counts as one source. Inside a batch a target's connections become one run; targets come in the order
    in which the given order finishes them, so the result is topological where the given order is.
    """
    source, target = sources[edges], targets[edges]
    batch = np.concatenate(([0], np.cumsum(source[1:] != source[:-1]))) // width
    w = len(edges)
    finish = np.empty(int(target.max()) + 1, np.int64)
    finish[target] = np.arange(w)  # the last one stays
    return edges[np.argsort(batch * w + finish[target], kind="stable")]


OFFER = 2  # counts that decoding an order and counting it take (measured on ten million connections)


class Scorer:
    """The task's objective on orders of one network, without checking them again: for the inside of searches."""

    def __init__(self, network: Network, task: Task) -> None:
        self._network, self._task = network, task
        self.objective = make_objective(task.objective)
        self._width = WIDTHS[0]  # of a batch of sources, where it was best last
        self._sources, self._targets = network.sources.astype(np.int32), network.targets.astype(np.int32)

    def __call__(self, edges: Int64Array) -> float:
        """O(W) per term of the objective."""
        return float(self.objective.of_arrays(self._sources[edges], self._targets[edges], self._network, self._task))

    def of_part(self, sources: Int32Array, targets: Int32Array, outputs: npt.NDArray[np.uint8]) -> float:
        """Return the objective of some connections alone, whose results in `outputs` (uint8[N]) are to be written."""
        return float(self.objective.of_arrays(sources, targets, self._network, self._task, outputs))

    def polished(self, edges: Int64Array) -> tuple[Int64Array, float]:
        """Return the order and its value; where runs count too, the best of it and of it in batches of sources.

        The width of a batch goes up and down while that pays, from the best of a few widths and the last one found.
        """
        value = self(edges)
        if not self.objective.runs:
            return edges, value
        forms: dict[int, tuple[float, Int64Array]] = {}

        def at(width: int) -> float:
            if width not in forms:
                batched = in_batches(self._sources, self._targets, edges, width)
                forms[width] = self(batched), batched
            return forms[width][0]

        width = min((self._width, *WIDTHS), key=at)
        for factor in (0.8, 1.25):
            while at(further := max(2, round(width * factor))) < at(width):
                width = further
        self._width = width
        batched_value, batched = forms[width]
        return (batched, batched_value) if batched_value < value else (edges, value)


class Interrupts:
    """Whether Ctrl-C ends a search alone, which then returns its best order, or whatever goes on (the default).

    searches: those under way, the outermost first, while it does. stopped: whether one was; every budget is over then.
    """

    kept: ClassVar[bool] = False
    stopped: ClassVar[bool] = False
    searches: ClassVar[list[Best]] = []

    @classmethod
    @contextmanager
    def keeping_the_best(cls) -> Iterator[None]:
        """Let Ctrl-C end searches inside the block, not the block."""
        cls.kept = True
        try:
            yield
        finally:
            cls.kept = cls.stopped = False
            cls.searches.clear()

    @classmethod
    def stop(cls) -> None:
        """Let every search end with what it has, after Ctrl-C. Raises KeyboardInterrupt where that ends everything."""
        if not cls.kept:
            raise KeyboardInterrupt
        cls.stopped = True

    @classmethod
    def best(cls, method: str) -> Ordering:
        """Return the best order of the search that was interrupted. Raises KeyboardInterrupt where there is none."""
        cls.stop()
        found = next((each for each in cls.searches if each.edges is not None), None)
        if found is None:
            raise KeyboardInterrupt
        return found.ordering(method, found.parameters, True)


@dataclass
class Budget:
    """A clock that started when the search did.

    Measurements on a busy machine put CPU seconds in place of `clock`.
    """

    limit_s: float | None = None
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = type(self).clock()

    @staticmethod
    def clock() -> float:
        return time.perf_counter()

    def spent(self) -> float:
        return type(self).clock() - self.started

    def left(self) -> float:
        """Seconds until the limit; infinite without one, none after Ctrl-C."""
        if Interrupts.stopped:
            return 0.0
        return float("inf") if self.limit_s is None else self.limit_s - self.spent()

    def less(self, seconds: float) -> Budget:
        """Return the same clock with a limit that ends so many seconds earlier."""
        other = Budget(None if self.limit_s is None else self.limit_s - seconds)
        other.started = self.started
        return other

    @property
    def over(self) -> bool:
        return self.left() <= 0


@dataclass
class Best:
    """The best order offered so far, with the curve (search steps, seconds, objective) of how it came about."""

    score: Scorer
    budget: Budget
    task: Task
    edges: Int64Array | None = None
    value: float = float("inf")
    parameters: dict[str, Any] = field(default_factory=dict)
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    work: int = 0
    counting: float = 0.0  # seconds that the last order took to be counted

    def __post_init__(self) -> None:
        if Interrupts.kept:
            Interrupts.searches.append(self)

    @property
    def offer_s(self) -> float:
        """Seconds that one more order takes to be made and counted, as the last count went."""
        return OFFER * self.counting

    @property
    def has_time(self) -> bool:
        """Whether the limit leaves time for one more order."""
        return self.budget.left() > self.offer_s

    def offer(self, edges: Int64Array, **parameters: Any) -> float:
        """Score an order, keep it if it is better than every one before, and return its value (`Scorer.polished`).

        parameters: how it came about, for the result's parameters.
        """
        if self.edges is not None and np.array_equal(edges, self.edges):
            return self.value  # as the file's order often is two-optimal's; a look costs a thirtieth of a count
        began = self.budget.spent()
        edges, value = self.score.polished(edges)
        self.counting = self.budget.spent() - began
        if value < self.value:
            self.edges, self.value, self.parameters = edges, value, parameters
            self.curve.append((self.work, self.budget.spent(), value))
        return value

    def adopt(self, made: Ordering, work: int, began: float, **parameters: Any) -> None:
        """Take over what a search with a curve of its own found after `work` units; it started at second `began`."""
        for done, seconds, value in made.curve:
            if value < self.value:
                self.edges, self.value, self.parameters = made.edges, value, parameters
                self.curve.append((self.work + done, began + seconds, value))
        self.work += work

    @contextmanager
    def reporting(self, progress: Progress | None) -> Iterator[None]:
        """Report the task's progress to `progress` inside the block."""
        before = self.task
        self.task = replace(before, progress=progress)
        try:
            yield
        finally:
            self.task = before

    def ordering(self, method: str, parameters: dict[str, Any], truncated: bool) -> Ordering:
        """Return the best order as the result of `method`; the curve ends with a point at the work done in all."""
        assert self.edges is not None
        curve = (*self.curve, (self.work, self.budget.spent(), self.value))
        return Ordering(self.edges, method, parameters, self.task.seed, curve, truncated)


NEAR = 1.1  # times the best order's objective, from which more settings of a construction gain nothing


def worth_more(best: Best) -> bool:
    """Whether a construction's orders so far are near the best one of the portfolio that asks for it, if one does."""
    return best.task.prepared is None or best.value <= NEAR * best.task.prepared.least


def so_far(value: float, objective: Any) -> str:
    """Say what a search has found: I/Os; nothing of objectives that have no unit."""
    return f"best {value:,.0f} I/Os" if objective == "io" else "searching"


def part(progress: Progress, begin: float, end: float) -> Progress:
    """Return a progress whose whole is the part from `begin` to `end` (shares) of the given one."""

    def report(done: int, total: int | None, text: str) -> None:
        progress(round(1000 * (begin + (end - begin) * (done / total if total else 0))), 1000, text)

    return report


def at_least(name: str, value: float | None, least: int) -> None:
    """Refuse a parameter that is not a finite number of at least `least`; None stands for automatic."""
    given = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (given and least <= value < float("inf")):
        raise InputError(f"{name} must be a finite number of at least {least}, not {shown(value)}")


def check_counts(parameters: Any, **least: int) -> None:
    """Refuse parameters that are not whole numbers of at least so much; None stands for automatic."""
    for name, smallest in least.items():
        if getattr(parameters, name) is not None:
            whole_number(getattr(parameters, name), name, smallest)
