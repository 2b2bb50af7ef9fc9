"""Runs that are near: every choice by counting, the window a list."""

from __future__ import annotations

import itertools


def near_oracle(
    sources: list[int], targets: list[int], starts: list[int], groups: list[int], capacity: int
) -> list[int]:
    """Return the order of runs, group by group: next the first run with most sources in the window."""
    window: list[int] = []  # the one used last at the end
    found = []
    for first, last in itertools.pairwise(groups):
        left = list(range(first, last))
        while left:
            run = max(left, key=lambda r: (sum(s in window for s in sources[starts[r] : starts[r + 1]]), -r))
            left.remove(run)
            found.append(run)
            for neuron in (*sources[starts[run] : starts[run + 1]], targets[starts[run]]):
                if neuron in window:
                    window.remove(neuron)
                window.append(neuron)
                window = window[-capacity:]
    return found
