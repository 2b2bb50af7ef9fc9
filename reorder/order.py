"""Make one edge order and check it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from reorder.base import ORDERINGS, Ordering, Progress, Task, check_order
from reorder.edges.search.budget import Interrupts
from reorder.edges.search.objectives import make_objective
from traces.base.checks import check_seed
from traces.base.errors import InputError
from traces.networks.checks import checked_memory, is_only_order, policy_codes
from traces.networks.network import Network


def order(
    network: Network,
    method: str,
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    objective: Any = "io",
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Ordering:
    """Return an order of the network's connections, checked to be a topological permutation.

    method: a name of `edgewatt list orderings`, with `parameters` of its own.
    memory, policy, pinning: the fast memory the order is for (see hwmodel.fastmemory.iomodel). M >= 3.
    objective: what searches lower; see reorder.edges.search.objectives.
    time_limit_s: stop searching after this many seconds; a search that is cut says `truncated`.
    Raises InputError for an unknown name, parameter or value out of range.
    """
    entry = ORDERINGS[method]
    checked_memory(memory)
    policy_codes(policy, pinning)
    check_limits(seed, time_limit_s)
    task = Task(memory, policy, pinning, objective, seed, time_limit_s, progress)
    task = make_objective(objective).within(task)
    try:
        result = entry.item(network, task, entry.make_parameters(parameters))
    except KeyboardInterrupt:
        result = Interrupts.best(method)
    if Interrupts.stopped:
        result = replace(result, parameters={**result.parameters, "interrupted": True}, truncated=True)
    try:
        edges = check_order(network, result.edges)
    except InputError as error:
        raise InputError(f"{method}: {error}") from None
    return replace(result, edges=edges, truncated=result.truncated and not is_only_order(network, edges))


def check_limits(seed: int, time_limit_s: float | None) -> None:
    if time_limit_s is not None and not (time_limit_s > 0 and math.isfinite(time_limit_s)):
        raise InputError(f"time_limit_s is {time_limit_s}: a number of seconds above 0 is needed (or none at all)")
    check_seed(seed)
