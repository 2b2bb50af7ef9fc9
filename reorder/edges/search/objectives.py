"""What a search lowers: one small object, linear in runs and in the I/Os of one or more fast memories.

``objective = runs * (number of runs) + sum of weight * (reads + writes of a fast memory)``. Measured time follows
``a*runs + b*io`` rather than I/Os alone (docs/concepts/orderings.md), so both parts are here, and all searches can
keep them up to date term by term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from reorder.base import PINNINGS, POLICIES, Task
from traces.base.errors import InputError, did_you_mean, shown
from traces.networks.checks import checked_memory, policy_codes
from traces.networks.network import Network
from traces.networks.processing import processing_arrays

NAMES = ("io", "runs", "weighted", "memories")
MACHINE_OBJECTIVES = ("energy", "time", "bytes")  # of a whole machine, which the application judges


@dataclass(frozen=True)
class IOTerm:
    """`weight` times the I/Os of a fast memory; what is None is taken from the task."""

    weight: float = 1
    policy: str | None = None
    pinning: str | None = None
    memory: int | None = None

    def within(self, task: Task) -> tuple[float, int, int, int]:
        """Return (weight, policy code, pinning code, memory) with the task's values filled in."""
        codes = policy_codes(self.policy or task.policy, self.pinning or task.pinning)
        return self.weight, *codes, checked_memory(task.memory if self.memory is None else self.memory)


