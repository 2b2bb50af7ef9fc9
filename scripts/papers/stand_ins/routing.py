"""or-tools-tsp and or-tools-cvrp: the travelling salesman and the vehicles of Feinberg et al. 2020, section IV.

The auxiliary node sends every vehicle off at the cost of a base and takes it back for nothing (Figure 5). A vehicle is
a block: it visits as many tuples as the block has values. Where a stride starts inside a block, the remainder vehicle
leaves from the remainder node, whose distances count from the tuple before (Figure 6); the fill vehicle takes what is
left. Costs are a registered matrix. Where blocks hold another number of ids than of values the vehicles follow the
values, and the result is charged at true positions like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.tuple_problem import CostModel, Int64Array, TupleProblem, Words
from traces.base.errors import InputError, MissingExtraError, unknown_name
from traces.base.progress import Progress

SEARCHES = {
    "greedy-descent": "GREEDY_DESCENT",
    "guided-local-search": "GUIDED_LOCAL_SEARCH",
    "simulated-annealing": "SIMULATED_ANNEALING",
    "tabu-search": "TABU_SEARCH",
}
_DBI = np.array([min(x.bit_count(), 9 - x.bit_count()) for x in range(256)], np.uint8)
_WEIGHT = np.array([x.bit_count() for x in range(256)], np.uint8)


@dataclass(frozen=True)
class RoutingParameters:
    """search: greedy-descent (the paper's choice), guided-local-search, simulated-annealing or tabu-search.

    solutions: improvements after which a metaheuristic stops (deterministic); greedy descent ends by itself.
    time_limit_s: wall-clock limit per stride, None for none. With one, results may differ between runs.
    """

    search: str = "greedy-descent"
    solutions: int = 100
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise unknown_name("OR-Tools search", self.search, SEARCHES)
        if self.solutions < 1:
            raise InputError(f"solutions is {self.solutions}: at least one is searched for")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InputError(f"time_limit_s is {self.time_limit_s}: it must be above 0")


def pair_costs(model: CostModel, out: Words, into: Words, slot_class: int) -> npt.NDArray[np.int64]:
    """int64[A, B]: cost of each tuple of `into` after each of `out` (uint64[., words]) in a slot of that class."""
    table = _DBI if model.dbi else _WEIGHT
    sent = (out[:, None, :] & model.keep[slot_class]) ^ into[None, :, :]
    ones: Int64Array = table[sent.view(np.uint8)].sum(axis=2, dtype=np.int64)
    return ones


def _solve(
    distance: npt.NDArray[np.int64], capacities: list[int], starts: list[int], parameters: RoutingParameters
) -> list[list[int]]:
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
    search.local_search_metaheuristic = getattr(routing_enums_pb2.LocalSearchMetaheuristic, SEARCHES[parameters.search])
    if parameters.search != "greedy-descent":
        search.solution_limit = parameters.solutions
    if parameters.time_limit_s is not None:
        search.time_limit.FromMilliseconds(max(1, int(1000 * parameters.time_limit_s)))
    solution = routing.SolveWithParameters(search)
    if solution is None:
        raise InputError("OR-Tools found no route within its limits: allow more time or use 'local-search'")
    routes = []
    for vehicle in range(len(capacities)):
        route, index = [], solution.Value(routing.NextVar(routing.Start(vehicle)))
        while not routing.IsEnd(index):
            route.append(manager.IndexToNode(index))
            index = solution.Value(routing.NextVar(index))
        routes.append([node for node in route if node < n])
    return routes


class Routing(TupleOrderMethod):
    """vehicles: one for each block, with remainder and fill vehicle; else one visits the whole stride."""

    def __init__(self, vehicles: bool) -> None:
        self.vehicles = vehicles

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
        model = problem.model
        everything = (1 << len(problem.counted)) - 1
        base = problem.is_base(problem.fields[0])
        for k in range(first, last):
            start, stop = int(problem.bounds[k]), int(problem.bounds[k + 1])
            n = stop - start
            if n < 2:
                continue
            tuples = order[start:stop].copy()
            out, into = model.out[tuples], model.into[tuples]
            before = model.out[order[start - 1]][None] if start else np.zeros_like(out[:1])
            distance = np.zeros((n + 2, n + 2), np.int64)
            distance[:n, :n] = pair_costs(model, out, into, 0)
            distance[n, :n] = pair_costs(model, out[:1], into, everything)[0]
            distance[n + 1, :n] = pair_costs(model, before, into, int(model.slot_class[start]))[0]
            blocks = np.flatnonzero(base[start:stop])
            remainder = not (blocks.size and blocks[0] == 0)
            if self.vehicles:
                cuts = np.append(blocks, n)
                capacities = [int(c) for c in ([cuts[0]] if remainder else []) + np.diff(cuts).tolist()]
            else:
                capacities = [n]
            starts = [n + 1 if remainder and v == 0 else n for v in range(len(capacities))]
            if not self.vehicles and not remainder:
                starts = [n]
            routes = _solve(distance, capacities, starts, parameters)
            order[start:stop] = tuples[np.concatenate([np.array(r, np.int64) for r in routes])]
            progress(n, None, "")


for _name, _vehicles, _summary in (
    ("or-tools-tsp", False, "OR-Tools travelling salesman, bases inside the stride ignored"),
    ("or-tools-cvrp", True, "OR-Tools vehicles of one block each (Feinberg et al. 2020)"),
):
    TUPLE_ORDERS.register(_name, summary=_summary, parameters=RoutingParameters)(Routing(_vehicles))
