"""The weighted greedy by its definition: every choice of the kernel is judged by scores taken from scratch."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np

from reorder.edges.search.streaming import FACTOR, OPEN, STREAM, StreamingWeights


class Stream:
    """Replays the choices of a run and says how far below the best score each one was. Slow and obvious."""

    def __init__(self, items, slots, weights, early):
        self.slots, self.weights, self.early = slots, weights, early
        self.n = len(items.items)
        self.own, self.item = items.own.tolist(), items.item.tolist()
        self.depth = items.network.depth[items.items].tolist()
        self.sources_of = [items.source[items.start[v] : items.start[v + 1]].tolist() for v in range(self.n)]
        self.targets_of = [[v for v in range(self.n) if s in self.sources_of[v]] for s in range(len(items.sources))]
        w = len(items.source)
        self.mean_in, self.mean_out = w / self.n, w / len(items.sources)
        self.state = ["waiting"] * self.n
        self.left = [set(sources) for sources in self.sources_of]
        self.unserved = [set(targets) for targets in self.targets_of]
        self.weighed = [0] * self.n
        self.weight_terms = [0.0] * self.n
        self.opened = [0] * self.n
        self.since = [None] * self.n  # stage at which it could open first
        self.solid = [False] * self.n
        self.now = 1
        self.opens, self.drops = [], []
        self._look()

    # what follows from the state

    def finished(self, s):
        return self.item[s] < 0 or self.state[self.item[s]] == "finished"

    def resident(self, s):
        return self.item[s] >= 0 and self.state[self.item[s]] == "open"

    def missing(self, v):
        """Sources of v that are neither finished nor open and solid."""
        return sum(not self.finished(s) and not self.solid[self.item[s]] for s in self.sources_of[v])

    def pending(self, s):
        return [t for t in self.unserved[s] if self.state[t] == "open"]

    def has_open_source(self, v):
        return any(self.resident(s) for s in self.sources_of[v])

    def _look(self):
        """Settle what is solid; note when waiting items could open first, early ones and ready ones apart."""
        changed = True
        while changed:
            changed = False
            for v in range(self.n):
                if self.state[v] == "open" and not self.solid[v] and self.missing(v) == 0:
                    self.solid[v] = changed = True
        for v in range(self.n):
            if self.state[v] != "waiting":
                continue
            kind = "ready" if self.missing(v) == 0 else "early" if self.has_open_source(v) else None
            if kind == "early" and self.since[v] is None and self.early > 0:
                self.since[v] = ("early", self.now)
            if kind == "ready" and (self.since[v] is None or self.since[v][0] == "early"):
                self.since[v] = ("ready", self.now)

    # scores

    def weigh(self, v):
        w, left = dict(dict(zip(STREAM, self.weights.stream, strict=True))), len(self.left[v])
        degree = len(self.sources_of[v])
        s = self.own[v]
        x = w["log_left"] * (log(left) - 1) + w["share_left"] * left / degree + w["one_over_left"] / left
        x += w["log_in_degree"] * log(degree / self.mean_in)
        if s >= 0:
            x += w["out_degree"] * len(self.targets_of[s]) / self.mean_out + w["feeds_others"]
        x += w["unfinished_share"] * sum(not self.finished(s) for s in self.sources_of[v]) / left
        self.weighed[v] = left
        self.weight_terms[v] = max(-30, min(30, x))

    def offset(self, v):
        w = dict(zip(STREAM, self.weights.stream, strict=True))
        return -w["age"] * self.opened[v] / self.slots - w["depth"] * self.depth[v]

    def score(self, s):
        """log of the score of streaming s; -inf if nobody open waits for it or it is not finished."""
        pending = self.pending(s)
        if not pending or not self.finished(s):
            return -inf
        w, unserved = dict(zip(FACTOR, self.weights.factor, strict=True)), len(self.unserved[s])
        x = w["log_unserved_over_pending"] * log(unserved / len(pending)) + w["log_unserved"] * log(
            unserved / self.mean_out
        )
        x += w["computed"] * (self.item[s] >= 0) + w["last_use"] * (unserved == len(pending))
        exponents = [self.weight_terms[t] + self.offset(t) for t in pending]
        top = max(exponents)
        return max(-30, min(30, x)) + top + log(sum(exp(e - top) for e in exponents))

    def open_score(self, v):
        w, degree, h = (
            dict(zip(OPEN, self.weights.open, strict=True)),
            len(self.sources_of[v]),
            dict.fromkeys("abcd", 0.0),
        )
        for s in self.sources_of[v]:
            resident, hot = self.resident(s), bool(self.pending(s))
            share = 1 / len(self.unserved[s]) if self.unserved[s] else 0.0
            h["a"] += hot and not resident
            h["b"] += resident
            h["c"] += share if hot or resident else 0.0
            h["d"] += 0.0 if hot or resident else share
        s, missing = self.own[v], self.missing(v)
        x = w["hot_share"] * h["a"] / degree + w["resident_share"] * h["b"] / degree
        x += w["hot_by_unserved"] * h["c"] + w["cold_by_unserved"] * h["d"] + w["in_degree"] * degree / self.mean_in
        x += w["out_degree"] * (len(self.targets_of[s]) / self.mean_out if s >= 0 else 0.0)
        x += (w["hot"] * h["a"] + w["resident"] * h["b"]) / self.mean_in
        x += w["waiting"] * min(4.0, (self.now - self.since[v][1]) / self.slots)
        if missing:
            x += w["early"] + w["missing_share"] * missing / degree + w["missing"] * missing / self.mean_in
        return x

    # events

    def may_open(self):
        waiting = [v for v in range(self.n) if self.state[v] == "waiting"]
        ready = [v for v in waiting if self.missing(v) == 0]
        n_early = sum(self.state[v] == "open" and not self.solid[v] for v in range(self.n))
        early = [v for v in waiting if self.missing(v) > 0 and self.since[v]] if n_early < self.early else []
        return ready + early if ready and self.state.count("open") < self.slots else []

    def open(self, v):
        """Open v; return how far its score is below the best."""
        choices = self.may_open()
        assert v in choices
        behind = max(self.open_score(u) for u in choices) - self.open_score(v)
        self.opened[v] = self.now
        self.weigh(v)
        self.state[v] = "open"
        self.opens.append(v)
        self._look()
        return behind

    def stream(self, s):
        """Stream s past the open items; return how far its score is below the best."""
        assert not self.may_open(), "a slot is free"
        behind = max(self.score(x) for x in range(len(self.targets_of))) - self.score(s)
        complete = self._serve(s)
        while complete:
            v = complete.pop()
            self.state[v] = "finished"
            self.drops.append(v)
            self.now += 1
            if self.own[v] >= 0:
                complete += self._serve(self.own[v])
        self._look()
        return behind

    def _serve(self, s):
        pending = self.pending(s)
        for t in pending:
            self.left[t].remove(s)
            self.unserved[s].remove(t)
        for t in pending:
            if self.left[t] and 16 * len(self.left[t]) <= 15 * self.weighed[t]:
                self.weigh(t)
        return [t for t in pending if not self.left[t]]


def random_weights(rng: np.random.Generator, spread: float = 1.0):
    """Weights of any sign."""
    parts = (tuple(rng.normal(0, spread, len(names)).tolist()) for names in (STREAM, FACTOR, OPEN))
    return StreamingWeights("random", *parts, rng.random(), {})
