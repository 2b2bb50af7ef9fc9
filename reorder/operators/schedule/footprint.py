"""Memory over time of an operator order.

At each step the buffers that the operator is first to write are allocated, then the peak is taken (inputs and outputs
are live together), then every buffer is freed, outputs excepted, all of whose writers and readers have run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.operators.schedule.operator_problem import OperatorProblem
from traces.operators.opgraph import OpGraph


@dataclass(frozen=True, eq=False)
class Footprint:
    """peak_bytes, and int64[n] bytes live while each step runs and after it."""

    peak_bytes: int
    during_bytes: npt.NDArray[np.int64]
    after_bytes: npt.NDArray[np.int64]


def footprint(graph: OpGraph | OperatorProblem, order: npt.ArrayLike | None = None) -> Footprint:
    """Return the memory that an order of the operators needs: its peak, and the bytes live at and after each step.

    order: int[n], indices of `graph.nodes` (None: the file's own). Raises InputError if it cannot run. O(edges).
    """
    problem = graph if isinstance(graph, OperatorProblem) else OperatorProblem(graph)
    steps = problem.check_order(np.arange(problem.graph.n_nodes) if order is None else order)
    peak, during, after = problem.costs.footprint(steps)
    return Footprint(int(peak), during, after)
