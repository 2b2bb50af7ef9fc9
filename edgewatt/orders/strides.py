"""Which stride tuples may be reordered in without costing time, and what a wire's ones and edges cost."""

from __future__ import annotations

from typing import Any

import numpy as np

STRIDES = (32, 64, 128, 256, 512)


def wire_energy_pj(name: str) -> tuple[float, float]:
    """Return picojoules of a one and of a rising edge on a data wire of a DRAM part, for reads."""
    from hwmodel.dram.energy import wire_constants_pj
    from hwmodel.parts.part_file import load_part

    part = load_part(name)
    return wire_constants_pj(part, "dq", "read", part.beat_ns)


def choose_tuple_stride(
    matrix: Any, *, value_format: str, id_bits: int, part: str = "lpddr4-3200"
) -> tuple[int, dict[int | None, float]]:
    """Return the largest stride that costs no time, 1 where every one does, and the time in ns of each tried.

    matrix: scipy.sparse. The procedure of Feinberg et al. 2020, section V-A: quick orders on their GPU with one `part`
    as its memory; None in the times is the matrix as given.
    """
    from hwmodel.caches.gpu import choose_stride
    from reorder.tuples import order_tuples
    from traces.trace.spmv import SpmvProblem, lay_out_spmv

    x = np.ones(matrix.shape[1], np.float32)

    def lay_out(stride: int | None) -> SpmvProblem:
        quick = None
        if stride is not None:
            greedy = order_tuples(
                matrix, value_format=value_format, id_bits=id_bits, stride=stride, method="greedy", bound=False
            )
            quick = greedy.positions
        return lay_out_spmv(matrix, x, positions=quick, value_format=value_format, id_bits=id_bits)

    chosen, times = choose_stride(lay_out, STRIDES, part=part)
    return chosen or 1, dict(times)
