"""What `edgewatt prune` is asked for, and all that it finds and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.source import NetworkFiles
from edgewatt.orders.describe import order_file
from edgewatt.orders.memory import prune_for_memory
from edgewatt.orders.request import need_npz
from edgewatt.prune.trained import PrunedNetwork
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.base.units import in_one_unit
from traces.readers import native


@dataclass(frozen=True)
class PruneRequest:
    """The options of `edgewatt prune`, as its help says; None or empty where one was not given."""

    source: NetworkFiles
    calibration: str | None
    density: Sequence[float]
    memory: int | None = None
    system: str | None = None
    lanes: int = 16
    rounds: int = 3
    steps: int = 0
    extra: int = 0
    time_limit_s: float = 5.0
    seed: int = 0
    output: str | None = None
    order: str | None = None


@dataclass(frozen=True, eq=False)
class Pruned:
    name: str
    made: PrunedNetwork

    @property
    def memory(self) -> int:
        return self.made.results[0].memory

    def as_dict(self) -> dict[str, Any]:
        rows = {"results": self.made.results, "front": self.made.front}
        return {"verdict": self.made.verdict, **{key: [r.as_dict() for r in of] for key, of in rows.items()}}

    def table(self) -> dict[str, list[str]]:
        results = self.made.results
        joules, energies = in_one_unit([r.energy_pj for r in results], 1e-12, "J", digits=4)
        seconds, times = in_one_unit([r.time_ns for r in results], 1e-9, "s", digits=4)
        columns = {
            "method": [r.method for r in results],
            "density": [f"{r.density:.3g}" for r in results],
            "connections": [f"{r.connections:,}" for r in results],
            "error": [f"{r.error:.4f}" for r in results],
            "right %": ["-" if r.accuracy is None else f"{100 * r.accuracy:.2f}" for r in results],
            "I/Os": [f"{r.ios:,}" for r in results],
            "bound": [f"{r.bound:,}" for r in results],
            joules: energies,
            seconds: times,
            "front": ["*" if r in self.made.front else "" for r in results],
        }
        return {head: cells for head, cells in columns.items() if set(cells) != {"-"}}

    @property
    def sentences(self) -> tuple[str, str]:
        by_layer = (f"{r.method} {' '.join(f'{e:.3f}' for e in r.layer_errors)}" for r in self.made.results[:2])
        return f"Error by layer, on the vectors fitted to: {'; '.join(by_layer)}.", self.made.verdict


def prune_request(request: PruneRequest, progress: Progress | None = None) -> Pruned:
    r = request
    need_npz("-o", r.output, "a network")
    need_npz("--order", r.order, "an order")
    if r.calibration is None or not r.density:
        missing = "--calibration NPZ (input vectors)" if r.calibration is None else "--density SHARE (what to keep)"
        raise InputError(f"{r.source.files[0]}: pruning needs {missing}")
    network = r.source.network("prune")
    made = prune_for_memory(
        network, calibration=r.calibration, density=r.density, memory=r.memory, system=r.system, lanes=r.lanes,
        rounds=r.rounds, steps=r.steps, extra=r.extra, time_limit_s=r.time_limit_s, seed=r.seed, progress=progress,
    )  # fmt: skip
    first = made.results[0]
    if r.output:
        native.save(made.network, Path(r.output), extras={"error": first.error, "memory": first.memory})
    if r.order:
        about = {
            "network": made.network.name, "memory": first.memory, "policy": "min", "pinning": "literal",
            "method": made.order.method, "parameters": dict(made.order.parameters), "seed": r.seed, "truncated": False,
        }  # fmt: skip
        with whole_file(Path(r.order)) as stream:
            stream.write(order_file(made.order, about))
    return Pruned(network.name, made)
