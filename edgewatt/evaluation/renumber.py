"""Renumbering: which neurons share a cache line, found together with an order, as the machine costs least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewatt.evaluation.machine_cost import MachineCost, machine_parameters, order_on_machine
from reorder.base import Ordering
from reorder.edges.machine.numbering import numberings
from reorder.edges.machine.surrogate import Int64Array
from reorder.edges.search.budget import Budget
from reorder.order import check_limits
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.networks.network import Network, renumbered

FIRST, CHOSEN = 0.3, 2  # share of the time for the file's numbering; numberings simulated, best by lines filled


@dataclass(frozen=True, eq=False)
class Renumbered:
    """A network with its neurons numbered for a cache, and an order for it.

    network: renumbered; the same one if nothing was gained. number: int64[N], the new number of each neuron. ordering:
    for it; its connections are numbered as before. model: of the renumbered network. fills, plain_fills: lines filled
    by it, and by two-optimal with the file's numbers. value, plain_value: the objective of both.
    """

    network: Network
    number: Int64Array
    ordering: Ordering
    model: MachineCost
    fills: int
    plain_fills: int
    value: float
    plain_value: float


def renumber_on_machine(
    model: MachineCost,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Renumbered:
    """Return the numbering and order that cost least on the model's machine; never worse than `auto` without."""
    check_limits(seed, time_limit_s)
    machine_parameters(model, "auto", parameters)  # refuses what it does not know
    network, cache = model.network, model.shape().cache
    if cache is None or not cache.rows_share_lines:
        where = "a scratchpad moves rows" if cache is None else f"a row fills lines of {cache.line_bytes} bytes"
        raise InputError(
            f"renumbering is for caches whose lines hold several neurons; here {where}: use one lane, or rows that are "
            "not aligned to lines"
        )
    budget = Budget(time_limit_s)

    def left(share: float) -> float | None:
        return None if time_limit_s is None else max(1e-3, share * budget.left())

    own = order_on_machine(model, "auto", seed=seed, time_limit_s=left(FIRST), progress=progress, **parameters)
    best = Renumbered(
        network, np.arange(network.n_neurons), own, model, _fills(model, own.edges), _fills(model, model.plain),
        own.parameters["value"], model(model.plain),
    )  # fmt: skip
    tried: list[tuple[int, int, Int64Array, Int64Array, MachineCost]] = []
    for number, edges in numberings(network, cache, seed):
        other = replace(model, network=renumbered(network, number))
        tried.append((_fills(other, edges), len(tried), number, edges, other))
    chosen = sorted(tried, key=lambda one: one[:2])[:CHOSEN]
    for k, (_, _, number, edges, other) in enumerate(chosen):
        ordering = order_on_machine(
            other, "auto", seed=seed, time_limit_s=left(1 / (len(chosen) - k)), progress=progress,
            given=(("tiles by number", edges),), **parameters,
        )  # fmt: skip
        value = ordering.parameters["value"]
        ours, theirs = (each.parameters["evaluated_by"] for each in (ordering, best.ordering))
        if ours != theirs:  # not simulated the same way
            value, best = other(ordering.edges), replace(best, value=best.model(best.ordering.edges))
        if value < best.value:
            best = replace(
                best, network=other.network, number=number, ordering=ordering, model=other,
                fills=_fills(other, ordering.edges), value=value,
            )  # fmt: skip
    return best


def _fills(model: MachineCost, edges: Int64Array) -> int:
    cache = model.shape().cache
    assert cache is not None
    return int(cache.kernel(model.network, edges).counts[0])
