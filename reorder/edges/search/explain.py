"""Why the weighted greedy streamed what it streamed: the terms of a choice's score beside those of the next best.

A run is made once more with its choices recorded and followed; at a few of them all scores are taken anew. Equations:
cython_ext/edges/streaming.h and docs/concepts/learned-orders.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from reorder.edges.search.intervals import Items
from reorder.edges.search.streaming import FACTOR, STREAM, StreamingWeights, streaming_of

STEEPEST_TERM = 30.0  # of the sum of an item's terms but age and depth, and of a source's, as in the kernel
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A source that could be streamed. source: neuron id. served: open items that wait for it; left: targets to come.

    terms: {name: its part of the log score}: those of the source (FACTOR), 'waiting items' (log of how many wait) and
    those of the items (STREAM; the mean over the items, each by its share of the sum), and 'one far ahead': what the
    sum owes to items that weigh more than others. They add up to `score`.
    """

    source: int
    served: int
    left: int
    score: float
    terms: dict[str, float]


@dataclass(frozen=True)
class SourceChoice:
    """One choice of a run. served: share of the connections served before. chosen, other: the source and the next best.

    other: None where there was only one.
    """

    served: float
    candidates: int
    chosen: Candidate
    other: Candidate | None


@dataclass
class _Follower:
    """The state of a run, step by step, as far as scores depend on it."""

    items: Items
    slots: int
    weights: StreamingWeights
    now: int = 1
    served: int = 0
    open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        items = self.items
        self.start, self.target = items.by_source
        self.left = [set(items.source[items.start[v] : items.start[v + 1]].tolist()) for v in range(len(items.items))]
        self.unserved = np.diff(self.start).astype(np.int64)
        self.opened = np.zeros(len(items.items), np.int64)
        self.weighed = np.diff(items.start).astype(np.int64)
        self.unfinished = [sum(bool(items.item[s] >= 0) for s in sources) for sources in self.left]
        self.at_weighing = list(self.unfinished)  # unfinished sources when an item was given its weight
        self.finished = items.item < 0
        self.degree_in, self.degree_out = np.diff(items.start), np.diff(self.start)
        self.mean_in, self.mean_out = len(items.source) / len(items.items), len(items.source) / len(items.sources)
        self.depth = items.network.depth[items.items]

    def follow(self, event: int) -> None:
        if event >= 0:
            self.open.add(event)
            self.opened[event] = self.now
            self.at_weighing[event] = self.unfinished[event]
            return
        complete = self._serve(-1 - event)
        while complete:
            v = complete.pop()
            self.open.remove(v)
            self.now += 1
            s = int(self.items.own[v])
            if s >= 0:
                for t in self.target[self.start[s] : self.start[s + 1]].tolist():
                    self.unfinished[t] -= 1
                self.finished[s] = True
                complete += self._serve(s)

    def _serve(self, s: int) -> list[int]:
        waiting = [t for t in self.target[self.start[s] : self.start[s + 1]].tolist() if self._waits(t, s)]
        for t in waiting:
            self.left[t].remove(s)
            if self.left[t] and 16 * len(self.left[t]) <= 15 * self.weighed[t]:
                self.weighed[t], self.at_weighing[t] = len(self.left[t]), self.unfinished[t]
        self.unserved[s] -= len(waiting)
        self.served += len(waiting)
        return [t for t in waiting if not self.left[t]]

    def _waits(self, t: int, s: int) -> bool:
        return t in self.open and s in self.left[t]

    def choice(self, streamed: int) -> SourceChoice:
        waiting: dict[int, list[int]] = {}
        for t in self.open:
            for s in self.left[t]:
                if self.finished[s]:
                    waiting.setdefault(s, []).append(t)
        candidates = sorted(
            (self._candidate(s, np.array(sorted(at))) for s, at in waiting.items()), key=lambda one: -one.score
        )
        name = int(self.items.sources[streamed])
        chosen = next(one for one in candidates if one.source == name)
        other = next((one for one in candidates if one.source != name), None)
        return SourceChoice(self.served / len(self.items.source), len(candidates), chosen, other)

    def _candidate(self, s: int, at: npt.NDArray[np.int64]) -> Candidate:
        left, weights = self.weighed[at].astype(float), dict(zip(STREAM, self.weights.stream, strict=True))
        own = self.items.own[at]
        features = {
            "log_left": np.log(left) - 1,
            "share_left": left / self.degree_in[at],
            "log_in_degree": np.log(self.degree_in[at] / self.mean_in),
            "one_over_left": 1 / left,
            "out_degree": np.where(own >= 0, self.degree_out[np.maximum(own, 0)], 0) / self.mean_out,
            "feeds_others": (own >= 0).astype(float),
            "unfinished_share": np.array([self.at_weighing[v] for v in at]) / left,
            "age": -self.opened[at] / self.slots,
            "depth": -self.depth[at].astype(float),
        }
        parts: dict[str, Float64Array] = {name: weights[name] * value for name, value in features.items()}
        near = sum(parts[name] for name in STREAM[:-2])
        bent = np.clip(near, -STEEPEST_TERM, STEEPEST_TERM) + parts["age"] + parts["depth"]
        top = float(bent.max())
        share = np.exp(bent - top)
        log_sum = top + float(np.log(share.sum()))
        share /= share.sum()
        unserved, pending = int(self.unserved[s]), len(at)
        values = (
            np.log(unserved / pending), float(self.items.item[s] >= 0), np.log(unserved / self.mean_out),
            float(unserved == pending),
        )  # fmt: skip
        terms = {name: w * float(x) for name, w, x in zip(FACTOR, self.weights.factor, values, strict=True)}
        source = float(np.clip(sum(terms.values()), -STEEPEST_TERM, STEEPEST_TERM))
        terms["waiting items"] = float(np.log(pending))
        terms |= {name: float(share @ part) for name, part in parts.items()}
        score = source + log_sum
        terms["one far ahead"] = score - sum(terms.values())
        return Candidate(int(self.items.sources[s]), pending, unserved, score, terms)


def reasons(items: Items, slots: int, weights: StreamingWeights, count: int = 24) -> list[SourceChoice]:
    """Return up to `count` choices of the run with these slots and weights, evenly spread over it.

    O(W) to follow, and as much as the open items have left for each choice.
    """
    run = streaming_of(items, min(slots, len(items.items)), weights, record=True)
    while not run.run(1 << 20):
        pass
    events = run.events
    streams = np.flatnonzero(events < 0)
    wanted = {int(k) for k in streams[np.unique(np.linspace(0, len(streams) - 1, count).astype(int))]}
    state, choices = _Follower(items, min(slots, len(items.items)), weights), []
    for k, event in enumerate(events.tolist()):
        if k in wanted:
            choices.append(state.choice(-1 - event))
        state.follow(event)
    return choices
