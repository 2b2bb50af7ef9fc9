"""Pairs of runs that share sources: every choice by counting."""

from __future__ import annotations

import itertools


def pairs_oracle(sources: list[int], starts: list[int], groups: list[int], least: int) -> list[int]:
    """Return the mate of each run or -1: one run after the other takes the free later one it shares most with."""
    own = [set(sources[a:b]) for a, b in itertools.pairwise(starts)]
    mate = [-1] * len(own)
    for first, last in itertools.pairwise(groups):
        for run in range(first, last):
            free = [r for r in range(run + 1, last) if mate[r] < 0]
            if mate[run] < 0 and free:
                best = max(free, key=lambda r: (len(own[run] & own[r]), -r))
                if len(own[run] & own[best]) >= least:
                    mate[run], mate[best] = best, run
    return mate
