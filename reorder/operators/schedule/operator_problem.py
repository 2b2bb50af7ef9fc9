"""An operator graph as flat arrays for the kernels, the check that an order can run, and its memory over time.

At each step what the operator is first to write is allocated, then the peak is taken, then what is not needed is freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.schedule.schedule as kernel
from traces.base.errors import InputError
from traces.operators.opgraph import MAX_BYTES, OpGraph

Order = npt.NDArray[np.int32]


def _rows(rows: Iterable[Sequence[int]]) -> tuple[Order, Order]:
    """Return compressed rows (start, values); a spare value keeps empty arrays addressable."""
    lists = list(rows)
    start = np.array([0, *accumulate(map(len, lists))], np.int32)
    return start, np.array([*chain.from_iterable(lists), 0], np.int32)


@dataclass(frozen=True, eq=False)
class OperatorProblem:
    """The scheduling problem of one graph. Node and buffer numbers follow the graph's file order."""

    graph: OpGraph

    @cached_property
    def buffer_rows(self) -> dict[str, list[tuple[int, ...]]]:
        graph = self.graph
        number = {name: i for i, name in enumerate(graph.buffers)}
        buffer_of = {name: number[tensor.buffer] for name, tensor in graph.tensors.items()}
        writes = [
            (number[node.outputs[0].buffer],)
            if len(node.outputs) == 1
            else tuple(dict.fromkeys([number[t.buffer] for t in node.outputs]))
            for node in graph.nodes
        ]
        reads = [
            tuple([b for b in dict.fromkeys([buffer_of[name] for name in node.inputs]) if b not in own])
            for node, own in zip(graph.nodes, writes, strict=True)
        ]
        touches = [(*r, *w) for r, w in zip(reads, writes, strict=True)]
        return {"writes": writes, "reads": reads, "touches": touches}

    @cached_property
    def retained(self) -> npt.NDArray[np.uint8]:
        """uint8[buffers]: 1 for storage that is never freed."""
        outputs = self.graph.output_buffers
        return np.array([name in outputs for name in self.graph.buffers], np.uint8)

    def with_sizes(self, buffer_bytes: npt.NDArray[np.int64]) -> OperatorProblem:
        """Return the same problem with other sizes of its buffers (the tensors of its graph keep theirs)."""
        graph = copy(self.graph)
        graph.__dict__["buffer_bytes"] = buffer_bytes
        made = OperatorProblem(graph)
        for name in ("buffer_rows", "retained"):  # neither depends on sizes
            made.__dict__[name] = getattr(self, name)
        made.__dict__["compiled"] = self.compiled.with_sizes(buffer_bytes)
        return made

    @cached_property
    def compiled(self) -> Any:
        """The cython_ext.schedule.schedule.Graph of this problem."""
        before, writes, reads = map(
            _rows, (self.graph.predecessors, self.buffer_rows["writes"], self.buffer_rows["reads"])
        )
        sizes = np.ascontiguousarray(self.graph.buffer_bytes)
        return kernel.Graph(before, writes, reads, sizes, self.retained)

    @cached_property
    def reversed(self) -> Any:
        """The same problem run backwards, as a kernel's Graph; operator v is number n - 1 - v there.

        Bytes live between and during the steps of an order are those of the reversed order here, so a search may start
        from either end. (Only footprints are meaningful on it.)
        """
        return self.compiled.reversed()

    @cached_property
    def costs(self) -> Any:
        return kernel._Costs(self.compiled)

    @cached_property
    def single_operator_bytes(self) -> npt.NDArray[np.int64]:
        """int64[nodes]: bytes of what each operator reads and writes, which are live together while it runs."""
        size = self.graph.buffer_bytes.tolist()
        return np.array([sum([size[b] for b in row]) for row in self.buffer_rows["touches"]], np.int64)

    def file_order(self) -> Order:
        return np.arange(self.graph.n_nodes, dtype=np.int32)

    def kahn(self, *, stack: bool = False) -> Order:
        """Kahn's algorithm: the ready operators wait in a queue (breadth first) or on a stack (depth first).

        The schedule of TensorFlow Lite and the hard budget of Ahn et al. 2020, Algorithm 2; ties in file order.
        """
        order: Order = self.compiled.kahn(stack)
        return order

    def greedy(self) -> Order:
        """Always run the ready operator that leaves the fewest live bytes (ties: smaller transient, then file order).

        What an operator adds changes only when a buffer that it shares is first written or has one user left, so
        candidates wait in a heap and are weighed again then. O(edges x log).
        """
        order: Order = self.compiled.greedy()
        return order

    def simple_orders(self) -> list[Order]:
        """Return the orders made without search: the file's, both of Kahn's and the greedy one."""
        return [self.file_order(), self.kahn(), self.kahn(stack=True), self.greedy()]

    def check_order(self, order: npt.ArrayLike | None) -> Order:
        """Return `order` (None: the file's) as int32[n] after checking that it is a topological permutation."""
        n = self.graph.n_nodes
        given = self.file_order() if order is None else np.asarray(order)
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or len(given) != n:
            raise InputError(f"{self.graph.name}: an operator order is a list of {n} whole numbers")
        position = [-1] * n
        for step, v in enumerate(given.tolist()):
            if not 0 <= v < n or position[v] >= 0:
                raise InputError(f"{self.graph.name}: order position {step}: operator {v} is unknown or repeated")
            position[v] = step
        for v, before in enumerate(self.graph.predecessors):
            for u in before:
                if position[u] > position[v]:
                    names = self.graph.nodes
                    raise InputError(
                        f"{self.graph.name}: the order runs {names[v].name!r} (position {position[v]}) before "
                        f"{names[u].name!r} (position {position[u]}), whose result it needs"
                    )
        return np.ascontiguousarray(given, np.int32)

    def check_room_for_arena(self) -> None:
        """Refuse graphs whose arena offsets could leave 63 bits."""
        if sum(self.graph.buffer_bytes.tolist()) + 64 * len(self.graph.buffers) > MAX_BYTES:
            raise InputError(f"{self.graph.name}: the buffers are too large to place in one arena of 2^63 - 1 bytes")


@dataclass(frozen=True, eq=False)
class Footprint:
    """peak_bytes, and int64[n] bytes live while each step runs."""

    peak_bytes: int
    during_bytes: npt.NDArray[np.int64]


def footprint(graph: OpGraph | OperatorProblem, order: npt.ArrayLike | None = None) -> Footprint:
    """Return the memory that an order of the operators needs: its peak, and the bytes live at each step.

    order: int[n], indices of `graph.nodes` (None: the file's own). Raises InputError if it cannot run. O(edges).
    """
    problem = graph if isinstance(graph, OperatorProblem) else OperatorProblem(graph)
    peak, during, _ = problem.costs.footprint(problem.check_order(order))
    return Footprint(int(peak), during)
