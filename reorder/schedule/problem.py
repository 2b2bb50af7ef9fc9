"""An operator graph as flat arrays for the kernels, and the check that an order can run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.errors import InputError
from traces.opgraph import MAX_BYTES, OpGraph

Order = npt.NDArray[np.int32]


def _rows(rows: Iterable[Sequence[int]]) -> tuple[Order, Order]:
    """Return compressed rows (start, values); a spare value keeps empty arrays addressable."""
    lists = list(rows)
    start = np.zeros(len(lists) + 1, np.int32)
    start[1:] = np.cumsum([len(row) for row in lists])
    return start, np.array([v for row in lists for v in row] + [0], np.int32)


@dataclass(frozen=True, eq=False)
class Problem:
    """The scheduling problem of one graph. Node and buffer numbers follow the graph's file order."""

    graph: OpGraph

    @cached_property
    def compiled(self) -> Any:
        """The cython_ext.schedule.Graph of this problem."""
        from cython_ext import schedule as kernel

        graph = self.graph
        number = {name: i for i, name in enumerate(graph.buffers)}
        tensors = graph.tensors
        writes = [tuple(dict.fromkeys(number[t.buffer] for t in node.outputs)) for node in graph.nodes]
        reads = [
            tuple(dict.fromkeys(b for name in node.inputs if (b := number[tensors[name].buffer]) not in own))
            for node, own in zip(graph.nodes, writes, strict=True)
        ]
        touches = [tuple(dict.fromkeys((*r, *w))) for r, w in zip(reads, writes, strict=True)]
        users: list[list[int]] = [[] for _ in graph.buffers]
        for v, buffers in enumerate(touches):
            for b in buffers:
                users[b].append(v)
        arrays: dict[str, Any] = {
            "bytes": np.ascontiguousarray(graph.buffer_bytes),
            "kept": np.array([name in graph.output_buffers for name in graph.buffers], np.uint8),
        }
        for name, rows in (
            ("before", graph.predecessors),
            ("after", graph.successors),
            ("writes", writes),
            ("reads", reads),
            ("touches", touches),
            ("writers", list(graph.writers.values())),
            ("users", users),
        ):
            arrays[f"{name}_start"], arrays[name] = _rows(rows)
        return kernel.Graph(graph.n_nodes, len(graph.buffers), arrays)

    @cached_property
    def costs(self) -> Any:
        """Scratch memory for footprints and arenas."""
        from cython_ext import schedule as kernel

        return kernel.Costs(self.compiled)

    @cached_property
    def single_operator_bytes(self) -> npt.NDArray[np.int64]:
        """int64[nodes]: bytes of what each operator reads and writes, which must be live together while it runs."""
        sizes = dict(zip(self.graph.buffers, self.graph.buffer_bytes.tolist(), strict=True))
        tensors = self.graph.tensors
        return np.array(
            [
                sum(
                    sizes[b]
                    for b in {tensors[name].buffer for name in node.inputs} | {t.buffer for t in node.outputs}
                )
                for node in self.graph.nodes
            ],
            np.int64,
        )

    def check_order(self, order: npt.ArrayLike) -> Order:
        """Return `order` as int32[n] after checking that it is a topological permutation of the operators."""
        given = np.asarray(order)
        n = self.graph.n_nodes
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or len(given) != n:
            raise InputError(f"{self.graph.name}: an operator order is a list of {n} whole numbers")
        place = np.full(n, -1, np.int64)
        for step, v in enumerate(given.tolist()):
            if not 0 <= v < n or place[v] >= 0:
                raise InputError(f"{self.graph.name}: order position {step}: operator {v} is unknown or repeated")
            place[v] = step
        for v, before in enumerate(self.graph.predecessors):
            for u in before:
                if place[u] > place[v]:
                    names = self.graph.nodes
                    raise InputError(
                        f"{self.graph.name}: the order runs {names[v].name!r} (position {place[v]}) before "
                        f"{names[u].name!r} (position {place[u]}), whose result it needs"
                    )
        return np.ascontiguousarray(given, np.int32)

    def check_room_for_arena(self) -> None:
        """Refuse graphs whose arena offsets could leave 63 bits."""
        if int(self.graph.buffer_bytes.astype(object).sum()) + 64 * len(self.graph.buffers) > MAX_BYTES:
            raise InputError(f"{self.graph.name}: the buffers are too large to place in one arena of 2^63 - 1 bytes")
