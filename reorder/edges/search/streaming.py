"""The weighted greedy over residency intervals: its weights, where they come from, and one run of it.

The rule and what each weight multiplies: cython_ext/edges/streaming.h and docs/concepts/learned-orders.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.edges.streaming import _Streaming
from reorder.edges.search.budget import Budget
from reorder.edges.search.intervals import IntervalState, Items
from reorder.edges.search.locality import neuron_coordinates

# What a weight multiplies, in the order of the kernel.
STREAM = (
    "log_left", "share_left", "log_in_degree", "one_over_left", "out_degree", "feeds_others", "unfinished_share",
    "age", "depth",
)  # fmt: skip
FACTOR = ("log_unserved_over_pending", "computed", "log_unserved", "last_use")
OPEN = (
    "hot_share", "resident_share", "hot_by_unserved", "cold_by_unserved", "in_degree", "out_degree", "hot", "resident",
    "waiting", "early", "missing_share", "missing",
)  # fmt: skip
PLAIN = {"log_left": -1.0, "age": 2.0, "hot": 2.0, "resident": 2.0, "in_degree": -1.0, "early": -1.0, "missing": 0.9}
PLAIN_EARLY = 0.1

# Items looked at per opening, candidates per streamed source: all of them while that takes some 20 ms, more for more
# connections, so that time stays linear in the connections (measured).
CANDIDATE_BUDGET, CANDIDATES_PER_CONNECTION, LEAST_CANDIDATES = 4_000_000, 60, 64
WIDEST, WIDEST_PER_SLOT = 8192, 64  # targets that wait for a source that still makes them warmer
TRIED, PER_ITEM = 100_000, 20  # connections over all sets of weights tried, an item counting as 20: about 30 ms
# Kinds of networks: slots against items of one depth, connections into an item.
AMPLE, SPARSE = 2.2, 12
SOURCES_AT_ONCE = 1 << 14  # between two looks at the rival, at most
# A further set of weights is given up once it has finished this share of the items at so many times the cost.
EVALUATED_FROM, LOSING, CHECKS = 0.25, 1.02, 16


@dataclass(frozen=True)
class StreamingWeights:
    """One set of weights. Each tuple is as long as the names above.

    early: share of the slots whose items may open before all of their sources have. made_with: how, on what and with
    which seeds it was trained, for the record.
    """

    name: str
    stream: tuple[float, ...]
    factor: tuple[float, ...]
    open: tuple[float, ...]
    early: float
    made_with: Mapping[str, Any]


@cache
def plain_weights() -> StreamingWeights:
    """Return plain weights: what is nearly done first, older first; open what shares most with the open ones."""
    stream, factor, opened = (tuple(PLAIN.get(name, 0.0) for name in names) for names in (STREAM, FACTOR, OPEN))
    return StreamingWeights("plain", stream, factor, opened, PLAIN_EARLY, {})


@cache
def shipped_weights() -> tuple[StreamingWeights, ...]:
    """Return the sets that come with this program, the most general first."""
    source = files("reorder.edges.search") / "weights.json"
    names = {"stream": STREAM, "factor": FACTOR, "open": OPEN}
    return tuple(
        StreamingWeights(**one | {part: tuple(float(one[part][name]) for name in names[part]) for part in names})
        for one in json.loads(source.read_text())["sets"]
    )


def kind_of(items: Items, slots: int) -> str:
    """Return the kind of training networks that a network is most like."""
    if neuron_coordinates(items) is not None:
        return "local"
    degree = items.network.in_degree[items.items]
    # RadiX-Nets, of equal degrees: these weights found 10 % less than those for dense ones
    if int(degree.min()) == int(degree.max()) > 1 or has_spare_slots(items, slots):
        return "ample"
    return "sparse" if is_sparse(items) else "dense"


def has_spare_slots(items: Items, slots: int) -> bool:
    """Return whether the slots hold nearly half of the items of one depth, or more."""
    return bool(AMPLE * slots > len(items.items) / len(np.unique(items.network.depth[items.items])))


def is_sparse(items: Items) -> bool:
    """Return whether there are few connections into an item."""
    return len(items.edges) <= SPARSE * len(items.items)


def fitting(
    sets: tuple[StreamingWeights, ...], items: Items, policy: str, slots: int, tried: int = TRIED, most: int = 3
) -> list[StreamingWeights]:
    """Return the sets worth a try, the most promising first: of the policy before others, then of the kind of network.

    As many as take about as long as `tried` connections (TRIED: 30 ms), at least one, two on a local network.
    """
    kind = kind_of(items, slots) if len(sets) > 1 else ""
    least = 2 if kind == "local" else 1
    most = min(most, max(least, tried // (len(items.edges) + PER_ITEM * len(items.items) + 1)))
    return sorted(
        sets,
        key=lambda one: (
            one.made_with.get("policy", policy) != policy,
            one.made_with.get("networks", kind) != kind,
            one.made_with.get("networks") == "local",
        ),
    )[:most]


@dataclass
class Rival:
    """How costs rose in the best run so far with so many slots: (items finished, sources loaded) on the way."""

    finished: list[int] = field(default_factory=lambda: [0])
    loads: list[int] = field(default_factory=lambda: [0])

    def beats(self, finished: int, loads: int, items: int) -> bool:
        """Whether a run with so many loads after so many items is too far behind to go on."""
        if len(self.loads) < 2 or finished < EVALUATED_FROM * items:
            return False
        return loads > LOSING * float(np.interp(finished, self.finished, self.loads))


@dataclass(frozen=True)
class Ends:
    """What may end a run early: the budget is over, or the rival clearly wins.

    rival: the best run so far with these slots; a run becomes it when it ends with fewer loads. cut: where the budget
    is over first, what was done so far is completed instead.
    """

    budget: Budget | None = None
    rival: Rival | None = None
    cut: bool = False

    @property
    def over(self) -> bool:
        return self.budget is not None and self.budget.over


NEVER = Ends()


def streamed(items: Items, slots: int, weights: StreamingWeights, ends: Ends = NEVER) -> IntervalState | None:
    """Return what `stream_items` does, kept with the items: a portfolio and its search make each state once."""
    key = (min(slots, len(items.items)), weights.name, weights.stream)
    if key in items.known:
        return items.known[key]
    state = stream_items(items, slots, weights, ends)
    if state is not None and not (ends.cut and ends.over):
        items.known[key] = state
    return state


def completed(
    items: Items, slots: int, opened: npt.NDArray[np.int32], finished: npt.NDArray[np.int32]
) -> IntervalState:
    """Return the state that begins with these opens, and finishes of some of them, and goes on in order of depth.

    An item that opened before a source of it was finished opens with those left.
    """
    n = len(items.items)
    done = np.zeros(n, np.bool_)
    done[finished] = True
    made_by = items.item[items.source]  # of each connection; -1: an input of the network
    waits = np.zeros(n, np.bool_)
    waits[items.target[(made_by >= 0) & ~done[made_by]]] = True
    opened = opened[~waits[opened]]
    left = np.ones(n, np.bool_)
    left[opened] = False
    later = np.flatnonzero(left).astype(np.int32)  # items are numbered by depth
    return IntervalState(
        np.concatenate((opened, later)), np.concatenate((finished, np.sort(opened[~done[opened]]), later)), slots
    )


def streaming_of(items: Items, slots: int, weights: StreamingWeights) -> _Streaming:
    """Return a run of the greedy that has not begun."""
    n, w = len(items.items), len(items.edges)
    start, target = items.by_source
    window = max(LEAST_CANDIDATES, (CANDIDATE_BUDGET + CANDIDATES_PER_CONNECTION * w) // n)
    return _Streaming(
        items.start, items.source, start, target, items.own, items.item, items.depth, slots, int(slots * weights.early),
        np.array(weights.stream), np.array(weights.factor), np.array(weights.open), window,
        max(WIDEST, WIDEST_PER_SLOT * slots), CANDIDATE_BUDGET,
    )  # fmt: skip


def stream_items(items: Items, slots: int, weights: StreamingWeights, ends: Ends = NEVER) -> IntervalState | None:
    """Return the state of one run of the greedy; None if `ends` ended it."""
    rival = ends.rival
    n = len(items.items)
    slots = min(slots, n)
    run = streaming_of(items, slots, weights)
    own = Rival()
    at_once = SOURCES_AT_ONCE if rival is None else max(64, min(SOURCES_AT_ONCE, len(items.sources) // CHECKS))
    over = None if ends.budget is None else lambda: ends.over
    while not run.run(at_once, over):
        if ends.over:
            return completed(items, slots, *run.so_far) if ends.cut else None
        own.finished.append(run.finished)
        own.loads.append(run.loads)
        if rival is not None and rival.beats(run.finished, run.loads, n):
            return None
    opens, drops = run.state()
    if rival is not None and (len(rival.loads) < 2 or run.loads < rival.loads[-1]):
        rival.finished, rival.loads = [*own.finished, n], [*own.loads, run.loads]
    return IntervalState(opens, drops, slots)
