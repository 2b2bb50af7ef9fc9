"""Feinberg et al. 2020, Figures 8, 9, 10 and 14: energy, time and L1 traffic by stride, on a GPU with eight channels.

Energies count values, ids, row pointers, the input and the output on DQ and DBI; every array crosses the bus once. A
stride costs no time if the GPU of hwmodel.caches.gpu needs no longer than for the order given. Figure 8 adds the core
energy of the traffic behind the L2, so a slower stride pays for its time. The GPU model has no latency hiding (no warps
in flight), so a stride that scatters lines pays each of them; and at stride 32, a warp's own elements, no order can
change which lines a warp reads, so that it costs no time says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwmodel.caches.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies import cdr_layers as layers
from papers.studies.cdr_layers import EFFORT, ENCODERS, FORMATS, LAYERS, STRIDES

GIVEN = "as given"
ROWS, FEW = 32, 8
WITHIN: tuple[int | str, ...] = (*STRIDES, "row")
NAMES = {"dbi": ENCODERS[0], "base-xor": ENCODERS[1], "base-xor, zeros remapped": ENCODERS[2]}


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a layer and format; `full`: three times the effort and eight times the rows."""
    effort = {"effort": 3 * EFFORT if full else EFFORT}
    rows = {name: (FEW if "conv4" in name else ROWS) * (8 if full else 1) for name in LAYERS}
    return [{"layer": name, "format": f, "rows": n, **effort} for name, n in rows.items() for f in FORMATS]


def compute(job: Job) -> dict[str, Any]:
    """Play the layer in the order given and reordered within each stride."""
    played, value_format = layers.layer(job["layer"], job["rows"]), job["format"]
    by_stride: dict[str, Any] = {}
    for stride in (GIVEN, *WITHIN):
        order = None
        if stride != GIVEN:
            order = layers.ordered(played.matrix, stride, value_format, effort=job["effort"]).positions
        result = simulate_gpu_spmv(played.lay_out(order, value_format), GpuSpec())
        timed = gpu_time(result, GpuSpec(), layers.eight_channels())
        arrays = list(played.arrays(order, value_format))
        wires = {name: layers.io_energy_pj(arrays, encoder) for name, encoder in NAMES.items()}
        by_stride[str(stride)] = {
            "time_ns": timed.time_ns, "l1_accesses": int(result.l1_accesses.sum()),
            "l1_misses": int(result.misses_by_stream.sum()), "io_pj": wires, "rest_pj": timed.dram.total_energy_pj,
        }  # fmt: skip
    return by_stride


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row a stride: per cent against the order given, energies against DBI's and against Base+XOR's."""
    given, found = result[GIVEN], []
    for stride in WITHIN:
        now = result[str(stride)]
        row: Row = {**job, "stride": str(stride)}
        for name, key in (("time", "time_ns"), ("L1 accesses", "l1_accesses"), ("L1 misses", "l1_misses")):
            row[name] = 100 * (now[key] / given[key] - 1)
        after = now["io_pj"]["base-xor"]
        for name in ("dbi", "base-xor"):
            before = given["io_pj"][name]
            row[f"IO, {name}"] = 100 * (1 - after / before)
            row[f"DRAM, {name}"] = 100 * (1 - (after + now["rest_pj"]) / (before + given["rest_pj"]))
            row[f"wires, {name}"] = 100 * before / (before + given["rest_pj"])
        found.append(row)
    free = [row for row in found if row["time"] <= 0 and row["stride"] != "row"]
    best = max(free, key=lambda row: row["IO, base-xor"], default=None)
    return [{**row, "free": row is best} for row in found]


def _bars(number: str, what: str) -> Chart:
    y = (f"{what}, dbi", f"{what}, base-xor")
    return Chart(number, "layer", y, f"% of {what} energy saved, best stride that costs no time", panel="format",
                 where={"free": True}, bars=True)  # fmt: skip


def _lines(number: str, y: str) -> Chart:
    return Chart(number, "stride", (y,), f"{y}, % over the order given", series="layer", panel="format")


FIGURES = [
    Figure(
        "cdr-strides", "feinberg-2020", "8, 9, 10, 14", "Figures 8, 9, 10 and 14: energy, time and L1 traffic by "
                                                        "stride",
        "Layers in the shapes and densities of Table II with Gaussian values; eight x16 channels of LPDDR4-3733 (59.7 "
        "GB/s, Table I). Every array crosses the bus once in Figure 9; Figure 8 adds the core energy of the simulated "
        "traffic. Wires end in VSSQ, and rising edges cost energy. The GPU model has no latency hiding; at stride 32 "
        "no order can cost time, so a stride of 32 that costs none is vacuous.",
        jobs, compute, rows,
        (_bars("8", "DRAM"), _bars("9", "IO"), _lines("10", "time"), _lines("14", "L1 accesses"),
         Table("By stride, %", ("layer", "format", "stride"),
               ("time", "L1 accesses", "L1 misses", "IO, dbi", "IO, base-xor", "DRAM, dbi", "DRAM, base-xor"))),
        (4.0, 60), version=2,
    )
]  # fmt: skip
