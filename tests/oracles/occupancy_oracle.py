"""Which values are in which slot of fast memory at each step of an order, in plain Python, with a heap."""

from __future__ import annotations

import heapq
from typing import Any

from traces.networks.network import Network

EMPTY, INPUT, PARTIAL, FINISHED = range(4)


class _FastMemory:
    """The M - 1 value slots under one policy."""

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
    network: Network, edges: Any, *, memory: int, policy: str, pinning: str, moments: list[int], slots: list[int]
) -> dict[str, Any]:
    """Return grid (a list of kinds per slot asked for), reads, writes (per neuron), reads_by, writes_by (per kind),
    first_reads and writes_outputs."""
    sources, targets = network.sources[edges].tolist(), network.targets[edges].tolist()
    state = _FastMemory(network, sources, targets, memory, policy)
    columns = []
    for k, (a, b) in enumerate(zip(sources, targets, strict=True)):
        state.access(a, 2 * k, (b,) if pinning == "pin_both" else ())
        state.access(b, 2 * k + 1, (a,))
        state.dirty[b] = True
        state.left_in[b] -= 1
        if k in moments:
            columns.append([state.kind(state.owner[slot]) if slot < state.used else EMPTY for slot in slots])
    for neuron in state.slot_of:
        if state.dirty[neuron] and state.is_output[neuron]:
            state.writes_outputs += 1
    return {
        "grid": [list(row) for row in zip(*columns, strict=True)], "reads": state.reads, "writes": state.writes,
        "reads_by": state.reads_by, "writes_by": state.writes_by, "first_reads": state.first_reads,
        "writes_outputs": state.writes_outputs,
    }  # fmt: skip
