"""Reproduce the evaluation of Feinberg et al. 2020 (commutative data reordering) on networks that can be had.

    python scripts/reproduce_cdr.py             # what there is
    python scripts/reproduce_cdr.py fig9        # one figure of the paper: fig8 ... fig15
    python scripts/reproduce_cdr.py all

Layers: the shipped digits networks, the pruned trained matrices of EDGEWATT_REFERENCE if it is set, synthetic rows in
the shape of AlexNet fc7 (4096 columns at 9 %), plain and with 32 shared values as Deep Compression leaves them, and
half an AlexNet conv4 (192 x 192 x 3 x 3 at 37 % on 13 x 13), computed by direct sparse convolution: a product per
output position, 16 output channels of it where the GPU plays it (time, fig8, fig14). The paper's own networks and its
GPU simulator are not at hand, so percentages stand beside the paper's for orientation; what is not comparable is said
under each table. Energies count values, ids, row pointers, the input (half zeros, as after a ReLU) and the output on DQ
and DBI of an LPDDR4-3200 x16 part. A stride costs no time if hwmodel.caches.gpu (Table I of the paper, eight such
channels) needs no longer than for the matrix in the order given. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduce_cdr_locality import eight_channels

import edgewatt as ew
from edgewatt.cli.output import show_table
from hwmodel.caches.gpu import GpuResult, GpuSpec, GpuTime, gpu_time, simulate_gpu_spmv
from hwmodel.energy.memory import wire_constants_pj
from traces.access.spmv import SpmvProblem, convolution_matrix, lay_out_convolution, lay_out_spmv
from traces.base.errors import InputError
from traces.formats import to_bits

ROOT = Path(__file__).parents[1]
PART = "lpddr4-3200"
STRIDES = (32, 64, 128, 256, 512)
FORMATS = ("fp16", "int8")
CONVOLUTION = "synthetic conv4"
PLAYED_CHANNELS = 16
EFFORT = 0.3  # of the tuple search; --effort


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer as the matrix it is stored as; with weights and image it is a convolution padded by one."""

    matrix: Any
    x: np.ndarray
    weights: np.ndarray | None = None

    def lay_out(self, order: np.ndarray | None, value_format: str) -> SpmvProblem:
        if self.weights is None:
            return lay_out_spmv(self.matrix, self.x, positions=order, value_format=value_format, vector_format="fp16")
        return lay_out_convolution(
            self.weights, self.x, positions=order, padding=1, value_format=value_format, vector_format="fp16"
        )

    def played(self) -> Layer:
        """What the GPU plays: all of it, or 16 output channels of a convolution."""
        if self.weights is None:
            return self
        return Layer(self.matrix[:PLAYED_CHANNELS], self.x, self.weights[:PLAYED_CHANNELS])

    def arrays(self, order: np.ndarray | None, value_format: str) -> Iterator[tuple[np.ndarray, str]]:
        """Everything that has to move once, with the direction it goes."""
        order = np.arange(self.matrix.nnz) if order is None else order
        problem = self.lay_out(None, value_format)
        y = np.stack([problem.products(p) for p in range(len(problem.x_shift))], axis=-1)
        yield to_bits(self.matrix.data, value_format)[0][order], "read"
        yield self.matrix.indices[order].astype(np.uint16), "read"
        yield self.matrix.indptr.astype(np.uint32), "read"
        yield problem.x.astype(np.float16), "read"
        yield y.astype(np.float16), "write"


def pruned(shape: tuple[int, ...], density: float) -> np.ndarray:
    dense = np.random.default_rng(7).normal(0, 0.01, shape).astype(np.float32)
    return dense * (np.abs(dense) > np.quantile(np.abs(dense), 1 - density))


def activations(*shape: int) -> np.ndarray:
    return np.maximum(np.random.default_rng(1).normal(0, 1, shape), 0).astype(np.float32)


