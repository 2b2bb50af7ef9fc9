"""Feinberg et al. 2020, Figures 8, 9, 10 and 14: energy, time and L1 traffic by stride, on a GPU with eight channels.

Energies count values, ids, row pointers, the input and the output on DQ and DBI; every array crosses the bus once. A
stride costs no time if the GPU of hwmodel.caches.gpu needs no longer than for the order given. Figure 8 adds the core
energy of the traffic behind the L2, so a slower stride pays for its time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.caches.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from papers.stand_ins.cdr_layers import (
    CHANNELS,
    EFFORT,
    ENCODERS,
    FORMATS,
    PLAYED_CHANNELS,
    STRIDES,
    change,
    eight_channels,
    io_energy_pj,
    layer,
    names,
    ordered,
)
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable

GIVEN = "as given"
WIRES = 0.239
"""Share of the wires in the paper's DRAM energy: 12.7 of 53.1 % and 5.3 of 22.2 % (section VIII-A) both give it."""


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a layer and format; with `full` three times the effort, and all of a convolution's output channels."""
    fewer = {"channels": CHANNELS, "played": PLAYED_CHANNELS}
    more: dict[str, Any] = {"effort": 3 * EFFORT} if full else {"effort": EFFORT, **fewer}
    return [{"layer": name, "format": value_format} | more for name in names(full) for value_format in FORMATS]


def compute(job: Job) -> dict[str, Any]:
    """Play the layer in the order given and reordered within each stride."""
    whole, value_format = layer(job["layer"]).first(job.get("channels")), job["format"]
    played = whole.first(job.get("played"))
    by_stride: dict[str, Any] = {}
    for stride in (GIVEN, *STRIDES):
        order = None if stride == GIVEN else ordered(whole.matrix, stride, value_format, effort=job["effort"]).positions
        part = None if order is None else order[: played.matrix.nnz]
        result = simulate_gpu_spmv(played.lay_out(part, value_format), GpuSpec())
        timed = gpu_time(result, GpuSpec(), eight_channels())
        arrays = [(layer_, list(layer_.arrays(o, value_format))) for layer_, o in ((whole, order), (played, part))]
        by_stride[str(stride)] = {
            "time_ns": timed.time_ns,
            "l1_accesses": int(result.l1_accesses.sum()),
            "l1_misses": int(result.misses_by_stream.sum()),
            "io_pj": {encoder: io_energy_pj(arrays[0][1], encoder) for encoder in ENCODERS},
            "dram_pj": {e: io_energy_pj(arrays[1][1], e) + timed.dram.total_energy_pj for e in ENCODERS},
        }
    return by_stride


def savings(result: Any, stride: int | str, what: str) -> tuple[float, ...]:
    """Return the shares saved against DBI and Base+XOR in the order given, then the same two with zero remapping."""
    given, now = result[GIVEN][what], result[str(stride)][what]
    dbi, plain, remapped = ENCODERS
    pairs = ((now[plain], given[dbi]), (now[plain], given[plain]),
             (now[remapped], given[dbi]), (now[remapped], given[remapped]))  # fmt: skip
    return tuple(1 - after / before for after, before in pairs)


def free_strides(result: Any) -> list[int]:
    """Return the strides that cost no time."""
    return [s for s in STRIDES if result[str(s)]["time_ns"] <= result[GIVEN]["time_ns"]]


def best(result: Any, what: str) -> tuple[tuple[float, ...], int] | None:
    """Return the greatest savings at a stride that costs no time, and the stride."""
    return max(((savings(result, s, what), s) for s in free_strides(result)), default=None)


def tables(done: Done) -> list[StudyTable]:
    """Return a table for each figure."""
    against = ("against DBI", "against Base+XOR", "DBI, zeros remapped", "Base+XOR, zeros remapped")
    result = []
    for figure, what, text in ((8, "dram_pj", "DRAM energy"), (9, "io_pj", "DRAM IO energy")):
        rows: list[tuple[Any, ...]] = []
        for job, r in done:
            chosen = best(r, what)
            cells = tuple(f"-{100 * s:.1f} %" for s in chosen[0]) if chosen else ("",) * 4
            rows.append((job["layer"], job["format"], chosen[1] if chosen else "none", *cells))
        for label, reduce in (("average", np.mean), ("most", np.max)):
            values = [f[0] for _, r in done if (f := best(r, what))]
            if values:
                rows.append(
                    (label, "", "", *(f"-{100 * float(reduce(column)):.1f} %" for column in zip(*values, strict=True)))
                )
        title = f"Figure {figure}: {text}, best stride that costs no time"
        drawn = Drawing(str(figure), "layer", f"% of {text} saved", [
            (job["format"], job["layer"], head, 100 * saved)
            for job, r in done if (f := best(r, what)) for head, saved in zip(against[:2], f[0][:2], strict=True)
        ], bars=True)  # fmt: skip
        result.append(StudyTable(title, ("layer", "format", "stride", *against), rows, drawn))
    columns: tuple[tuple[int, tuple[str, ...], tuple[str, ...]], ...] = (
        (10, ("as given, ns",), ("time_ns",)),
        (14, ("L1 accesses as given", "load misses"), ("l1_accesses", "l1_misses")),
    )
    for figure, given, counts in columns:
        rows = [
            (job["layer"], job["format"], *(f"{r[GIVEN][w]:,.0f}" for w in counts),
             *(", ".join(change(r[str(s)][w], r[GIVEN][w]) for w in counts) for s in STRIDES))
            for job, r in done
        ]  # fmt: skip
        text = "execution time" if figure == 10 else "L1 sector accesses, load misses"
        what, shown = counts[0], "execution time" if figure == 10 else "L1 accesses"
        drawn = Drawing(str(figure), "stride", f"{shown} over those as given", [
            (job["format"], s, job["layer"], r[str(s)][what] / r[GIVEN][what]) for job, r in done for s in STRIDES
        ], log="x")  # fmt: skip
        heads = ("layer", "format", *given, *map(str, STRIDES))
        result.append(StudyTable(f"Figure {figure}: {text} by stride", heads, rows, drawn))
    return result


