"""Reproduce the evaluation of Feinberg et al. 2020 (commutative data reordering) on networks that can be had.

    python scripts/reproduce_cdr.py fig9            # one figure: fig8 ... fig15; no argument: all of them

Networks: the shipped digits networks, the pruned trained matrices of EDGEWATT_REFERENCE if it is set, and synthetic
rows in the shape of AlexNet fc7 (4096 columns at 9 %), plain and with 32 shared values as Deep Compression leaves
them. The paper's own networks and its GPU simulator are not at hand, so percentages stand beside the paper's for
orientation; what is not comparable is said under each table. Energies count values, ids, row pointers, the input vector
(half zeros, as after a ReLU) and the output vector on DQ and DBI of an LPDDR4-3200 x16 part. Times are CPU seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import edgewatt as ew
from edgewatt.cli.output import show_table
from hwmodel.energy import wire_constants_pj
from hwmodel.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from traces.formats import to_bits
from traces.spmv import lay_out_spmv

ROOT = Path(__file__).parents[1]
PART = "lpddr4-3200"
STRIDES: tuple[int | str, ...] = (32, 64, 128, 256, 512)
EFFORT = 0.3


def synthetic(rows: int, shared: bool) -> sp.csr_matrix:
    rng = np.random.default_rng(7)
    dense = rng.normal(0, 0.01, (rows, 4096)).astype(np.float32)
    matrix = sp.csr_matrix(dense * (np.abs(dense) > np.quantile(np.abs(dense), 0.91)))
    if shared:  # 32 shared values: the means of equally full bins, zero excepted
        edges = np.quantile(matrix.data, np.linspace(0, 1, 33))
        place = np.clip(np.searchsorted(edges, matrix.data, side="right") - 1, 0, 31)
        means = np.bincount(place, matrix.data, 32) / np.maximum(np.bincount(place, minlength=32), 1)
        matrix.data = means[place].astype(np.float32)
    return matrix


@cache
def networks() -> dict[str, sp.csr_matrix]:
    found = {"synthetic fc7": synthetic(64, False), "synthetic fc7, shared": synthetic(64, True)}
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
    return found


def ordered(matrix: sp.csr_matrix, stride: int | str, value_format: str, **kind: Any) -> Any:
    return ew.order_tuples(matrix, value_format=value_format, stride=stride, effort=EFFORT, bound=False, **kind)


@cache
def positions(name: str, stride: int | str, value_format: str) -> np.ndarray:
    return ordered(networks()[name], stride, value_format).positions


def arrays(matrix: sp.csr_matrix, order: np.ndarray | None, value_format: str) -> Iterator[tuple[np.ndarray, str]]:
    """Everything a product moves, with the direction it goes."""
    order = np.arange(matrix.nnz) if order is None else order
    x = np.maximum(np.random.default_rng(1).normal(0, 1, matrix.shape[1]), 0).astype(np.float16)
    yield to_bits(matrix.data, value_format)[0][order], "read"
    yield matrix.indices[order].astype(np.uint16), "read"
    yield matrix.indptr.astype(np.uint32), "read"
    yield x, "read"
    yield (matrix @ x.astype(np.float32)).astype(np.float16), "write"


def io_energy_pj(matrix: sp.csr_matrix, order: np.ndarray | None, value_format: str, encoder: str) -> float:
    part, total = ew.load_part(PART), 0.0
    for array, way in arrays(matrix, order, value_format):
        sent = ew.encode(array, encoder, element_bytes=array.itemsize)
        for group, wires in (("dq", sent.wires.data), ("dbi", sent.wires.flag)):
            per_one, per_rise = wire_constants_pj(part, group, way, part.beat_ns)
            total += per_one * int(wires.ones.sum()) + per_rise * int(wires.rising.sum())
    return total


def core_energy_pj(matrix: sp.csr_matrix, value_format: str) -> float:
    """Core energy of reading (and writing) the arrays once, burst after burst."""
    sizes = [(array.nbytes, way) for array, way in arrays(matrix, None, value_format)]
    writes = np.concatenate([np.full(-(-size // 32), way == "write") for size, way in sizes])
    address = np.arange(len(writes), dtype=np.uint64) * np.uint64(32)
    found = ew.simulate_dram(address, writes.astype(np.uint8), np.zeros(len(writes), np.int64), part=PART)
    return found.total_energy_pj


def percent(after: float, before: float) -> str:
    return f"{100 * after / before - 100:+.1f} %"


def energies(name: str, value_format: str) -> Iterator[tuple[str, float, float, float]]:
    """(stride, pJ under DBI, under Base+XOR and DBI, under Base+XOR with zero remapping and DBI)."""
    matrix = networks()[name]
    base = [io_energy_pj(matrix, None, value_format, e) for e in ("dbi-dc", "base-xor+dbi-dc", "base-xor-zdr+dbi-dc")]
    yield "as given", *base
    for stride in (*STRIDES, "row"):
        order = positions(name, stride, value_format)
        yield (
            str(stride),
            base[0],
            io_energy_pj(matrix, order, value_format, "base-xor+dbi-dc"),
            io_energy_pj(matrix, order, value_format, "base-xor-zdr+dbi-dc"),
        )


def io_rows(core: bool) -> Iterable[tuple[object, ...]]:
    for name in networks():
        for value_format in ("fp16", "int8"):
            add = core_energy_pj(networks()[name], value_format) if core else 0.0
            given: tuple[float, float, float] | None = None
            for stride, *three in energies(name, value_format):
                dbi, bx, zdr = (value + add for value in three)
                if given is None:
                    given = (dbi, bx, zdr)
                yield (
                    *(name, value_format, stride, percent(bx, given[0]), percent(bx, given[1])),
                    *(percent(zdr, given[0]), percent(zdr, given[2])),
                )


HEAD = ("network", "format", "stride", "vs DBI", "vs Base+XOR", "vs DBI, zero remap", "vs Base+XOR, zero remap")


def fig8() -> None:
    """Figure 8: DRAM energy (core and IO). Paper: 12.7 % below DBI, 5.3 % below Base+XOR, where it costs no time."""
    show_table(HEAD, io_rows(core=True), title=fig8.__doc__)
    print("Not comparable: the paper's core energy comes from its GPU's traffic; here every array streams once.")


def fig9() -> None:
    """Figure 9: DRAM IO energy. Paper: 53.1 % below DBI, 22.2 % below Base+XOR, where it costs no time."""
    show_table(HEAD, io_rows(core=False), title=fig9.__doc__)
    print("Not comparable: other networks, and VSSQ-terminated LPDDR4 with rising-edge energy; the paper averages")
    print("over layers it trained. Strides that cost no time are in fig10.")


def gpu_rows(figure: int) -> Iterable[tuple[object, ...]]:
    spec = GpuSpec()
    for name in ("synthetic fc7", "digits_wide hidden"):
        matrix, base = networks()[name], None
        x = np.ones(matrix.shape[1], np.float32)
        for stride in (None, *STRIDES):
            order = None if stride is None else positions(name, stride, "fp16")
            result = simulate_gpu_spmv(lay_out_spmv(matrix, x, positions=order), spec)
            taken = gpu_time(result, spec, PART).time_ns if figure == 10 else 0.0
            values = (taken,) if figure == 10 else (int(result.l1_accesses.sum()), int(result.misses_by_stream.sum()))
            base = base or values
            shown = (f"{v:.0f} ({percent(v, b)})" for v, b in zip(values, base, strict=True))
            yield (name, stride or "as given", *shown)


def fig10() -> None:
    """Figure 10: execution time by stride. Paper: at most 2.1 % slower, most under 1.1 %."""
    show_table(("network", "stride", "ns"), gpu_rows(10), title=fig10.__doc__)
    print("Not comparable: one LPDDR4-3200 x16 channel and our simple GPU, not GPGPU-Sim with four controllers.")


def fig11() -> None:
    """Figure 11: optimisation time by stride. Paper: OR-Tools greedy descent, up to 3 hours for 33278 rows at 512."""
    rows = []
    matrix = networks()["synthetic fc7"][:8]
    for stride in STRIDES:
        start = time.process_time()
        found = ordered(matrix, stride, "fp16")
        ours = time.process_time() - start
        routed = ew.order_tuples(matrix, value_format="fp16", stride=stride, method="or-tools-cvrp", bound=False)
        theirs = time.process_time() - start - ours
        rows.append((stride, f"{1e3 * ours / 8:.1f}", f"{1e3 * theirs / 8:.1f}", found.ones, routed.ones))
    columns = ("stride", "ours, ms per row", "OR-Tools, ms per row", "ones, ours", "ones, OR-Tools")
    show_table(columns, rows, title=fig11.__doc__)
    print(f"8 rows of 369 tuples; effort {EFFORT}. Not comparable: another OR-Tools version and processor.")


def fig12() -> None:
    """Figure 12: ones by stride. Paper: 13.1 % from the smallest stride to unrestricted (11.4 % unshared)."""
    rows = []
    for name, matrix in networks().items():
        for value_format in ("fp16", "int8"):
            bits = [ordered_ones(matrix, positions(name, s, value_format), value_format) for s in (*STRIDES, "row")]
            given = ordered_ones(matrix, np.arange(matrix.nnz), value_format)
            changes = (percent(b, given) for b in bits)
            rows.append((name, value_format, given, *changes, f"{100 * (bits[0] - bits[-1]) / given:.1f} %"))
    show_table(("network", "format", "given", *map(str, STRIDES), "row", "32 to row"), rows, title=fig12.__doc__)
    print("Ones of values and ids under Base+XOR and DBI. Row pointers and vectors are not in this figure.")


def ordered_ones(matrix: sp.csr_matrix, order: np.ndarray, value_format: str, **kind: Any) -> int:
    pair = (to_bits(matrix.data, value_format)[0], matrix.indices.astype(np.uint16))
    return sum(ew.encode(a[order], "base-xor+dbi-dc", element_bytes=a.itemsize, **kind).ones for a in pair)


def fig13() -> None:
    """Figure 13: base retransmission. Paper: one base for the matrix, 32 % fewer ones than Base+XOR alone."""
    rows = []
    for name, matrix in networks().items():
        cells: list[str] = []
        for interval in (32, 64, 128, "row", "matrix"):
            found = ordered(matrix, "row", "fp16", base_interval=interval)
            cells.append(f"{found.ones} ({percent(found.ones, found.original_ones)})")
        rows.append((name, *cells))
    show_table(("network", "32 bytes", "64", "128", "row", "matrix"), rows, title=fig13.__doc__)
    print("Whole-row strides, fp16; change against Base+XOR and DBI with the same bases in the order given.")


def fig14() -> None:
    """Figure 14: L1 accesses and misses by stride. Paper: both rise on an_dc_fc7; its text has no numbers."""
    show_table(("network", "stride", "L1 sector accesses", "L1 load misses"), gpu_rows(14), title=fig14.__doc__)
    print("Assumptions on the L1 that Table I leaves open: hwmodel/gpu.py.")


def fig15() -> None:
    """Figure 15: fp16 and bfloat16. Paper: like savings; bf16 has 9.4 % more ones under Base+XOR."""
    rows = []
    for name in networks():
        found = [ordered(networks()[name], 128, value_format) for value_format in ("fp16", "bf16")]
        rows.append(
            (
                name,
                *(f"{f.original_ones_values} -> {f.ones_values} ({percent(f.ones, f.original_ones)})" for f in found),
                percent(found[1].original_ones_values, found[0].original_ones_values),
            )
        )
    columns = ("network", "fp16 values (all)", "bf16 values (all)", "bf16 against fp16 values, as given")
    show_table(columns, rows, title=fig15.__doc__)
    print("Stride 128, Base+XOR and DBI. In brackets values and ids together.")


FIGURES = {f.__name__: f for f in (fig8, fig9, fig10, fig11, fig12, fig13, fig14, fig15)}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or FIGURES:
        if wanted not in FIGURES:
            sys.exit(f"unknown figure {wanted!r}: {', '.join(FIGURES)}")
        FIGURES[wanted]()
