"""Tuple order inside an edge ordering: connections of a run change places, the runs themselves do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import Progress, check_order
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.groups import order_all
from reorder.tuples.matrix import id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import CHAINS, Coding, Int64Array, TupleProblem
from traces.networks.checks import weights_of
from traces.networks.network import Network


def run_problem(
    network: Network,
    edges: Int64Array,
    bounds: Int64Array,
    *,
    value_format: str,
    id_bits: int | None = None,
    **kind: Any,
) -> TupleProblem:
    """The problem whose slot k is connection edges[k]: its weight, and its source counted from its layer's lowest."""
    weights = weights_of(network, "an order of tuples")
    ids = network.sources
    if network.layer is not None:
        low = np.full(int(network.layer.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(low, network.layer, ids)
        ids = ids - low[network.layer]
    width = id_bits or (16 if ids.max(initial=0) < 2**16 else 32)
    values, zeroed, _ = value_field(weights[edges], value_format)
    rows = np.cumsum(np.diff(network.targets[edges], prepend=-1) != 0) - 1
    return TupleProblem(
        (values, id_field("source ids", ids[edges], width)), bounds, rows, notes={"zeroed": zeroed}, **kind
    )


def order_run_tuples(
    network: Network,
    edges: npt.ArrayLike,
    *,
    stride: int | str,
    method: str = "local-search",
    value_format: str,
    encoder: str = "base-xor+dbi-dc",
    inverts: bool | None = None,
    block_bytes: int = 32,
    stride_restart: str = "row",
    objective: str = "joint",
    id_bits: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **parameters: Any,
) -> Int64Array:
    """Return int64[W]: `edges` with the connections of each run reordered for few ones on the wires.

    A run is consecutive connections with one target. Sources of a run are complete before it starts, so the result is
    topological and has the same runs. stride: tuples that may be swapped (from the start of each run, or of the
    order with stride_restart='continuous'), or 'row' for whole runs.
    encoder: under an encoder whose ones no order changes (raw, dbi-dc), tuples are ordered for base-xor all the same.
    inverts: whether the bus inverts bytes (DBI); None: where `encoder` does, and where CHAINS does not know it.
    value_format: of weights. block_bytes, id_bits, objective ('joint', 'values', 'ids'), method (of TUPLE_ORDERS) and
    its parameters: as of `order_tuples`. Raises InputError for an order or an option that cannot be used.
    """
    order = check_order(network, edges)
    entry = TUPLE_ORDERS[method]
    if inverts is None:
        inverts = CHAINS.get(encoder, Coding(dbi=True)).dbi
    runs = np.cumsum(np.diff(network.targets[order], prepend=-1) != 0)
    bounds = stride_bounds(runs, stride, stride_restart, rows_may_mix=False)
    problem = run_problem(
        network,
        order,
        bounds,
        value_format=value_format,
        id_bits=id_bits,
        encoder="base-xor+dbi-dc" if inverts else "base-xor",
        block_bytes=block_bytes,
        objective=objective,
    )
    positions = order_all(
        problem,
        method,
        seed=seed,
        parameters=entry.make_parameters(parameters),
        workers=workers,
        progress=progress,
    )
    return check_order(network, order[positions])
