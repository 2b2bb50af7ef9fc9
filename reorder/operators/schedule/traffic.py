"""Off-chip traffic of an order: Belady's replacement on blocks (Ahn et al. 2020, section 4.2 and Figure 11)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.schedule.schedule as kernel
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from traces.base.errors import InputError
from traces.base.memory import claim, max_bytes
from traces.operators.opgraph import OpGraph

MAX_BLOCK_ACCESSES = 2**31
_BYTES_PER_ACCESS = 20  # of the kernel, which holds the next use of each
_BYTES_PER_TRANSFER = 32 + 40  # of the kernel's log and of the table that is made of it
_PER_SECOND = 2e8  # block accesses, more than any machine of today simulates: what cannot be done is not begun


@dataclass(frozen=True)
class OffchipTraffic:
    read_bytes: int
    written_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.read_bytes + self.written_bytes


def traffic_costs(problem: OperatorProblem, onchip_bytes: int, block_bytes: int, deadline: float | None = None) -> Any:
    """Return the kernel object that evaluates orders for one on-chip size, after checking that it can be simulated."""
    if block_bytes < 1 or onchip_bytes < block_bytes:
        raise InputError(
            f"on-chip memory of {onchip_bytes} bytes cannot hold a block of {block_bytes} bytes: "
            "onchip_bytes must be at least block_bytes, and block_bytes at least 1"
        )
    sizes = dict(zip(problem.graph.buffers, problem.graph.buffer_bytes.tolist(), strict=True))
    tensors = problem.graph.tensors
    accesses = sum(
        -(-sizes[buffer] // block_bytes)
        for node in problem.graph.nodes
        for buffer in (*(tensors[name].buffer for name in node.inputs), *(t.buffer for t in node.outputs))
    )
    if accesses > MAX_BLOCK_ACCESSES:
        raise InputError(
            f"{problem.graph.name}: {accesses} block accesses are too many to simulate (at most 2^31): "
            f"use a block_bytes larger than {block_bytes}"
        )
    claim(_BYTES_PER_ACCESS * accesses, problem.graph.source or problem.graph.name, f"{accesses} block accesses")
    if deadline is not None and accesses > _PER_SECOND * seconds_until(deadline):
        raise too_late(problem.graph)
    return kernel._Costs(problem.compiled, onchip_bytes // block_bytes, block_bytes)


def seconds_until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def too_late(graph: OpGraph) -> InputError:
    return InputError(
        f"{graph.source or graph.name}: the off-chip transfers cannot be counted within the time limit: "
        "raise it, or use larger blocks (block_bytes)"
    )


def offchip_transfers(
    problem: OperatorProblem, order: Order, *, onchip_bytes: int, block_bytes: int, deadline: float | None = None
) -> npt.NDArray[np.int64]:
    """Return the off-chip transfers of an order, int64[n, 5] as of the kernel's `_Costs.transfers`.

    Raises InputError where they are too many for the bound of memory or for the time until `deadline`.
    """
    costs = traffic_costs(problem, onchip_bytes, block_bytes, deadline)
    most = max_bytes() // _BYTES_PER_TRANSFER
    try:
        transfers: npt.NDArray[np.int64] = costs.transfers(
            order, None if deadline is None else seconds_until(deadline), most
        )
    except TimeoutError:
        raise too_late(problem.graph) from None
    except MemoryError:
        claim(_BYTES_PER_TRANSFER * (most + 1), problem.graph.source or problem.graph.name, "its off-chip transfers")
        raise
    return transfers


def offchip_traffic(
    graph: OpGraph | OperatorProblem,
    order: npt.ArrayLike | None = None,
    *,
    onchip_bytes: int,
    block_bytes: int = 256,
    deadline: float | None = None,
) -> OffchipTraffic:
    """Return the off-chip bytes of an order of `graph` (default: the file's own).

    On-chip memory holds onchip_bytes // block_bytes blocks. An operator reads every block of each input in listed order
    (inputs in its own buffer are skipped), then writes its own buffers: plainly as first writer, else reading and
    writing. A miss costs a read except on a plain write. The block whose next use is farthest is evicted (an output
    block without further use counts as farther still) and costs a write if dirty. A block without further use is
    dropped at no cost, outputs excepted; nothing is flushed at the end. The last block of a buffer may be short: it
    takes a full place, but costs its true bytes. Belady's rule minimises misses, not bytes.

    deadline: value of time.monotonic() at which to give up; None: never.

    Raises InputError if the on-chip memory cannot hold one block, or the time ends. O(block accesses x log).
    """
    problem = graph if isinstance(graph, OperatorProblem) else OperatorProblem(graph)
    steps = problem.check_order(order)
    costs = traffic_costs(problem, onchip_bytes, block_bytes, deadline)
    try:
        return OffchipTraffic(*costs.traffic(steps, None if deadline is None else seconds_until(deadline)))
    except TimeoutError:
        raise too_late(problem.graph) from None
