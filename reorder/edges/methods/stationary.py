"""Output-stationary orders: partial sums stay, finished neurons stream through one slot."""

from __future__ import annotations

from dataclasses import dataclass

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer, check_counts
from reorder.edges.search.initial_states import before_orders, plain_state, slot_choices
from reorder.edges.search.intervals import Items
from traces.networks.network import Network


@dataclass(frozen=True)
class StationaryParameters:
    """slots: partial sums (and kept values) resident at once; None: tried out by policy."""

    slots: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, slots=1)


@ORDERINGS.register(
    "output-stationary",
    summary="partial sums stay resident, finished neurons stream past them",
    parameters=StationaryParameters,
    portfolio=3,
    effort=0.8,
)
def output_stationary(network: Network, task: Task, parameters: StationaryParameters) -> Ordering:
    """Stream the finished neuron whose targets have the least left, open those that share most of their sources.

    The greedy of `learned` with plain weights; two-optimal where the time is too short for it.
    """
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    items = Items.of(network, task)
    making = before_orders(budget, items)
    if making.over:
        best.offer(two_optimal_order(network))
    else:
        for slots in [parameters.slots] if parameters.slots else slot_choices(task):
            if best.edges is not None and budget.over:
                break
            slots = max(1, min(slots, task.memory - 2))
            state = plain_state(items, slots, making)
            search = items.search(slots, still=True)
            search.set_state(state.opens, state.drops)
            best.work += 1
            best.offer(items.decode(search), slots=slots)
    return best.ordering("output-stationary", best.parameters, budget.over or not best.work)