def shared(matrix: Any) -> Any:
    """32 shared values: the means of equally full bins, zero excepted."""
    edges = np.quantile(matrix.data, np.linspace(0, 1, 33))
    place = np.clip(np.searchsorted(edges, matrix.data, side="right") - 1, 0, 31)
    means = np.bincount(place, matrix.data, 32) / np.maximum(np.bincount(place, minlength=32), 1)
    return sp.csr_matrix((means[place].astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


@cache
def fully_connected() -> Any:
    return sp.csr_matrix(pruned((64, 4096), 0.09))


@cache
def layers() -> dict[str, Layer]:
    found = {"synthetic fc7": fully_connected(), "synthetic fc7, shared": shared(fully_connected())}
    for name in ("digits_small", "digits_wide"):
        network = ew.load(ROOT / "configs" / "examples" / "networks" / f"{name}.npz")
        k = 1  # the hidden layer
        here = np.flatnonzero(network.layer == k)
        rows, columns = network.targets[here], network.sources[here]
        shape = (int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1)
        found[f"{name} hidden"] = sp.csr_matrix(
            (network.weights[here], (rows - rows.min(), columns - columns.min())), shape=shape
        )
    folder = os.environ.get("EDGEWATT_REFERENCE")
    for name in ("ad01_dense0_d10", "resnet8_conv7_d20") if folder else ():
        with np.load(Path(str(folder)) / "cdr" / f"{name}.npz") as z:
            found[name] = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    kernel = pruned((192, 192, 3, 3), 0.37)
    convolution = Layer(convolution_matrix(kernel, 15, 15), activations(192, 13, 13), kernel)
    every = {name: Layer(matrix, activations(matrix.shape[1])) for name, matrix in found.items()}
    return {**every, CONVOLUTION: convolution}


def ordered(matrix: Any, stride: int | str, value_format: str, **kind: Any) -> Any:
    return ew.order_tuples(matrix, value_format=value_format, stride=stride, effort=EFFORT, bound=False, **kind)


@cache
def positions(name: str, stride: int | str, value_format: str) -> np.ndarray:
    return ordered(layers()[name].matrix, stride, value_format).positions


def io_energy_pj(arrays: Iterable[tuple[np.ndarray, str]], encoder: str) -> float:
    part, total = ew.load_part(PART), 0.0
    for array, way in arrays:
        flat = array.reshape(-1)
        sent = ew.encode(flat, encoder, element_bytes=flat.itemsize)
        for group, wires in (("dq", sent.wires.data), ("dbi", sent.wires.flag)):
            per_one, per_rise = wire_constants_pj(part, group, way, part.beat_ns)
            total += per_one * int(wires.ones.sum()) + per_rise * int(wires.rising.sum())
    return total


@cache
def played(name: str, value_format: str, stride: int | None) -> tuple[GpuResult, GpuTime]:
    """A layer on the GPU, its tuples as given (None) or reordered."""
    layer = layers()[name].played()
    order = None if stride is None else positions(name, stride, value_format)[: layer.matrix.nnz]
    result = simulate_gpu_spmv(layer.lay_out(order, value_format), GpuSpec())
    return result, gpu_time(result, GpuSpec(), eight_channels())


def slowdown(name: str, value_format: str, stride: int) -> float:
    return played(name, value_format, stride)[1].time_ns / played(name, value_format, None)[1].time_ns - 1


def percent(after: float, before: float) -> str:
    return f"{100 * after / before - 100:+.1f} %"


Energies = tuple[float, float, float]  # pJ under DBI, Base+XOR and DBI, Base+XOR with zero remapping and DBI
ENCODERS = ("dbi-dc", "base-xor+dbi-dc", "base-xor-zdr+dbi-dc")


@cache
def energies(name: str, value_format: str, stride: int | None, core: bool) -> Energies:
    layer = layers()[name].played() if core else layers()[name]
    order = None if stride is None else positions(name, stride, value_format)[: layer.matrix.nnz]
    add = played(name, value_format, stride)[1].dram.total_energy_pj if core else 0.0
    arrays = list(layer.arrays(order, value_format))
    dbi, bx, zdr = (io_energy_pj(arrays, encoder) + add for encoder in ENCODERS)
    return dbi, bx, zdr


def saved(name: str, value_format: str, stride: int | None, core: bool) -> tuple[float, float, float, float]:
    """Percent below DBI and below Base+XOR in the order given; the same two with zero remapping."""
    given, now = energies(name, value_format, None, core), energies(name, value_format, stride, core)
    pairs = ((now[1], given[0]), (now[1], given[1]), (now[2], given[0]), (now[2], given[2]))
    a, b, c, d = (100 * (1 - after / before) for after, before in pairs)
    return a, b, c, d


def change(saving: float) -> str:
    return f"{0 - round(saving, 1):+.1f} %"


def energy_figure(core: bool, title: str, papers: tuple[str, str]) -> None:
    """All strides, then the best stride that costs no time beside the paper's figures."""
    rows: list[tuple[object, ...]] = []
    best: list[tuple[object, ...]] = []
    free_savings = []
    for name in layers():
        for value_format in FORMATS:
            shown = [change(s) for s in saved(name, value_format, None, core)]
            rows.append((name, value_format, "as given", "", *shown))
            free: list[tuple[tuple[float, ...], int]] = []
            for stride in STRIDES:
                here, slower = saved(name, value_format, stride, core), slowdown(name, value_format, stride)
                rows.append((name, value_format, stride, f"{100 * slower:+.2f} %", *map(change, here)))
                if slower <= 0:
                    free.append((here, stride))
            if free:
                chosen, stride = max(free)
                free_savings.append(chosen)
                best.append((name, value_format, stride, *map(change, chosen)))
            else:
                best.append((name, value_format, "none", *("-",) * 4))
    heads = ("vs DBI", "vs Base+XOR", "vs DBI, zero remap", "vs Base+XOR, zero remap")
    show_table(("layer", "format", "stride", "time", *heads), rows, title=title)
    for label, reduce in (("average", np.mean), ("most", np.max)):
        values = [change(float(reduce([s[k] for s in free_savings]))) for k in range(4)] if free_savings else []
        best.append((label, "", "", *values))
    best.append(("the paper", "", "", *papers, "", ""))
    show_table(("layer", "format", "stride", *heads), best, title="The best stride that costs no time")


def fig8() -> None:
    """Figure 8: DRAM energy (core and IO) by stride and format"""
    energy_figure(True, str(fig8.__doc__), ("-12.7 % (average)", "-5.3 % (average)"))
    print("Core energy is that of the simulated traffic behind the L2 on eight channels, so a slower stride pays for")
    print(
        "its time. Not comparable: one product of one small layer, not a whole network on GPGPU-Sim; eight x16 channels"
    )
    print("idle or refreshing weigh more than the paper's four controllers.")


def fig9() -> None:
    """Figure 9: DRAM IO energy by stride and format"""
    energy_figure(False, str(fig9.__doc__), ("-53.1 % (up to)", "-22.2 % (up to)"))
    print("Every array crosses the bus once. Not comparable: other networks; LPDDR4 terminated to VSSQ with energy per")
    print("rising edge. The paper's 53.1 % and 22.2 % are the most it reaches at strides that cost no time.")


def gpu_table(figure: int, head: tuple[str, ...], title: str) -> None:
    rows: list[tuple[object, ...]] = []
    for name in layers():
        for value_format in FORMATS if figure == 10 else FORMATS[:1]:
            base: tuple[float, ...] = ()
            for stride in (None, *STRIDES):
                result, timed = played(name, value_format, stride)
                counts = (int(result.l1_accesses.sum()), int(result.misses_by_stream.sum()))
                values: tuple[float, ...] = (timed.time_ns,) if figure == 10 else counts
                base = base or values
                shown = (f"{v:.0f} ({percent(v, b)})" for v, b in zip(values, base, strict=True))
                rows.append((name, value_format, stride or "as given", *shown))
    show_table(("layer", "format", "stride", *head), rows, title=title)


def fig10() -> None:
    """Figure 10: execution time by stride and format"""
    gpu_table(10, ("ns",), str(fig10.__doc__))
    print("The paper: at most 2.1 % slower, most under 1.1 %, convolutions less sensitive. Not comparable: our GPU")
    print("knows the L1's width and the memory, no latencies; what a convolution reads is in the caches, so it runs at")
    print("the speed of the L1, where every line that an order scatters costs a clock.")


def fig11() -> None:
    """Figure 11: optimisation time by stride, beside OR-Tools"""
    rows = []
    matrix = fully_connected()[:8]
    for stride in STRIDES:
        start = time.process_time()
        found = ordered(matrix, stride, "fp16")
        ours = time.process_time() - start
        routed = ew.order_tuples(matrix, value_format="fp16", stride=stride, method="or-tools-cvrp", bound=False)
        theirs = time.process_time() - start - ours
        rows.append((stride, f"{1e3 * ours / 8:.1f}", f"{1e3 * theirs / 8:.1f}", found.ones, routed.ones))
    columns = ("stride", "ours, ms per row", "OR-Tools, ms per row", "ones, ours", "ones, OR-Tools")
    show_table(columns, rows, title=fig11.__doc__)
    print("The paper: OR-Tools greedy descent, up to 3 hours for 33278 rows at stride 512, 0.31 s a row.")
    print(f"8 rows of 369 tuples; effort {EFFORT}. Not comparable: another OR-Tools version and processor.")


def fig12() -> None:
    """Figure 12: ones by stride"""
    rows = []
    for name, layer in layers().items():
        matrix = layer.matrix
        for value_format in ("fp16", "int8"):
            bits = [ordered_ones(matrix, positions(name, s, value_format), value_format) for s in (*STRIDES, "row")]
            given = ordered_ones(matrix, np.arange(matrix.nnz), value_format)
            changes = (percent(b, given) for b in bits)
            rows.append((name, value_format, given, *changes, f"{100 * (bits[0] - bits[-1]) / given:.1f} %"))
    show_table(("network", "format", "given", *map(str, STRIDES), "row", "32 to row"), rows, title=fig12.__doc__)
    print("The paper: 13.1 % from the smallest stride to unrestricted, 11.4 % without Deep Compression.")
    print("Ones of values and ids under Base+XOR and DBI. Row pointers and vectors are not in this figure.")


def ordered_ones(matrix: sp.csr_matrix, order: np.ndarray, value_format: str, **kind: Any) -> int:
    pair = (to_bits(matrix.data, value_format)[0], matrix.indices.astype(np.uint16))
    return sum(ew.encode(a[order], "base-xor+dbi-dc", element_bytes=a.itemsize, **kind).ones for a in pair)


def fig13() -> None:
    """Figure 13: ones by distance of bases"""
    rows = []
    for name, layer in layers().items():
        matrix = layer.matrix
        cells: list[str] = []
        for interval in (32, 64, 128, "row", "matrix"):
            found = ordered(matrix, "row", "fp16", base_interval=interval)
            cells.append(f"{found.ones} ({percent(found.ones, found.original_ones)})")
        rows.append((name, *cells))
    show_table(("network", "32 bytes", "64", "128", "row", "matrix"), rows, title=fig13.__doc__)
    print("The paper: with one base for the matrix 32 % fewer ones than Base+XOR alone.")
    print("Whole-row strides, fp16; change against Base+XOR and DBI with the same bases in the order given.")


def fig14() -> None:
    """Figure 14: L1 accesses and misses by stride"""
    gpu_table(14, ("L1 sector accesses", "L1 load misses"), str(fig14.__doc__))
    print("The paper: both rise on an_dc_fc7; its text has no numbers. Assumptions on the L1 that Table I leaves open:")
    print("hwmodel/caches/gpu.py. At 1024 rows: scripts/reproduce_cdr_locality.py.")


def fig15() -> None:
    """Figure 15: fp16 and bfloat16"""
    rows = []
    for name in layers():
        found = [ordered(layers()[name].matrix, 128, value_format) for value_format in ("fp16", "bf16")]
        rows.append(
            (
                name,
                *(f"{f.original_ones_values} -> {f.ones_values} ({percent(f.ones, f.original_ones)})" for f in found),
                percent(found[1].original_ones_values, found[0].original_ones_values),
            )
        )
    columns = ("network", "fp16 values (all)", "bf16 values (all)", "bf16 against fp16 values, as given")
    show_table(columns, rows, title=fig15.__doc__)
    print("The paper: like savings; bf16 values have 9.4 % more ones under Base+XOR.")
    print("Stride 128, Base+XOR and DBI. In brackets values and ids together.")


FIGURES = {f.__name__: f for f in (fig8, fig9, fig10, fig11, fig12, fig13, fig14, fig15)}


def main() -> None:
    global EFFORT
    figures = "\n".join(f"  {name:6} {(f.__doc__ or '').split(': ')[1]}" for name, f in FIGURES.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"figures:\n{figures}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="fig8 ... fig15, all")
    parser.add_argument("--effort", type=float, default=EFFORT, help="work of the tuple search (default: %(default)s)")
    parser.add_argument("--layer", action="append", help="only layers whose name contains this (repeatable)")
    given = parser.parse_args()
    if not given.figures:
        parser.print_help()
        return
    for wanted in given.figures:
        if wanted not in (*FIGURES, "all"):
            parser.error(f"unknown figure {wanted!r}: {', '.join(FIGURES)} or all")
    EFFORT = given.effort
    if given.layer:
        known = layers()
        for name in [name for name in known if not any(part in name for part in given.layer)]:
            del known[name]
        if not known:
            parser.error(f"no layer has {' or '.join(given.layer)} in its name")
    for name in FIGURES if "all" in given.figures else given.figures:
        try:
            FIGURES[name]()
        except InputError as error:  # such as OR-Tools missing for fig11: the message has the command that installs it
            parser.exit(1, f"{name}: {error}\n")


if __name__ == "__main__":
    main()