def _free(what: str, column: int, reduce: Any) -> Any:
    def words(done: Done) -> tuple[str, str]:
        values = [chosen[0][column] for _, r in done if (chosen := best(r, what))]
        return (
            (f"{100 * float(reduce(values)):.1f} % over {len(values)} of {len(done)} layers and formats", "")
            if values
            else ("none", "")
        )

    return words


def _dram(column: int, reduce: Any) -> Any:
    """As _free, and what the savings on the wires would be at the paper's share of them in the energy."""

    def words(done: Done) -> tuple[str, str]:
        values = [chosen[0][column] for _, r in done if (chosen := best(r, "io_pj"))]
        ours = _free("dram_pj", column, reduce)(done)[0]
        return f"{ours}; {_at_their_share(float(reduce(values)))}" if values else ours, ""

    return words


def _at_their_share(saved: float) -> str:
    return f"{100 * WIRES * saved:.1f} % at the paper's share of the wires"


def _any_stride(done: Done) -> tuple[str, str]:
    """The most against DBI over all strides, whatever time they cost."""
    most = [max(savings(r, s, what)[0] for _, r in done for s in STRIDES) for what in ("dram_pj", "io_pj")]
    return f"{100 * most[0]:.1f} %; {_at_their_share(most[1])}", ""


def _bandwidth(done: Done) -> tuple[str, str]:
    part = eight_channels()
    o, rate = part.organisation, part.data_rate_mts
    return f"{o.channels * o.device_dq_bits / 8 * rate / 1e3:.1f} GB/s: {o.channels} channels at {rate:,.0f} MT/s", ""


def _slowdown(done: Done) -> tuple[str, str]:
    """The greatest slowdown over strides from 64, apart for the convolution."""

    def most(mine: bool) -> str:
        values = [r[str(s)]["time_ns"] / r[GIVEN]["time_ns"] - 1 for job, r in done for s in STRIDES[1:]
                  if ("conv" in job["layer"]) == mine]  # fmt: skip
        return f"{100 * max(values):+.1f} %" if values else "not run"

    return f"at most {most(False)} on fully connected layers, {most(True)} on convolutions", ""


def _free_of_time(done: Done) -> tuple[str, str]:
    """How many cases have a stride that costs no time, and the longest such stride."""
    free = [free_strides(r) for _, r in done]
    longest = sorted(max(strides) for strides in free if strides)
    span = f"; the longest such stride is {longest[0]} to {longest[-1]}" if longest else ""
    return f"{len(longest)} of {len(done)} layers and formats have one{span}", ""


def _shared_values(done: Done) -> tuple[str, str]:
    """IO energy against Base+XOR in the order given, with shared values and without, at each one's best free stride."""
    parts = []
    for name in ("synthetic fc7, shared", "synthetic fc7"):
        saved = [f[0][1] for job, r in done if job["layer"] == name and (f := best(r, "io_pj"))]
        parts.append(f"{100 * float(np.mean(saved)):.1f} %" if saved else "not run")
    return f"{parts[0]} with 32 shared values; {parts[1]} without", ""


def _by_format(done: Done) -> tuple[str, str]:
    """IO energy against Base+XOR in the order given, by format."""
    parts = []
    for value_format in FORMATS:
        mine = [(job, r) for job, r in done if job["format"] == value_format]
        saved = [f[0][1] for _, r in mine if (f := best(r, "io_pj"))]
        parts.append(f"{value_format} {100 * float(np.mean(saved)):.1f} %" if saved else f"{value_format} not run")
    return "; ".join(parts), ""


def _l1(done: Done) -> tuple[str, str]:
    """Figure 14's layer: accesses and load misses of the L1 by stride, against the order given."""
    results = [r for job, r in done if job["layer"] == "synthetic fc7, shared" and job["format"] == FORMATS[0]]
    if not results:
        return "not run", ""
    (result,) = results
    parts = []
    for what, name in (("l1_accesses", "accesses"), ("l1_misses", "load misses")):
        changes = ", ".join(change(result[str(s)][what], result[GIVEN][what]) for s in STRIDES)
        parts.append(f"{name} {changes}")
    return "; ".join(parts) + f" at strides {', '.join(map(str, STRIDES))}", ""


STUDIES.register("cdr-strides", summary="Figures 8, 9, 10 and 14: energy, time and L1 traffic by stride")(
    Study(
        jobs,
        compute,
        tables,
        {
            "io-dbi": _free("io_pj", 0, np.mean),
            "io-base-xor": _free("io_pj", 1, np.mean),
            "io-base-xor-most": _free("io_pj", 1, np.max),
            "dram-dbi": _dram(0, np.mean),
            "dram-dbi-most": _any_stride,
            "dram-base-xor": _dram(1, np.mean),
            "dram-base-xor-most": _dram(1, np.max),
            "bandwidth": _bandwidth,
            "slowdown": _slowdown,
            "free-of-time": _free_of_time,
            "shared-values": _shared_values,
            "by-format": _by_format,
            "l1": _l1,
        },
    )
)
