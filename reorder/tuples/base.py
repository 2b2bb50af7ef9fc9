"""Interface and registry of tuple orders (members in methods/)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from reorder.tuples.tuple_problem import OBJECTIVES, Int64Array, TupleProblem
from traces.base.progress import Progress
from traces.base.registry import Registry


class TupleOrderMethod(ABC):
    """A member of TUPLE_ORDERS.

    layouts: storage layouts it can order. objectives: fields it can count.
    guards: names of other orders whose result replaces its own where that is cheaper; 'given' is the order given.
    workers: its default executor, of traces.base.workers.EXECUTORS: 'threads' where `order` is compiled or NumPy all
        through, so that others run meanwhile, and calls `progress` now and then.
    """

    layouts: frozenset[str] = frozenset({"csr", "csc", "coo"})
    objectives: frozenset[str] = frozenset(OBJECTIVES)
    guards: tuple[str, ...] = ()
    workers: str = "processes"

    def guards_of(self, problem: TupleProblem) -> tuple[str, ...]:
        """Return the guards that are worth their time on this problem."""
        return self.guards

    @abstractmethod
    def order(
        self,
        problem: TupleProblem,
        order: Int64Array,
        first: int,
        last: int,
        seed: int,
        parameters: Any,
        progress: Progress,
    ) -> None:
        """Order strides [first, last) of a problem, left to right, in place in `order` (int64[N], slot -> tuple)."""


TUPLE_ORDERS: Registry[TupleOrderMethod] = Registry(
    "tuple order", "edgewatt.tuple_orders", folder="reorder.tuples.methods", instances_of=TupleOrderMethod
)
