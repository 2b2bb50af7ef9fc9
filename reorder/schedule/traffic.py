"""Off-chip traffic of an order: Belady's replacement on blocks (Ahn et al. 2020, section 4.2 and Figure 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.schedule.operator_problem import OperatorProblem
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.work.opgraph import OpGraph

MAX_BLOCK_ACCESSES = 2**31
_BYTES_PER_ACCESS = 20  # of the kernel, which holds the next use of each


@dataclass(frozen=True)
class Traffic:
    """Bytes fetched from and sent to off-chip memory."""

    read_bytes: int
    written_bytes: int

    @property
    def total_bytes(self) -> int:
        """Both directions."""
        return self.read_bytes + self.written_bytes


def traffic_costs(problem: OperatorProblem, onchip_bytes: int, block_bytes: int) -> Any:
    """Return the kernel object that evaluates orders for one on-chip size, after checking that it can be simulated."""
    import cython_ext.schedule.schedule as kernel

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
    return kernel.Costs(problem.compiled, onchip_bytes // block_bytes, block_bytes)


def offchip_traffic(
    graph: OpGraph | OperatorProblem, order: npt.ArrayLike | None = None, *, onchip_bytes: int, block_bytes: int = 256
) -> Traffic:
    """Count the off-chip bytes of an order (default: the file's own).

    On-chip memory holds onchip_bytes // block_bytes blocks. An operator reads every block of each input in listed order
    (inputs in its own buffer are skipped), then writes its own buffers: plainly as first writer, else reading and
    writing. A miss costs a read except on a plain write. The block whose next use is farthest is evicted (an output
    block without further use counts as farther still) and costs a write if dirty. A block without further use is
    dropped at no cost, outputs excepted; nothing is flushed at the end. The last block of a buffer may be short: it
    takes a full place, but costs its true bytes. Belady's rule minimises misses, not bytes.

    Raises InputError if the on-chip memory cannot hold one block. O(block accesses x log).
    """
    problem = graph if isinstance(graph, OperatorProblem) else OperatorProblem(graph)
    steps = problem.check_order(np.arange(problem.graph.n_nodes) if order is None else order)
    return Traffic(*traffic_costs(problem, onchip_bytes, block_bytes).traffic(steps))
