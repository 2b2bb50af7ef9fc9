"""or-tools-cvrp: the vehicle routing of Feinberg et al. 2020, section IV.

The auxiliary node sends every vehicle off at the cost of a base and takes it back for nothing (Figure 5). A vehicle is
a block: it visits as many tuples as the block has values. Where a stride starts inside a block, the remainder vehicle
leaves from the remainder node, whose distances count from the tuple before (Figure 6); the fill vehicle takes what is
left. Where blocks hold another number of ids than of values the vehicles follow the values, and the result is charged
at true positions like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.tuple_problem import CostModel, Int64Array, TupleProblem, Words
from traces.base.errors import InputError, MissingExtraError
from traces.base.progress import Progress

_DBI = np.array([min(x.bit_count(), 9 - x.bit_count()) for x in range(256)], np.uint8)
_WEIGHT = np.array([x.bit_count() for x in range(256)], np.uint8)


@dataclass(frozen=True)
class RoutingParameters:
    """search: greedy-descent, the paper's choice, ends by itself; OR-Tools' metaheuristics after so many solutions."""

    search: str = "greedy-descent"
    solutions: int = 100


def pair_costs(model: CostModel, out: Words, into: Words, slot_class: int) -> npt.NDArray[np.int64]:
    """int64[A, B]: cost of each tuple of `into` after each of `out` (uint64[., words]) in a slot of that class."""
    table = _DBI if model.dbi else _WEIGHT
    sent = (out[:, None, :] & model.keep[slot_class]) ^ into[None, :, :]
    ones: Int64Array = table[sent.view(np.uint8)].sum(axis=2, dtype=np.int64)
    return ones


def _solve(
    distance: npt.NDArray[np.int64], capacities: list[int], starts: list[int], parameters: RoutingParameters
) -> list[int]:
    """Route vehicles over the nodes of `distance`; the last two are the auxiliary and the remainder node."""
    try:
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2
    except ImportError as error:
        raise MissingExtraError("ortools", "exact") from error

    n = len(distance) - 2
    manager = pywrapcp.RoutingIndexManager(n + 2, len(capacities), starts, [n] * len(capacities))
    routing = pywrapcp.RoutingModel(manager)
    routing.SetArcCostEvaluatorOfAllVehicles(routing.RegisterTransitMatrix(distance.tolist()))
    demand = routing.RegisterUnaryTransitVector([1] * n + [0, 0])
    routing.AddDimensionWithVehicleCapacity(demand, 0, capacities, True, "tuples")
    if n + 1 not in starts:
        routing.AddDisjunction([manager.NodeToIndex(n + 1)], 0)  # no remainder: nobody needs to go there
    search = pywrapcp.DefaultRoutingSearchParameters()
    search.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    name = parameters.search.replace("-", "_").upper()
    search.local_search_metaheuristic = getattr(routing_enums_pb2.LocalSearchMetaheuristic, name)
    if parameters.search != "greedy-descent":
        search.solution_limit = parameters.solutions
    solution = routing.SolveWithParameters(search)
    if solution is None:
        raise InputError("OR-Tools found no route")
    route = []
    for vehicle in range(len(capacities)):
        index = solution.Value(routing.NextVar(routing.Start(vehicle)))
        while not routing.IsEnd(index):
            route.append(manager.IndexToNode(index))
            index = solution.Value(routing.NextVar(index))
    return [node for node in route if node < n]


class Routing(TupleOrderMethod):
    """A vehicle for each block of a stride, with remainder and fill vehicle."""

    def order(
        self, problem: TupleProblem, order: Int64Array, first: int, last: int, seed: int,
        parameters: RoutingParameters, progress: Progress,
    ) -> None:  # fmt: skip
        """See TupleOrderMethod."""
        model = problem.model
        base = problem.is_base(problem.fields[0])
        for start, stop in zip(problem.bounds[first:last].tolist(), problem.bounds[first + 1 :].tolist(), strict=False):
            n = stop - start
            if n < 2:
                continue
            tuples = order[start:stop].copy()
            out, into = model.out[tuples], model.into[tuples]
            before = model.out[order[start - 1]][None] if start else np.zeros_like(out[:1])
            distance = np.zeros((n + 2, n + 2), np.int64)
            distance[:n, :n] = pair_costs(model, out, into, 0)
            distance[n, :n] = pair_costs(model, out[:1], into, (1 << len(problem.counted)) - 1)[0]
            distance[n + 1, :n] = pair_costs(model, before, into, int(model.slot_class[start]))[0]
            cuts = [*np.flatnonzero(base[start:stop]).tolist(), n]
            remainder = cuts[0] > 0
            capacities = np.diff([0, *cuts] if remainder else cuts).tolist()
            starts = [n + (remainder and vehicle == 0) for vehicle in range(len(capacities))]
            order[start:stop] = tuples[_solve(distance, capacities, starts, parameters)]
            progress(n, None, "")


TUPLE_ORDERS.register(
    "or-tools-cvrp", summary="OR-Tools vehicles of one block each (Feinberg et al. 2020)", parameters=RoutingParameters
)(Routing())