@dataclass(frozen=True)
class Objective:
    """A name, the weight of one run, and the I/O terms. Lower is better."""

    name: str
    runs: float = 0
    io: tuple[IOTerm, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is the I/Os of one fast memory and nothing else."""
        return not self.runs and len(self.io) == 1

    def within(self, task: Task) -> Task:
        """Return the task; of a plain objective with the fast memory it names, so that searches work for that one."""
        if not self.plain:
            return task
        term = self.io[0]
        return replace(
            task, memory=term.memory or task.memory, policy=term.policy or task.policy,
            pinning=term.pinning or task.pinning,
        )  # fmt: skip

    def evaluate(self, network: Network, edges: Any, task: Task) -> float:
        """Return the objective of an order (int[W], an Ordering, or None for the network's own). O(W) per term."""
        sources, targets = processing_arrays(network, edges)
        return self.of_arrays(sources, targets, network, task)

    def of_arrays(
        self,
        sources: npt.NDArray[np.int32],
        targets: npt.NDArray[np.int32],
        network: Network,
        task: Task,
        outputs: npt.NDArray[np.uint8] | None = None,
    ) -> float:
        """Return the objective of connections already in processing order, unchecked: for the inside of searches.

        outputs: uint8[N], the neurons to write where it is not the network's: of a part that others go on from.
        """
        value = self.runs * count_runs(targets) if self.runs else 0
        outputs = network.is_output.astype(np.uint8) if outputs is None else outputs
        for term in self.io:
            weight, policy, pinning, memory = term.within(task)
            counts = kernel.count(sources, targets, network.n_neurons, outputs, memory, policy, pinning)
            value += weight * (len(sources) + int(counts[0] + counts[1] + counts[2]))
        return value


def count_runs(targets: npt.NDArray[Any]) -> int:
    """Return the number of maximal stretches of one target."""
    return 1 + int(np.count_nonzero(np.diff(targets)))


def io(policy: str | None = None, pinning: str | None = None, memory: int | None = None) -> Objective:
    """I/Os (reads plus writes); what is not given is the task's."""
    return Objective("io", io=(IOTerm(1, policy, pinning, memory),))


def runs() -> Objective:
    """The number of runs of one target."""
    return Objective("runs", runs=1)


def weighted(a: float, b: float) -> Objective:
    """``a*runs + b*io``, for instance with a and b fitted to a machine's times."""
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"objective 'weighted': {name} must be a finite number of at least 0, not {shown(value)}")
    if a == b == 0:
        raise InputError("objective 'weighted': a and b are both 0, so every order would be as good as any other")
    return Objective("weighted", runs=a, io=(IOTerm(b),))


def memories(sizes: Sequence[int]) -> Objective:
    """The sum of I/Os at several memory sizes."""
    if isinstance(sizes, str) or not isinstance(sizes, Sequence) or not sizes:
        raise InputError(f"objective 'memories' needs a list of memory sizes, not {shown(sizes)}")
    return Objective("memories", io=tuple(IOTerm(memory=checked_memory(size)) for size in sizes))


_signature = cache(signature)


def make_objective(given: Any) -> Objective:
    """Return the objective for a name, a mapping with `kind`, or an Objective.

    'io'; 'runs'; {'kind': 'io', 'policy': 'lru'}; {'kind': 'weighted', 'a': 2.0, 'b': 1.0};
    {'kind': 'memories', 'sizes': [50, 100, 200]}. Raises InputError for anything else.
    """
    if isinstance(given, Objective):
        return given
    if isinstance(given, str):
        given = {"kind": given}
    of_machine = machine_objective(given)
    if of_machine is not None:
        raise InputError(
            f"objective {of_machine!r} needs a machine: give machine=... (on the command line --system), a name of "
            "`edgewatt list systems`, a YAML file or a Machine"
        )
    if not isinstance(given, Mapping) or "kind" not in given:
        raise InputError(
            f"an objective is a name or a mapping with 'kind', not {shown(given)}{did_you_mean('', NAMES)}"
        )
    options = {str(key): value for key, value in given.items() if key != "kind"}
    makers: dict[str, Callable[..., Objective]] = {"io": io, "runs": runs, "weighted": weighted, "memories": memories}
    kind = given["kind"]
    if not isinstance(kind, str) or kind not in makers:
        meant = did_you_mean(kind, [*makers, *MACHINE_OBJECTIVES])
        needs = "; energy, time and bytes need a machine: machine=..., on the command line --system"
        raise InputError(
            f"unknown objective {kind!r}{meant}{needs if any(n in meant for n in MACHINE_OBJECTIVES) else ''}"
        )
    known = _signature(makers[kind]).parameters
    for key in options:
        if key not in known:
            raise InputError(f"objective {kind!r} has no option {key!r}{did_you_mean(key, known)}")
    if missing := [name for name, each in known.items() if each.default is each.empty and name not in options]:
        raise InputError(f"objective {kind!r} needs {' and '.join(missing)}")
    objective = makers[kind](**options)
    for term in objective.io:
        policy_codes(term.policy or "min", term.pinning or "literal")
        checked_memory(3 if term.memory is None else term.memory)
    return objective


def machine_objective(given: Any) -> str | None:
    """Return the name of an objective of a machine for its name or a mapping with `kind`; None for any other.

    Raises InputError for an option: they have none.
    """
    kind = given.get("kind") if isinstance(given, Mapping) else given
    if not isinstance(kind, str) or kind not in MACHINE_OBJECTIVES:
        return None
    if isinstance(given, Mapping) and len(given) > 1:
        raise InputError(f"objective {kind!r} has no option {next(str(key) for key in given if key != 'kind')!r}")
    return kind


def report(network: Network, edges: Any, task: Task) -> dict[str, float]:
    """Return the order's value under every objective there is: each policy and pinning, runs, and the task's own."""
    sources, targets = processing_arrays(network, edges)
    values: dict[str, float] = {}
    for policy in POLICIES:
        for pinning in PINNINGS[: 1 if policy == "min" else 2]:  # MIN is the same under both
            name = f"io_{policy}" + ("" if pinning == "literal" else f"_{pinning}")
            values[name] = io(policy, pinning).of_arrays(sources, targets, network, task)
    values["runs"] = count_runs(targets)
    own = make_objective(task.objective)
    values["objective"] = own.of_arrays(sources, targets, network, task)
    return values
