"""Values and ids each ordered by their number of ones: the separated form of Chen et al. (arXiv 2509.00500).

Values and ids no longer stand together, so the receiver needs for each value the place of its id in the stride. That
index is an array of its own and is counted. Compare with `order_tuples(method="popcount")`, the affiliated form, where
ids travel with their values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reorder.tuples.cost import field_edges, field_ones
from reorder.tuples.matrix import LAYOUTS, entries_of, id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import Field, Int64Array, TupleProblem


@dataclass(frozen=True, eq=False)
class SeparatedOrder:
    """value_positions, id_positions: int64[N] new -> old. pairing: int64[N], place of each value's id in its stride.

    ones and toggles: of values, ids and the pairing index (8 or 16 bits each) as three arrays.
    """

    value_positions: Int64Array
    id_positions: Int64Array
    pairing: Int64Array
    ones: dict[str, int]
    toggles: dict[str, int]


def popcount_separated(
    matrix: Any,
    *,
    value_format: str,
    stride: int | str,
    id_bits: int = 16,
    encoder: str = "raw",
    bus_bytes: int | None = None,
    stride_restart: str = "row",
) -> SeparatedOrder:
    """Order values and column ids of a CSR matrix separately inside strides, most ones first. O(N log N)."""
    entries = entries_of(matrix, LAYOUTS["csr"])
    values, _ = value_field(entries.values, value_format)
    ids = id_field("column ids", entries.minor, id_bits)
    bounds = stride_bounds(entries.major, stride, stride_restart, rows_may_mix=False)
    lengths = np.diff(bounds)
    window = np.repeat(np.arange(len(lengths)), lengths)
    orders = [np.lexsort((-np.bitwise_count(f.bits).astype(np.int64), window)).astype(np.int64) for f in (values, ids)]
    place = np.empty(len(window), np.int64)
    place[orders[1]] = np.arange(len(window)) - bounds[:-1][window]
    pairing = place[orders[0]]
    width = 8 if lengths.max(initial=0) <= 256 else 16 if lengths.max(initial=0) <= 65536 else 32
    index = Field("pairing", pairing.astype(np.uint64), width)
    same = np.arange(len(window), dtype=np.int64)
    fields = (replace(values, bits=values.bits[orders[0]]), replace(ids, bits=ids.bits[orders[1]]), index)
    problem = TupleProblem(fields, bounds, entries.major, encoder, bus_bytes=bus_bytes)
    return SeparatedOrder(
        orders[0],
        orders[1],
        pairing,
        {f.name: field_ones(problem, f, same) for f in fields},
        {f.name: field_edges(problem, f, same)[0] for f in fields},
    )
