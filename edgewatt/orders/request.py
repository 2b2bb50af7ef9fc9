"""What `edgewatt order` is asked for, and all that it finds: an order for the fast memory, a machine or a processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from edgewatt.config.kinds import origins_of
from edgewatt.evaluation.machine_cost import order_on_machine, settled, view_on_machine
from edgewatt.evaluation.renumber import renumber_on_machine
from edgewatt.orders.describe import bound_of_policy, bound_within, describe_order, order_file
from edgewatt.orders.order_comparison import machine_of
from edgewatt.orders.ordering import PROCESSOR_LANES, check_evicts, machine_cost_for, order, usual_layout
from edgewatt.orders.timed import speed_up
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.bounds import NetworkBound
from reorder.edges.bounds.smallest import SmallestMemory, smallest_memory
from reorder.edges.search.budget import Interrupts
from reorder.edges.search.objectives import machine_objective
from reorder.order import order as make_order
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.layout.settings import MACHINE_LANES, Layout
from traces.networks.network import Network
from traces.readers.native import save

__all__ = ["Interrupts", "save"]  # what commands take from here besides


REPORT_OVERRUN_S = 1.0  # seconds after a time limit that are said


def orders_of(network: Network, names: Sequence[str]) -> list[str | Ordering]:
    for name in names:
        if Path(name).suffix in (".npz", ".npy", ".txt") and not Path(name).exists():
            raise InputError(f"{name}: no such file: --order and --against take a file of an order, or a method's name")
    short = [Path(name).name for name in names]
    called = short if len(set(short)) == len(short) else list(names)
    return [
        replace(make_order(network, "file", memory=3, path=name), method=label) if Path(name).exists() else name
        for name, label in zip(names, called, strict=True)
    ]


@dataclass(frozen=True)
class OrderRequest:
    """The options of `edgewatt order`, as its help says; None where one was not given."""

    method: str = "auto"
    memory: int | None = None
    policy: str = "min"
    pinning: str = "literal"
    objective: Any = None
    system: str | None = None
    layout: str | None = None
    timing: str | None = None
    value_format: str | None = None
    target: str | None = None
    lanes: int | None = None
    seed: int = 0
    time_limit_s: float | None = None
    renumber: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class FoundOrder:
    """network: renumbered where that was asked for. result: all figures as plain data. view: on the machine, if any.

    bound: on the I/Os.
    notes: what is to be said beside.
    """

    network: Network
    ordering: Ordering
    memory: int
    policy: str
    pinning: str
    lanes: int | None
    result: dict[str, Any]
    view: Any
    bound: NetworkBound
    notes: tuple[str, ...] = ()


def need_npz(option: str, name: str | None, what: str) -> None:
    if name is not None and Path(name).suffix.lower() not in ("", ".npz"):
        raise InputError(f"{option} {name}: {what} is written as npz: give the file a name that ends in .npz")


def find_order(network: Network, request: OrderRequest, progress: Progress | None = None) -> FoundOrder:
    r = request
    notes: tuple[str, ...] = ()
    wish = r.objective or ("io" if r.system is None else "energy")
    wish = machine_objective(wish) or wish
    model, memory = None, r.memory
    if r.system is not None:
        lanes = MACHINE_LANES if r.lanes is None else r.lanes
        kind = r.layout or usual_layout(network, machine_of(r.system))
        layout = Layout(kind=kind, value_format=r.value_format or "fp32", lanes=lanes)
        model = machine_cost_for(network, wish, r.system, layout=layout, timing=r.timing, seed=r.seed)
        check_evicts(model, r.policy, r.pinning)
        holds = model.shape().memory
        memory = holds if memory is None else memory
        if memory != holds:
            notes = (f"I/Os and bounds are those of M = {memory}; the machine holds M = {holds}",)
    elif any(each is not None for each in (r.layout, r.timing, r.value_format, r.renumber)):
        raise InputError("--layout, --timing, --format and --renumber belong to --system")
    memory = 100 if memory is None else memory
    budget: dict[str, Any] = {"seed": r.seed, "time_limit_s": r.time_limit_s, "progress": progress, **r.parameters}
    if model is None:
        ordering = order(
            network, r.method, memory=memory, policy=r.policy, pinning=r.pinning, objective=wish, target=r.target,
            lanes=r.lanes, **budget,
        )  # fmt: skip
    elif r.renumber is not None:
        if not ORDERINGS[r.method].item.chooses:
            raise InputError(f"--renumber finds its own order: leave out --method {r.method}")
        made = renumber_on_machine(model, **budget)
        network, ordering, model = made.network, made.ordering, made.model
        save(network, r.renumber, extras={"number": made.number})
        plain = f"with the file's numbers and two-optimal {made.plain_fills:,}"
        notes += (f"lines filled: {made.fills:,}, {plain}",)
    else:
        ordering = order_on_machine(model, r.method, memory=memory, **budget)
    timed: dict[str, Any] = {}
    view, policy, pinning, lanes_shown = None, r.policy, r.pinning, r.lanes
    if model is not None:
        began = perf_counter()
        ordering = settled(model, ordering, progress)
        view = view_on_machine(model, ordering, progress)
        after = perf_counter() - began
        if r.time_limit_s is not None and after > REPORT_OVERRUN_S:
            notes += (
                f"the time limit is the search's: the whole simulations behind the figures took {after:.1f} s more",
            )
        wish, policy, pinning = "io", model.evicts["policy"], model.evicts["pinning"]
        timed = {"machine": view.as_dict()}
    elif wish == "time":
        lanes_shown = r.lanes or PROCESSOR_LANES
        timed, wish = speed_up(network, ordering, lanes_shown), "io"
    bound, left_out = bound_within(network, memory, r.time_limit_s)
    bound = bound_of_policy(network, ordering, Task(memory, policy, pinning), bound)
    notes += (left_out,) if left_out else ()
    origins = origins_of({"orderings": {r.method, ordering.method}})
    result = {**describe_order(network, ordering, memory, policy, pinning, wish, bound), **timed, **origins}
    return FoundOrder(network, ordering, memory, policy, pinning, lanes_shown, result, view, bound, notes)


def find_smallest(
    network: Network,
    method: str | None,
    *,
    parameters: Mapping[str, Any],
    seed: int,
    time_limit_s: float | None,
    output: str | None,
    progress: Progress | None = None,
) -> tuple[SmallestMemory, dict[str, Any]]:
    """Return the least M at which an order with minimal I/Os is known, and that as plain data; write the order."""
    given = None
    if parameters:
        given = make_order(network, method or "auto", memory=100, seed=seed, time_limit_s=time_limit_s, **parameters)
    smallest = smallest_memory(network, given, method=method, seed=seed, time_limit_s=time_limit_s, progress=progress)
    result = {**smallest.as_dict(), "network": network.name, "policy": "min", "pinning": "literal"}
    if output:
        made = {
            "parameters": dict(smallest.ordering.parameters),
            "seed": seed,
            "truncated": smallest.ordering.truncated,
        }
        with whole_file(Path(output)) as stream:
            stream.write(order_file(smallest.ordering, {**result, **made}))
    return smallest, result
