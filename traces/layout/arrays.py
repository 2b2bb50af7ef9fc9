"""Layouts of separate arrays: coordinates (coo), compressed columns (csc), compressed rows (csr), ELLPACK (ell): rows
padded to the longest of their layer, so that no pointers are needed."""

from __future__ import annotations

import numpy as np

from traces.layout.kind import LAYOUTS, Int64Array, LayoutKind, Loads, Space, Steps, Stored, named_rows, run_starts
from traces.networks.network import Network


class Coo(LayoutKind):
    ids = ("source", "target")


class Csc(LayoutKind):
    runs_of = "source"
    ids = ("target",)
    pointers = True


class Csr(LayoutKind):
    runs_of = "target"
    ids = ("source",)
    pointers = True


class Ell(LayoutKind):
    runs_of = "target"
    ids = ("source",)

    def steps(self, network: Network, edges: Int64Array) -> Steps:
        run_start = run_starts(network.targets[edges])
        lengths = np.diff(run_start)
        group = network.layer[edges[run_start[:-1]]] if network.layer is not None else np.zeros(len(lengths), int)
        widest = np.zeros(int(group.max()) + 1, np.int64)
        np.maximum.at(widest, group, lengths)
        repeats = np.ones(len(edges), np.int64)
        repeats[run_start[1:] - 1] += widest[group] - lengths
        return Steps.of(network, edges, "target", repeats)

    def structure(self, stored: Stored, space: Space) -> Loads:
        rows = stored.steps.major[stored.steps.run_start[:-1]]
        return named_rows(stored, space, "row_index") if (np.diff(rows) != 1).any() else Loads.none()


LAYOUTS.register("coo", summary="values, row ids, column ids")(Coo())
LAYOUTS.register("csc", summary="values, row ids, column pointers")(Csc())
LAYOUTS.register("csr", summary="values, column ids, row pointers")(Csr())
LAYOUTS.register("ell", summary="rows padded to the longest")(Ell())
