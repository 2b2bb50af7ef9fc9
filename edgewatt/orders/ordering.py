"""One way to ask for an order of work: the engine's objectives, a processor's clock, or a whole machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewatt.evaluation.machine_cost import MachineCost, order_on_machine
from edgewatt.evaluation.renumber import Renumbered, renumber_on_machine
from edgewatt.orders.order_comparison import machine_of
from edgewatt.orders.timed import LIMIT_S, fastest_order
from hwmodel.machine import Machine
from reorder.base import ORDERINGS, Ordering
from reorder.edges.search.objectives import MACHINE_OBJECTIVES, NAMES, machine_objective, make_objective
from reorder.order import order as order_edges
from traces.base.errors import InputError, did_you_mean, shown
from traces.base.progress import Progress
from traces.layout.settings import AUTO, MACHINE_LANES, Layout
from traces.networks.network import Network, weights_of

PROCESSOR_LANES = 64


def order(
    network: Network,
    method: str,
    *,
    memory: int | None,
    policy: str = "min",
    pinning: str = "literal",
    objective: Any = "io",
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    target: str | None = None,
    lanes: int | None = None,
    machine: str | Path | Mapping[str, Any] | Machine | None = None,
    layout: Layout | str | None = None,
    timing: str | None = None,
    **parameters: Any,
) -> Ordering:
    """Return an order of the network's connections; see `reorder.order.order`, plus objectives of machines.

    objective: as there, or with `machine` 'energy' (pJ), 'time' (ns) or 'bytes' over the memory bus; or 'time' alone:
    seconds on `target`, 'this-cpu', by the clock.

    machine: a shipped system, a YAML file, a mapping with a system's keys, or a Machine. Its simulation models orders
    as they lie in `layout` (a Layout or a kind; 'auto': chosen for each order) for one pass of `lanes` vectors
    (default: 16). timing: 'system' (default), or 'replay', an open loop (not for objective 'time'). 'auto' returns an
    order never worse there than two-optimal and the constructions (see reorder.edges.machine.search; parameters rounds,
    moves); policy, pinning and M are then the machine's own, others are refused. time_limit_s: ends a search. memory:
    of the I/O model, needed without a machine; with one, M for other methods than 'auto' (None: the machine's own).

    With `target`, method 'auto' times orders by layers in tiles of sources (see `fastest_order`), for rows of `lanes`
    values (default: 64); constructions are made as they are, and methods that search are refused.
    Raises InputError for an option that does not belong to the objective, and what the engine raises.
    """
    objective = machine_objective(objective) or objective
    if machine is not None:
        model = machine_cost_for(network, objective, machine, layout=layout, lanes=lanes, timing=timing, seed=seed)
        if target is not None:
            raise InputError("give a target (a processor) or a machine, not both")
        check_evicts(model, policy, pinning)
        return order_on_machine(
            model, method, memory=memory, seed=seed, time_limit_s=time_limit_s, progress=progress, **parameters
        )
    for name, value in (("layout", layout), ("timing", timing)):
        if value is not None:
            raise InputError(f"{name} belongs to an objective with a machine")
    by_clock = isinstance(objective, str) and objective == "time"
    if not by_clock:
        make_objective(objective)  # one of a machine says what it needs
    if memory is None:
        raise InputError("memory is missing: M, the neuron values that fit fast memory plus the connection in hand")
    if not by_clock:
        if target is not None:
            raise InputError("target belongs to objective='time'")
        if lanes is not None:
            raise InputError("lanes belong to objective='time' and to objectives with a machine")
        return order_edges(
            network, method, memory=memory, policy=policy, pinning=pinning, objective=objective, seed=seed,
            time_limit_s=time_limit_s, progress=progress, **parameters,
        )  # fmt: skip
    lanes = PROCESSOR_LANES if lanes is None else lanes
    if target not in (None, "this-cpu"):
        raise InputError(f"target {target!r}: 'this-cpu' is the only one: orders are timed where they run")
    if ORDERINGS[method].item.chooses:
        if parameters:
            raise InputError(f"method {method!r} takes no {next(iter(parameters))!r} with objective 'time'")
        return fastest_order(
            network, lanes=(lanes,), memory=memory, time_limit_s=time_limit_s or LIMIT_S, progress=progress
        ).ordering
    if ORDERINGS[method].item.searches:
        raise InputError(
            f"method {method!r} cannot search by the clock: use 'auto', or the objective "
            "{kind: weighted, a: ..., b: ...} of runs and I/Os"
        )
    return order_edges(
        network, method, memory=memory, policy=policy, pinning=pinning, seed=seed, time_limit_s=time_limit_s,
        progress=progress, **parameters,
    )  # fmt: skip


def renumber(
    network: Network,
    *,
    machine: str | Path | Mapping[str, Any] | Machine,
    objective: str = "energy",
    lanes: int = 1,
    layout: Layout | str | None = None,
    timing: str | None = None,
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Renumbered:
    """Return which neurons should share cache lines, together with an order: a renumbered network and an order for it.

    The numbering is a permutation inside each layer, applied to everything the network holds; it computes the same
    outputs from the same inputs. machine, objective ('energy', 'time', 'bytes'), lanes, layout, timing, time_limit_s,
    parameters: as of `order`. Raises InputError where a line holds no two neurons.
    """
    model = machine_cost_for(network, objective, machine, layout=layout, lanes=lanes, timing=timing, seed=seed)
    return renumber_on_machine(model, seed=seed, time_limit_s=time_limit_s, progress=progress, **parameters)


def check_evicts(model: MachineCost, policy: str, pinning: str) -> None:
    own = model.evicts
    for name, given, usual in (("policy", policy, "min"), ("pinning", pinning, "literal")):
        if given not in (usual, own[name]):
            pad = model.machine.scratchpad
            has = "caches of their own policy" if pad is None else f"a scratchpad of {name} {own[name]}"
            raise InputError(f"{name} {shown(given)}: the machine has {has}: change the system, or leave {name} out")


def usual_layout(network: Network, machine: Machine) -> str:
    """Return the layout where none is asked for: a scratchpad streams a weight with each connection, if shared, too."""
    return AUTO if network.weight_ids is None or machine.scratchpad is None else "tuples"


def machine_cost_for(
    network: Network,
    objective: Any,
    machine: str | Path | Mapping[str, Any] | Machine,
    *,
    layout: Layout | str | None = None,
    lanes: int | None = None,
    timing: str | None = None,
    seed: int = 0,
) -> MachineCost:
    named = machine_objective(objective)
    if named is None:
        meant = did_you_mean(objective, MACHINE_OBJECTIVES) if objective not in NAMES else ""
        raise InputError(
            f"a machine is for the objectives {', '.join(MACHINE_OBJECTIVES)}, not {shown(objective)}: leave it out "
            f"or choose one of them, as objective='energy'{meant}"
        )
    weights_of(network, "a machine, which moves real bytes,")
    if isinstance(layout, Layout):
        if lanes is not None and lanes != layout.lanes:
            raise InputError(f"lanes is {lanes}, but the layout has {layout.lanes}: say it once")
        spec = layout
    else:
        kind = layout or usual_layout(network, machine_of(machine))
        spec = Layout(kind=kind, lanes=MACHINE_LANES if lanes is None else lanes)
    if named == "time" and timing == "replay":
        raise InputError("objective 'time' is the system's: replay's is issue time; leave timing out")
    return MachineCost(network, machine_of(machine), spec, named, timing or "system", seed)
