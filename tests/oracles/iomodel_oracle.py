"""The I/O model of Gleinig et al. 2023 (section II, Algorithm 1), written as plainly as possible.

Fast memory is a Python list scanned in full; nothing here is fast, and nothing is shared with the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def count(
    connections: Sequence[tuple[int, int]],
    outputs: Sequence[int],
    memory: int,
    policy: str,
    pinning: str = "literal",
    moves: list[tuple[int, int, str]] | None = None,
) -> dict[str, int]:
    """Return reads_neurons, writes_live, writes_outputs, evictions and skips for connections in processing order.

    moves: a list to which every load and store is added as (step, neuron, what was counted).
    """
    capacity = memory - 1
    stream = [neuron for connection in connections for neuron in connection]
    uses: dict[int, list[int]] = {}
    for position, neuron in enumerate(stream):
        uses.setdefault(neuron, []).append(position)
    slots: list[int] = []
    last_access: dict[int, int] = {}
    dirty: set[int] = set()
    pointer = 0
    done = {"reads_neurons": 0, "writes_live": 0, "writes_outputs": 0, "evictions": 0, "skips": 0}

    def note(now: int, neuron: int, what: str) -> None:
        done[what] += 1
        if moves is not None:
            moves.append((now // 2, neuron, what))

    def next_use(neuron: int, now: int) -> float:
        return min((position for position in uses[neuron] if position > now), default=math.inf)

    def access(neuron: int, now: int, pinned: set[int]) -> None:
        nonlocal pointer
        if neuron not in slots:
            if len(slots) < capacity:
                slots.append(neuron)
            else:
                candidates = [other for other in slots if other not in pinned]
                if policy == "lru":
                    victim = min(candidates, key=lambda other: last_access[other])
                elif policy == "min":
                    victim = max(candidates, key=lambda other: next_use(other, now))
                else:
                    while slots[pointer] in pinned:
                        pointer = (pointer + 1) % capacity
                        done["skips"] += 1
                    victim = slots[pointer]
                    pointer = (pointer + 1) % capacity
                done["evictions"] += 1
                if victim in dirty:
                    if next_use(victim, now) < math.inf:
                        note(now, victim, "writes_live")
                    elif victim in outputs:
                        note(now, victim, "writes_outputs")
                    dirty.discard(victim)
                slots[slots.index(victim)] = neuron
            note(now, neuron, "reads_neurons")
        last_access[neuron] = now

    for step, (a, b) in enumerate(connections):
        access(a, 2 * step, {b} if pinning == "pin_both" else set())
        access(b, 2 * step + 1, {a})
        dirty.add(b)
    for neuron in sorted(slots):
        if neuron in dirty and neuron in outputs:
            note(2 * len(connections), neuron, "writes_outputs")
    return done


def least_memory_without_extra(connections: Sequence[tuple[int, int]]) -> int:
    """Return the least M with which this order reads and writes nothing twice: most values alive at once, plus one."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, connection in enumerate(connections):
        for neuron in connection:
            first.setdefault(neuron, step)
            last[neuron] = step
    return 1 + max(sum(first[n] <= step <= last[n] for n in first) for step in range(len(connections)))
