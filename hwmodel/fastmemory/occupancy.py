"""Which values are in fast memory at each step: a plain pass over an order, for pictures; counts as in `iomodel`."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.work.checks import checked_memory, policy_codes, processing_arrays
from traces.work.network import Network

KINDS = ("empty or dead", "input value", "partial sum", "finished hidden value")
EMPTY, INPUT, PARTIAL, FINISHED = range(4)


@dataclass(frozen=True, eq=False)
class Occupancy:
    """What one order does to fast memory.

    slots: uint8[C', T], the kind (index into KINDS) in each drawn slot at each of T moments. moments: int64[T],
    positions. reads, writes: int64[N] per neuron. reads_by, writes_by: kind -> count; a first read is in `first_reads`.
    """

    slots: npt.NDArray[np.uint8]
    moments: npt.NDArray[np.int64]
    reads: npt.NDArray[np.int64]
    writes: npt.NDArray[np.int64]
    first_reads: int
    reads_by: dict[str, int]
    writes_by: dict[str, int]
    writes_outputs: int


class _FastMemory:
    """The M - 1 value slots under one policy (hwmodel.fastmemory.iomodel has the semantics and the fast kernels)."""

    def __init__(self, network: Network, sources: list[int], targets: list[int], memory: int, policy: str) -> None:
        self.capacity = memory - 1
        self.policy = policy
        self.is_input = (network.in_degree == 0).tolist()
        self.is_output = network.is_output.tolist()
        self.left_in = network.in_degree.tolist()
        n, never = network.n_neurons, 2 * len(sources)
        self.never = never
        self.next_use = [never] * n  # of each neuron, from the access in hand on
        self.after = [never] * never  # after each access, the next one of the same neuron
        for access in range(never - 1, -1, -1):
            neuron = (targets if access & 1 else sources)[access >> 1]
            self.after[access] = self.next_use[neuron]
            self.next_use[neuron] = access
        self.slot_of: dict[int, int] = {}
        self.owner: list[int] = [-1] * self.capacity
        self.used = 0
        self.pointer = 0
        self.stamp = [0] * n
        self.dirty = [False] * n
        self.heap: list[tuple[int, int]] = []
        self.reads, self.writes = [0] * n, [0] * n
        self.reads_by, self.writes_by = [0] * 4, [0] * 4
        self.first_reads = self.writes_outputs = 0

    def kind(self, neuron: int) -> int:
        if self.is_input[neuron]:
            return INPUT if self.next_use[neuron] < self.never else EMPTY
        if self.left_in[neuron] > 0:
            return PARTIAL
        return FINISHED if self.next_use[neuron] < self.never else EMPTY

    def _victim(self, pinned: tuple[int, ...]) -> int:
        if self.policy == "rr":
            while self.owner[self.pointer] in pinned:
                self.pointer = (self.pointer + 1) % self.capacity
            slot = self.pointer
            self.pointer = (self.pointer + 1) % self.capacity
            return self.owner[slot]
        held = []
        while True:  # the heap holds stale entries; a resident's true one is among them
            entry = heapq.heappop(self.heap)
            neuron = entry[1]
            key = self.stamp[neuron] if self.policy == "lru" else -self.next_use[neuron]
            if neuron not in self.slot_of or entry[0] != key:
                continue
            if neuron in pinned:
                held.append(entry)
                continue
            for other in held:
                heapq.heappush(self.heap, other)
            return neuron

    def access(self, neuron: int, time: int, pinned: tuple[int, ...]) -> None:
        if neuron not in self.slot_of:
            if self.used < self.capacity:
                slot = self.used
                self.used += 1
            else:
                victim = self._victim(pinned)
                slot = self.slot_of.pop(victim)
                if self.dirty[victim]:
                    self._write(victim)
            self.slot_of[neuron] = slot
            self.owner[slot] = neuron
            if self.reads[neuron]:
                self.reads_by[INPUT if self.is_input[neuron] else PARTIAL if self.left_in[neuron] else FINISHED] += 1
            else:
                self.first_reads += 1
            self.reads[neuron] += 1
        self.stamp[neuron] = time
        self.next_use[neuron] = self.after[time]
        if self.policy != "rr":
            heapq.heappush(self.heap, (time if self.policy == "lru" else -self.next_use[neuron], neuron))

    def _write(self, neuron: int) -> None:
        self.dirty[neuron] = False
        if self.next_use[neuron] < self.never:
            self.writes[neuron] += 1
            self.writes_by[PARTIAL if self.left_in[neuron] else FINISHED] += 1
        elif self.is_output[neuron]:
            self.writes_outputs += 1


def occupancy(
    network: Network,
    order: Any,
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    moments: int = 600,
    rows: int = 200,
) -> Occupancy:
    """Play an order through fast memory and keep who was where. Plain Python: about 5 us per connection.

    moments: columns of the picture; rows: slots drawn, evenly chosen where there are more.
    """
    checked_memory(memory)
    policy_codes(policy, pinning)
    source_array, target_array = processing_arrays(network, order)
    sources, targets = source_array.tolist(), target_array.tolist()
    state = _FastMemory(network, sources, targets, memory, policy)
    w = len(sources)
    looks = np.unique(np.linspace(0, w - 1, min(moments, w)).astype(np.int64))
    drawn = np.unique(np.linspace(0, state.capacity - 1, min(rows, state.capacity)).astype(np.int64)).tolist()
    grid = np.zeros((len(drawn), len(looks)), np.uint8)
    column = 0
    for k in range(w):
        a, b = sources[k], targets[k]
        state.access(a, 2 * k, (b,) if pinning == "pin_both" else ())
        state.access(b, 2 * k + 1, (a,))
        state.dirty[b] = True
        state.left_in[b] -= 1
        if k == looks[column]:
            grid[:, column] = [state.kind(state.owner[slot]) if slot < state.used else EMPTY for slot in drawn]
            column = min(column + 1, len(looks) - 1)
    for neuron in state.slot_of:
        if state.dirty[neuron] and state.is_output[neuron]:
            state.writes_outputs += 1
    by_kind = lambda counts: dict(zip(KINDS[1:], counts[1:], strict=True))  # noqa: E731
    return Occupancy(
        grid, looks, np.array(state.reads), np.array(state.writes), state.first_reads, by_kind(state.reads_by),
        by_kind(state.writes_by), state.writes_outputs,
    )  # fmt: skip
