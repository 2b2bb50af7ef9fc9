"""or-tools-cvrp: a vehicle for each block (Feinberg et al. 2020, section IV-B), by OR-Tools routing."""

from __future__ import annotations

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.methods.routing import RoutingParameters, route_strides
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class Cvrp(TupleOrderMethod):
    """A vehicle per block, with remainder and fill vehicle."""

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
        route_strides(problem, order, first, last, parameters, progress, vehicles=True)


TUPLE_ORDERS.register(
    "or-tools-cvrp", summary="OR-Tools vehicles of one block each (Feinberg et al. 2020)", parameters=RoutingParameters
)(Cvrp())
