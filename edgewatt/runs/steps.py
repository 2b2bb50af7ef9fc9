"""The steps of a point, in one table: the fields each reads, the steps before it, how it is made and what is kept.

Everything else that has to know how points hang together is derived from the table: which results two points share
(`identities`, `shared`), what a sweep would compute (`own_steps`), what the memo keeps, and what a record holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from edgewatt.results.record import canonical_json, hash_of_text
from edgewatt.runs import io_steps, machine, network_steps
from edgewatt.runs.model import Before, Point
from traces.base.errors import InputError
from traces.base.progress import Progress


def _always(point: Point) -> bool:
    return True


def _network(point: Point) -> bool:
    return point.order is not None


def _machine(point: Point) -> bool:
    return point.order is None or point.measure.measure == "all"


def _traced(point: Point) -> bool:
    return _machine(point) and point.machine.gpu is None


def _nothing(point: Point) -> tuple[str, ...]:
    return ()


def _machine_if_lowered(point: Point) -> tuple[str, ...]:
    return (*_ON_MACHINE, "format", "layout") if network_steps.wants_machine(point) else ()


@dataclass(frozen=True)
class Step:
    """One step of a point.

    reads: fields of the point, dotted; a field that a point does not have is nothing to depend on. derived: further
    values that count, computed from the point. after: the steps whose results it may ask for. when: the points that
    have this step; where a point has not, the result and identity of the first step before it stand in for it.
    make: (point, results before, progress) -> result. keep: 'arrays' and 'json' in the store, 'memory' in this process,
    'nothing'. reports: what the record holds of the result. content: names the result by its content, so that later
    steps are shared by points that came to it in different ways. shared_as: what estimates call it. check: raises
    InputError for arrays of a file that the step cannot have made: (arrays, results before).
    reads_also: further fields that some points read.
    """

    name: str
    reads: tuple[str, ...]
    after: tuple[str, ...]
    make: Callable[[Point, Before, Progress | None], Any]
    keep: Literal["arrays", "json", "memory", "nothing"] = "json"
    when: Callable[[Point], bool] = _always
    reports: Callable[[Any], Mapping[str, Any]] | None = None
    content: Callable[[Any], str] | None = None
    derived: Mapping[str, Callable[[Point], Any]] = field(default_factory=dict)
    shared_as: str = ""
    check: Callable[[Any, Before], None] | None = None
    reads_also: Callable[[Point], tuple[str, ...]] = _nothing


def _all(result: Any) -> Mapping[str, Any]:
    parts: Mapping[str, Any] = result
    return parts


_ON_MACHINE = ("caches", "scratchpad", "technology", "bus", "encoder", "engine", "dram", "timing")
_MEMORY = ("fast_memory.size", "fast_memory.policy", "fast_memory.pinning")

STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        Step(
            "network",
            reads=("network",),
            after=(),
            make=network_steps.load_network,
            keep="memory",
            when=_network,
            reports=network_steps.describe,
            shared_as="networks",
        ),
        Step(
            "ordering",
            reads=("ordering", "search", "seed", *_MEMORY),
            after=("network",),
            make=network_steps.order_edges,
            keep="arrays",
            when=_network,
            reports=network_steps.describe_order,
            check=network_steps.check_found_order,
            content=network_steps.order_hash,
            shared_as="orderings",
            reads_also=_machine_if_lowered,
        ),
        Step(
            "tuple_order",
            reads=("stride", "format", "layout", "encoder", "bus", "seed"),
            after=("ordering", "network"),
            make=network_steps.order_tuples,
            keep="arrays",
            when=network_steps.has_tuple_order,
            check=network_steps.check_order,
            content=network_steps.order_hash,
            shared_as="tuple orders",
            reads_also=network_steps.memory_if_io_neutral,
        ),
        Step(
            "io",
            reads=("fast_memory",),
            after=("tuple_order", "network"),
            make=io_steps.count_io,
            when=_network,
            reports=_all,
        ),
        Step("two_optimal", reads=_MEMORY, after=("network",), make=io_steps.two_optimal_io, when=_network),
        Step(
            "best_bound",
            reads=("fast_memory.size",),
            after=("network",),
            make=io_steps.best_bound,
            when=_network,
            reports=_all,
        ),
        Step(
            "gaps",
            reads=(),
            after=("io", "two_optimal", "best_bound"),
            make=io_steps.gaps,
            keep="nothing",
            when=_network,
            reports=_all,
        ),
        Step(
            "trace",
            reads=("trace", "sample", "batch", "format", "layout"),
            derived={"seed": lambda point: None if point.order is None else point.measure.seed},
            after=("tuple_order", "network"),
            make=network_steps.make_trace,
            keep="memory",
            when=_traced,
        ),
        Step(
            "accuracy",
            reads=("accuracy", "format", "layout"),
            derived={"seed": lambda point: point.measure.seed},
            after=("tuple_order", "network"),
            make=network_steps.measure_accuracy,
            when=lambda point: point.order is not None and point.measure.accuracy,
            reports=_all,
            shared_as="accuracies",
        ),
        Step(
            "cache_pass",
            reads=("caches", "scratchpad", "engine.access_bytes"),
            derived={"block_bytes": machine.burst_bytes},
            after=("trace",),
            make=machine.keep_pass,
            keep="arrays",
            when=lambda point: _traced(point) and point.measure.timing == "replay",
            check=machine.check_pass,
            shared_as="cache passes",
        ),
        Step(
            "replay",
            reads=(*_ON_MACHINE, "engines", "gpu", "format"),
            after=("trace", "cache_pass", "network"),
            make=machine.simulate_point,
            when=_machine,
            reports=_all,
            shared_as="replays",
        ),
    )
}
"""Name -> step; every step comes after those it names."""

OPTIONAL = frozenset({"cache_pass"})
"""Steps that are made only for points that share them."""

_ARRAYS = frozenset(name for name, step in STEPS.items() if step.keep == "arrays")


StepsOf = Mapping[str, Step | None]


def steps_of(point: Point) -> StepsOf:
    """Return name -> the step of that name, or what stands in for it in this point; None if nothing does."""
    steps: dict[str, Step | None] = {}
    for name, step in STEPS.items():
        steps[name] = step if step.when(point) else steps[step.after[0]] if step.after else None
    return steps


def own_steps(steps: StepsOf) -> list[Step]:
    """Return the steps that a point has itself, in the order in which they can be made."""
    return [step for name, step in steps.items() if step is STEPS[name]]


def inputs(steps: StepsOf, step: Step) -> dict[str, Step]:
    """Return the steps before a step that a point has, by the name that the step knows them by."""
    given = {}
    for name in step.after:
        before = steps[name]
        if before is not None and name not in OPTIONAL:
            given[name] = before
    return given


def name_of(point: Point, step: Step, before: Mapping[str, str]) -> str:
    """Return what names a step's result: the hash of all that it depends on, as JSON.

    before: the names of the steps before it, as canonical JSON. A step that reads a file may raise InputError.
    """
    paths = (*step.reads, *step.reads_also(point))
    own = f'"fields":{point.text(paths)}'
    if point.plugins:
        roots = {path.split(".")[0] for path in paths}
        outside = {key: value for key, value in point.plugins.items() if key in roots}
        own += f',"plugins":{canonical_json(outside)}' if outside else ""
    if step.derived:
        derived = {name: derive(point) for name, derive in step.derived.items()}
        own = f'"derived":{canonical_json(derived)},{own}'
    names = ",".join([f'"{asked}":{before[asked]}' for asked in sorted(before)])
    return hash_of_text(f'["{step.name}",{{{own}}},{{{names}}}]')


def identities(point: Point, wanted: frozenset[str] = frozenset(STEPS)) -> dict[str, str]:
    """Return step -> what names its result before anything is computed, for the steps that the point has.

    wanted: the steps that are asked for; those before them are named, too. A step that depends on a file which cannot
    be read is left out: computing the point will say so.
    """
    names: dict[str, str] = {}
    steps, named = steps_of(point), _with_those_before(wanted)
    for step in own_steps(steps):
        if step.name not in named:
            continue
        before = {asked: names.get(given.name) for asked, given in inputs(steps, step).items()}
        try:
            names[step.name] = name_of(
                point, step, {asked: f'"{name}"' if name else "null" for asked, name in before.items()}
            )
        except InputError:
            continue
    return names


@cache
def _with_those_before(names: frozenset[str]) -> frozenset[str]:
    needed = set(names)
    for name, step in reversed(list(STEPS.items())):
        if name in needed:
            needed.update(step.after)
    return frozenset(needed)


def shared(named: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return, for each point that shares arrays of steps with another one, the names of those steps.

    named: hash of each point -> its `identities`.
    """
    users: dict[tuple[str, str], list[str]] = {}
    for point_hash, names in named.items():
        for step in _ARRAYS & names.keys():
            users.setdefault((step, names[step]), []).append(point_hash)
    by_point: dict[str, list[str]] = {}
    for (step, _), sharers in users.items():
        for point_hash in sharers if len(sharers) > 1 else ():
            by_point.setdefault(point_hash, []).append(step)
    return by_point
