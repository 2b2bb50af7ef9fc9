"""`edgewatt order --explain`: one self-contained page that shows why one order costs less than another."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.iomodel import count_io, io_bounds
from hwmodel.occupancy import KINDS, Occupancy, occupancy
from reorder.base import Ordering
from reorder.order import order as make_order
from traces.network import Network
from traces.resources import shipped_path

PIXELS = 280  # of the picture of edges, each way
MOST_SPILLED = 12


def explain_page(
    network: Network, ordering: Ordering, *, memory: int, policy: str = "min", pinning: str = "literal"
) -> str:
    """Return the page as HTML: fast memory over time, spills, convergence and the order itself, beside two-optimal.

    Everything is inside the page; it asks the network for nothing. Time and memory linear in the connections.
    """
    machine = {"memory": memory, "policy": policy, "pinning": pinning}
    plain = make_order(network, "two-optimal", **machine)  # type: ignore[arg-type]
    lower = io_bounds(network).lower_total
    sides = []
    for title, found in ((f"{ordering.method} (this order)", ordering), ("two-optimal", plain)):
        counts = count_io(network, found, **machine)  # type: ignore[arg-type]
        seen = occupancy(network, found, **machine)  # type: ignore[arg-type]
        sides.append(
            {
                "title": title,
                "total": counts.total,
                "runs": counts.runs,
                "costs": _costs(network, counts.total, seen),
                "slots": _grid(seen.slots),
                "edges": _grid(edge_picture(network, found.edges)),
                "reads": _histogram(seen.reads[network.touched]),
                "spilled": _most_spilled(network, seen),
                "shares": [round(float((seen.slots == kind).mean()), 4) for kind in range(len(KINDS))],
            }
        )
    data = {
        "kinds": KINDS, "sides": sides, "lower": lower, "connections": network.n_connections,
        "curve": [[int(work), round(seconds, 4), value] for work, seconds, value in ordering.curve],
        "start": sides[1]["total"], "comparable": bool(ordering.curve) and ordering.curve[-1][2] == sides[0]["total"],
    }  # fmt: skip
    gap = _gap(int(sides[0]["total"]), int(sides[1]["total"]), lower)  # type: ignore[call-overload]
    settings = f"M = {memory}, policy {policy}, pinning {pinning}, seed {ordering.seed}"
    page = shipped_path("pages", "explain_order", ".tmpl").read_text(encoding="utf-8")
    return (
        page.replace("@NAME@", html.escape(network.name))
        .replace("@METHOD@", html.escape(ordering.method))
        .replace("@SETTINGS@", html.escape(settings))
        .replace("@SENTENCE@", html.escape(_sentence(sides, lower, gap)))
        .replace("@DATA@", json.dumps(data).replace("<", "\\u003c"))
    )


def _gap(found: int, plain: int, lower: int) -> float | None:
    if plain == lower:
        return 0.0 if found == lower else None
    return (found - lower) / (plain - lower)


def _sentence(sides: list[dict[str, Any]], lower: int, gap: float | None) -> str:
    found, plain = sides
    saved = plain["total"] - found["total"]
    share = "" if gap is None else f"; {gap:.1%} of two-optimal's distance to the lower bound {lower:,} is left"
    pairs = [
        (was - now, name)
        for (name, now), (_, was) in zip(found["costs"], plain["costs"], strict=True)
        if name != "connections"
    ]
    most, name = max(pairs)
    why = f" The largest saving: '{name}', {most:,} less." if most > 0 else ""
    word = f"{saved:,} I/Os fewer than" if saved >= 0 else f"{-saved:,} I/Os more than"
    return f"{found['total']:,} I/Os, {word} two-optimal{share}.{why}"


def _costs(network: Network, total: int, seen: Occupancy) -> list[tuple[str, int]]:
    """(what, count) of every kind of I/O; they add up to `total`."""
    costs = [("connections", network.n_connections), ("first reads of values and biases", seen.first_reads)]
    costs += [(f"repeated reads, {kind}", seen.reads_by[kind]) for kind in KINDS[1:]]
    costs += [(f"spill writes, {kind}", seen.writes_by[kind]) for kind in KINDS[2:]]
    costs.append(("output writes", seen.writes_outputs))
    assert sum(count for _, count in costs) == total
    return costs


def _grid(values: npt.NDArray[np.uint8]) -> dict[str, Any]:
    return {
        "rows": values.shape[0],
        "columns": values.shape[1],
        "data": base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii"),
    }


def edge_picture(network: Network, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return uint8[rows, columns]: source across, target down, both by depth; 0 no edge, 1 to 255 the mean time."""
    by_depth = np.argsort(network.depth, kind="stable")
    rank = np.empty(network.n_neurons, np.int64)
    rank[by_depth] = np.arange(network.n_neurons)
    pick = lambda neurons: rank[neurons] * min(PIXELS, network.n_neurons) // network.n_neurons  # noqa: E731
    side = min(PIXELS, network.n_neurons)
    pixel = pick(network.targets[edges]) * side + pick(network.sources[edges])
    times = np.bincount(pixel, weights=np.arange(len(edges)), minlength=side * side)
    counts = np.bincount(pixel, minlength=side * side)
    shade = np.zeros(side * side, np.uint8)
    seen = counts > 0
    shade[seen] = 1 + (254 * times[seen] / counts[seen] / max(1, len(edges) - 1)).astype(np.uint8)
    return shade.reshape(side, side)


def _histogram(reads: npt.NDArray[np.int64], most: int = 12) -> list[int]:
    """Neurons read 0, 1, ... `most` or more times."""
    return np.bincount(np.minimum(reads, most), minlength=most + 1).tolist()


def _most_spilled(network: Network, seen: Occupancy) -> list[list[int]]:
    """[neuron, depth, connections in, out, reads, writes] of those that move most often."""
    moved = seen.reads + seen.writes
    order = np.argsort(-moved, kind="stable")[:MOST_SPILLED]
    columns = (order, network.depth[order], network.in_degree[order], network.out_degree[order])
    return np.stack((*columns, seen.reads[order], seen.writes[order]), axis=1).tolist()
