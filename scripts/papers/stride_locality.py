"""Feinberg et al. 2020, Figures 10 and 14: what a stride does to L1 accesses, L1 misses and time.

    python scripts/papers/stride_locality.py [--matrix layer.npz] [--rows 1024] [--method sort] [--json out.json]

The paper plays layer fc7 of a pruned AlexNet on a modified GPGPU-Sim. We play a Gaussian matrix of its width and
density (4096 columns, 9 %; or a SciPy file) on `hwmodel.caches.gpu`, whose assumptions its module text lists, with
eight x16 channels of LPDDR4-3200 (51 GB/s; the paper: 59.7 GB/s). Trends can be compared, absolute numbers cannot.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hwmodel.caches.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from hwmodel.dram.engine import Part, load_part
from reorder.tuples import order_tuples
from traces.trace.spmv import lay_out_spmv

STRIDES = (32, 64, 96, 128, 192, 256, 512)


@dataclass(frozen=True)
class Row:
    """One stride (0: the unsorted matrix). Background energy is the static part that grows with time."""

    stride: int
    l1_accesses: int
    l1_misses: int
    l2_misses: int
    time_ns: float
    background_pj: float


def eight_channels() -> Part:
    """Return LPDDR4-3200 with eight channels, interleaved by bursts."""
    part = load_part("lpddr4-3200")
    organisation = replace(part.organisation, channels=8)
    return replace(part, organisation=organisation, address_map="offset:5 channel:3 column:6 bank:3 row:16")


def measure(matrix: Any, x: np.ndarray, positions: np.ndarray | None, stride: int, value_format: str) -> Row:
    """Play one product and name what it did."""
    spec = GpuSpec()
    result = simulate_gpu_spmv(lay_out_spmv(matrix, x, positions=positions, value_format=value_format), spec)
    done = gpu_time(result, spec, eight_channels())
    background = sum(pj for term, pj in done.dram.energy_pj.items() if term.startswith(("background", "power_down")))
    return Row(
        stride, int(result.l1_accesses.sum()), result.l1.load_line_misses, result.l2.misses, done.time_ns, background
    )


def main() -> None:
    from scipy.sparse import csr_array, load_npz, random_array

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrix", type=Path, help="SciPy sparse npz instead of the Gaussian matrix")
    parser.add_argument("--rows", type=int, default=1024, help="rows of the Gaussian matrix (the paper's layer: 4096)")
    parser.add_argument("--format", default="fp16")
    parser.add_argument("--method", default="sort", help="tuple order (edgewatt list tuple-orders)")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(11)
    if given.matrix:
        matrix = csr_array(load_npz(given.matrix))
    else:
        matrix = random_array((given.rows, 4096), density=0.09, rng=rng, data_sampler=rng.standard_normal, format="csr")
    matrix.sort_indices()
    x = rng.random(matrix.shape[1])
    rows = [measure(matrix, x, None, 0, given.format)]
    for stride in STRIDES:
        order = order_tuples(matrix, value_format=given.format, stride=stride, method=given.method, bound=False)
        rows.append(measure(matrix, x, order.positions, stride, given.format))
    base = rows[0]
    print(
        f"{matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} stored, {given.format}, tuples ordered by {given.method}"
    )
    print("stride  L1 accesses          L1 misses            L2 misses    time")
    for row in rows:
        print(
            f"{row.stride or 'none':>6}  {row.l1_accesses:>9} {row.l1_accesses / base.l1_accesses - 1:+8.2%}"
            f"  {row.l1_misses:>9} {row.l1_misses / base.l1_misses - 1:+8.2%}  {row.l2_misses:>9}"
            f"  {row.time_ns / 1e3:8.1f} us {row.time_ns / base.time_ns - 1:+7.2%}"
        )
    free = [row.stride for row in rows[1:] if row.time_ns <= base.time_ns]
    print(f"largest stride that costs no time: {max(free, default='none')}")
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
