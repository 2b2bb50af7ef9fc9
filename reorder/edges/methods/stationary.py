"""Output-stationary orders: partial sums stay, finished neurons stream through one slot."""

from __future__ import annotations

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.initial_states import StationaryParameters, before_orders, best_state, slot_choices
from reorder.edges.search.intervals import Items
from traces.networks.network import Network


@ORDERINGS.register(
    "output-stationary",
    summary="partial sums stay resident, finished neurons stream past them; settings tried out",
    parameters=StationaryParameters,
    portfolio=4,
    effort=0.5,
)
def output_stationary(network: Network, task: Task, parameters: StationaryParameters) -> Ordering:
    """Roll over the targets: finish the neuron with the least left, open the one that shares most of its sources."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    roll(Items.of(network, task), best, parameters)
    return best.ordering("output-stationary", best.parameters, budget.over or not best.work)


def roll(items: Items, best: Best, parameters: StationaryParameters) -> None:
    """Offer the orders of the best rolling constructions, one per number of slots; two-optimal if time is too short."""
    task, budget = best.task, best.budget
    making = before_orders(budget, items)
    if best.edges is None and making.over:
        best.offer(two_optimal_order(items.network))
        return
    given = [parameters.slots] if parameters.slots else slot_choices(task)
    for slots in given:
        if best.edges is not None and budget.over:
            break
        slots = min(slots, task.memory - 2)
        state, tried = best_state(items, slots, making, parameters)
        search = items.search(slots, still=True)
        search.set_state(state.opens, state.drops)
        best.work += tried
        best.offer(items.decode(search), slots=slots)
