"""The public names of `edgewatt` and its namespaces, each loaded on first use, and the modules that define them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

PUBLIC: dict[str, dict[str, str]] = {
    "edgewatt": {
        **dict.fromkeys(("EdgewattError", "InputError"), "traces.base.errors"),
        "Network": "traces.networks.network",
        "load": "traces.readers",
        "from_matrices": "traces.readers.scipy_sparse",
        **dict.fromkeys(("from_torch", "to_torch"), "traces.readers.parts.torch_modules"),
        "order": "edgewatt.orders.ordering",
        "Ordering": "reorder.base",
        **dict.fromkeys(("count_io", "io_bounds"), "hwmodel.fastmemory.iomodel"),
        "memory_mask": "edgewatt.orders.memory",
        **dict.fromkeys(("break_even", "pays"), "edgewatt.orders.break_even"),
        "order_tuples": "reorder.tuples",
        **dict.fromkeys(("encode", "decode"), "hwmodel.coding.codec"),
        "Layout": "traces.layout.settings",
        "build_trace": "traces.trace.build",
        "Machine": "hwmodel.machine",
        "CacheSpec": "hwmodel.caches.spec",
        "ScratchpadSpec": "hwmodel.fastmemory.scratchpad",
        "ControllerSpec": "hwmodel.dram.controller",
        "replay": "hwmodel.replay",
        "simulate": "hwmodel.system.simulation",
        "simulate_cache": "hwmodel.caches.cache",
        "simulate_dram": "hwmodel.dram.engine",
        "interface_energy": "hwmodel.dram.energy",
        "token_energy": "edgewatt.memory.token",
        "compile_inference": "hwmodel.processor.inference",
        "schedule": "edgewatt.operators.energy",
        "allocate": "reorder.operators.arena.allocate",
        **dict.fromkeys(("run", "sweep"), "edgewatt.runs.sweep"),
        "Record": "edgewatt.results.record",
        "Results": "edgewatt.runs.run_state",
        "report": "edgewatt.pages.report",
    },
    "edgewatt.orders": {
        "renumber": "edgewatt.orders.ordering",
        "fastest_order": "edgewatt.orders.timed",
        "io_curve": "hwmodel.fastmemory.iomodel",
        "lower_bound": "reorder.edges.bounds.bounds",
        "smallest_memory": "reorder.edges.bounds.smallest",
        "prune_for_memory": "edgewatt.orders.memory",
        "bench": "edgewatt.checks.bench",
    },
    "edgewatt.wires": {
        "order_channels": "reorder.channels",
        **dict.fromkeys(("order_run_tuples", "order_jointly"), "reorder.joint"),
        "export_waveform": "hwmodel.replay.waveform",
    },
    "edgewatt.cache": {
        "profile_caches": "hwmodel.replay.profile",
        **dict.fromkeys(("load_trace", "save_trace"), "traces.trace_files.npz"),
        "export_trace": "traces.trace_files.writer",
    },
    "edgewatt.dram": {
        "load_part": "hwmodel.parts.part_file",
        "core_energy": "hwmodel.dram.energy",
    },
    "edgewatt.operators": {
        "OpGraph": "traces.operators.opgraph",
        "rewrite_graph": "reorder.operators.rewriting.rewrite",
        "footprint": "reorder.operators.schedule.operator_problem",
        "offchip_traffic": "reorder.operators.schedule.traffic",
        "Bank": "reorder.operators.arena.banks",
        "layer_costs": "hwmodel.energy.accelerator",
    },
    "edgewatt.generators": {
        **dict.fromkeys(
            ("random_layered", "uniform_layers", "bert_ffn", "compact_growth"), "traces.generators.networks"
        ),
        "radix_net": "traces.generators.radixnet",
        **dict.fromkeys(("randwire", "cell"), "traces.generators.operators"),
    },
    "edgewatt.results": {
        "load_records": "edgewatt.runs.records",
        **dict.fromkeys(("collect", "frame"), "edgewatt.results.collection"),
        "compare": "edgewatt.results.comparison",
        "optimize": "edgewatt.runs.optimization",
        "rerun": "edgewatt.runs.compute",
        "Plots": "edgewatt.pages.figures",
    },
    "edgewatt.config": {
        "init": "edgewatt.config.starter",
        "load_sweep": "edgewatt.runs.plan",
        "estimate": "edgewatt.runs.estimate",
        **dict.fromkeys(("catalogue", "schema"), "edgewatt.catalogue"),
        "validate": "edgewatt.checks.run",
        "diagnose": "edgewatt.installation",
    },
}
"""Namespace -> public name -> module that defines it."""

SPACES = tuple(space.partition(".")[2] for space in PUBLIC if "." in space)
MOVED = {name: f"{space}.{name}" for space, names in PUBLIC.items() if space != "edgewatt" for name in names}
MOVED["order_both"] = "edgewatt.wires.order_jointly"
"""Names that stood in `edgewatt` before 0.3 are found there for one release, with a warning."""


def public(space: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` of a namespace."""

    def get(name: str) -> Any:
        if name in PUBLIC[space]:
            value = _load(PUBLIC[space][name], name, space)
            setattr(sys.modules[space], name, value)
            return value
        if space == "edgewatt" and name in SPACES:
            return import_module(f"edgewatt.{name}")
        if space == "edgewatt" and name in MOVED:
            warnings.warn(f"edgewatt.{name} is {MOVED[name]} from 0.3 on", DeprecationWarning, stacklevel=2)
            module, _, new = MOVED[name].rpartition(".")
            return getattr(import_module(module), new)
        raise AttributeError(f"module {space!r} has no attribute {name!r}")

    return get, sorted(PUBLIC[space])


def _load(module: str, name: str, space: str) -> Any:
    from edgewatt.installation import check_traces_package

    check_traces_package()
    value = getattr(import_module(module), name)
    if isinstance(value, FunctionType):
        from traces.base.arguments import checked

        value = checked(value)
        value.__module__, value.__qualname__ = space, name  # where pickles, and so pools of processes, find it again
    return value
