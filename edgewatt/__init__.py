"""edgewatt: for this sparse network and this memory system, what does the order of the work cost?

The names below are the stable façade. Each loads its module on first use, so ``import edgewatt`` stays cheap.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from edgewatt._version import __version__

_FACADE = {
    "EdgewattError": "traces.base.errors",
    "run": "edgewatt.runs.sweep",
    "sweep": "edgewatt.runs.sweep",
    "collect": "edgewatt.results.collection",
    "frame": "edgewatt.results.collection",
    "Plots": "edgewatt.pages.figures",
    "init": "edgewatt.config.starter",
    "load_records": "edgewatt.runs.records",
    "rerun": "edgewatt.runs.compute",
    "report": "edgewatt.pages.report",
    "compare": "edgewatt.results.comparison",
    "optimize": "edgewatt.runs.optimization",
    "load_sweep": "edgewatt.runs.plan",
    "estimate": "edgewatt.runs.estimate",
    "catalogue": "edgewatt.catalogue",
    "schema": "edgewatt.catalogue",
    "diagnose": "edgewatt.installation",
    "InputError": "traces.base.errors",
    "Network": "traces.networks.network",
    "from_matrices": "traces.readers.scipy_sparse",
    "from_torch": "traces.readers.parts.torch_modules",
    "load": "traces.readers",
    "OpGraph": "traces.operators.opgraph",
    "schedule": "edgewatt.operators.energy",
    "allocate": "reorder.operators.arena.allocate",
    "Bank": "reorder.operators.arena.banks",
    "rewrite_graph": "reorder.operators.rewriting.rewrite",
    "footprint": "reorder.operators.schedule.operator_problem",
    "offchip_traffic": "reorder.operators.schedule.traffic",
    "randwire": "traces.generators.operators",
    "cell": "traces.generators.operators",
    "count_io": "hwmodel.fastmemory.iomodel",
    "compile_inference": "hwmodel.processor.inference",
    "memory_mask": "edgewatt.orders.memory",
    "prune_for_memory": "edgewatt.orders.memory",
    "order": "edgewatt.orders.ordering",
    "fastest_order": "edgewatt.orders.timed",
    "renumber": "edgewatt.orders.ordering",
    "bench": "edgewatt.checks.bench",
    "io_bounds": "hwmodel.fastmemory.iomodel",
    "io_curve": "hwmodel.fastmemory.iomodel",
    "lower_bound": "reorder.edges.bounds.bounds",
    "smallest_memory": "reorder.edges.bounds.smallest",
    "Ordering": "reorder.base",
    "validate": "edgewatt.checks.run",
    "core_energy": "hwmodel.dram.energy",
    "interface_energy": "hwmodel.dram.energy",
    "token_energy": "edgewatt.memory.token",
    "load_part": "hwmodel.dram.engine",
    "simulate_dram": "hwmodel.dram.engine",
    "simulate_cache": "hwmodel.caches.cache",
    "profile_caches": "hwmodel.replay.profile",
    "build_trace": "traces.trace.build",
    "load_trace": "traces.trace_files.npz",
    "save_trace": "traces.trace_files.npz",
    "export_trace": "traces.trace_files.writer",
    "export_waveform": "hwmodel.replay.waveform",
    "layer_costs": "hwmodel.energy.accelerator",
    "Machine": "hwmodel.machine",
    "CacheSpec": "hwmodel.caches.spec",
    "ScratchpadSpec": "hwmodel.fastmemory.scratchpad",
    "pays": "edgewatt.orders.pays",
    "replay": "hwmodel.replay",
    "encode": "hwmodel.encoders",
    "decode": "hwmodel.encoders",
    "order_tuples": "reorder.tuples",
    "order_channels": "reorder.channels",
    "order_run_tuples": "reorder.joint.inside_runs",
    "order_jointly": "reorder.joint.io_neutral",
    "order_both": "reorder.joint.io_neutral",
}

__all__ = ["__version__", *_FACADE]


def __getattr__(name: str) -> Any:
    if name not in _FACADE:
        raise AttributeError(f"module 'edgewatt' has no attribute {name!r}")
    from edgewatt.installation import check_traces_package

    check_traces_package()
    value = getattr(import_module(_FACADE[name]), name)
    if isinstance(value, FunctionType):
        from traces.base.arguments import checked

        value = checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _FacadeModule(ModuleType):
    """Keeps ``edgewatt.run`` the function: importing the submodule of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _FACADE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FacadeModule
