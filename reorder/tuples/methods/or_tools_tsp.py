"""or-tools-tsp: the travelling salesman of Feinberg et al. 2020, section IV-A, by OR-Tools routing."""

from __future__ import annotations

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.methods.routing import RoutingParameters, route_strides
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class Tsp(TupleOrderMethod):
    """One vehicle visits the whole stride."""

    def order(
        self,
        problem: TupleProblem,
        order: Int64Array,
        first: int,
        last: int,
        seed: int,
        parameters: RoutingParameters,
        progress: Progress,
    ) -> None:
        """See TupleOrderMethod."""
        route_strides(problem, order, first, last, parameters, progress, vehicles=False)


TUPLE_ORDERS.register(
    "or-tools-tsp",
    summary="OR-Tools travelling salesman, bases inside the stride ignored",
    parameters=RoutingParameters,
)(Tsp())
