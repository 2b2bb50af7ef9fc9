"""Measure tuple orders of a language model's weights: a synthetic model of shards, streamed.

    python scripts/bench_weights.py make FOLDER      two shards, 2.25e7 tuples in each of two matrices (bf16, fp16)
    python scripts/bench_weights.py order FOLDER OUT [EFFORT [WORKERS [EXECUTOR]]]
    python scripts/bench_weights.py exponent [EFFORT]      CPU a tuple of `order_tuples` from 7e5 to 2.25e7 tuples

Times are CPU seconds of this process and its workers; peaks are resident sets as the system counts them.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import scipy.sparse

LARGE = (8192, 5494)
"""Half of it is 2.25e7 tuples."""
TUPLES_7B = 3.2e9


def pruned(rows: int, columns: int, dtype: type, seed: int) -> np.ndarray:
    """Return a dense matrix of normal weights whose smaller half, by size, is zero."""
    rng = np.random.default_rng(seed)
    dense = np.empty((rows, columns), dtype)
    for row in range(0, rows, 256):
        part = rng.standard_normal((min(256, rows - row), columns), np.float32) * np.float32(0.02)
        part[np.abs(part) < 0.02 * 0.67449] = 0  # the median of |x|
        dense[row : row + 256] = part
    return dense


def make(folder: Path) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    shards = {
        "model-00001-of-00002.safetensors": {
            "model.layers.0.mlp.up_proj.weight": pruned(*LARGE, ml_dtypes.bfloat16, 0),
            "model.norm.weight": np.ones(4096, np.float32),
        },
        "model-00002-of-00002.safetensors": {
            "model.layers.1.mlp.up_proj.weight": pruned(*LARGE, np.float16, 1),
            "model.layers.1.self_attn.q_proj.weight": pruned(1024, 2048, np.float16, 2),
        },
    }
    for name, tensors in shards.items():
        save_file(tensors, folder / name)
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def peak_mb(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1024


def order(folder: Path, output: Path, effort: str = "fast", workers: str = "1", executor: str = "processes") -> None:
    from reorder.tuples.shards import order_weights

    start, wall = os.times(), time.perf_counter()
    matrices = order_weights(
        folder, output, effort=effort if effort.isalpha() else float(effort), workers=int(workers), executor=executor
    )
    wall, end = time.perf_counter() - wall, os.times()
    cpu = end.user + end.system + end.children_user + end.children_system - start.user - start.system
    tuples = sum(each.tuples for each in matrices)
    for each in matrices:
        before, after = each.original_ones_values + each.original_ones_ids, each.ones_values + each.ones_ids
        print(f"{each.name}: {each.tuples} tuples, {each.value_format}, ones {100 * after / before - 100:+.1f} %")
    print(
        f"effort {effort}, {workers} over {executor}: {tuples} tuples, {cpu:.0f} s CPU ({1e6 * cpu / tuples:.2f} us a "
        f"tuple), {wall:.0f} s wall; peak {peak_mb(resource.RUSAGE_SELF):.0f} MB, of a worker "
        f"{peak_mb(resource.RUSAGE_CHILDREN):.0f} MB; {TUPLES_7B:.1e} tuples at this rate: "
        f"{cpu / tuples * TUPLES_7B / 3600:.1f} hours of one core"
    )


def exponent(effort: str = "0") -> None:
    import edgewatt as ew

    points = []
    for rows in (256, 1024, 4096, 8192):
        matrix = scipy.sparse.csr_matrix(pruned(rows, LARGE[1], np.float16, 3).astype(np.float32))
        start = time.process_time()
        ew.order_tuples(matrix, value_format="fp16", stride=128, effort=float(effort), bound=False)
        points.append((matrix.nnz, time.process_time() - start))
        print(
            f"{points[-1][0]} tuples: {points[-1][1]:.2f} s CPU, {1e6 * points[-1][1] / points[-1][0]:.3f} us",
            flush=True,
        )
    sizes, times = np.log([n for n, _ in points]), np.log([t for _, t in points])
    last = math.log(points[-1][1] / points[0][1]) / math.log(points[-1][0] / points[0][0])
    print(f"exponent: {np.polyfit(sizes, times, 1)[0]:.4f} (least squares), {last:.4f} (first to last)")


if __name__ == "__main__":
    what, *given = sys.argv[1:] or ["help"]
    if what == "make":
        make(Path(given[0]))
    elif what == "order":
        order(Path(given[0]), Path(given[1]), *given[2:])
    elif what == "exponent":
        exponent(*given)
    else:
        sys.exit(__doc__)
