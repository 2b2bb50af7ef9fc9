"""`edgewatt order --explain`: one self-contained page that shows why one order costs less than another."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import LOAD, STORE_LIVE, STORE_OUTPUT
from edgewatt.evaluation.machine_cost import MachineView
from edgewatt.pages.html.page import Page, asset, text
from hwmodel.fastmemory.iomodel import count_io, gap, io_bounds, moves_of
from reorder.base import Ordering
from reorder.edges.bounds.bounds import NetworkBound, lower_bound
from reorder.order import order as make_order
from traces.base.units import in_one_unit
from traces.networks.network import Network
from traces.networks.processing import processing_arrays

PIXELS = 280  # of the picture of edges, each way
MOST_SPILLED = 12
KINDS = ("nothing", "input value", "partial sum", "finished hidden value")
ONCE = len(KINDS)  # in the picture of moves: what every order moves once
STRETCHES, HEIGHT = 300, 100  # of the picture of moves: columns along the order, rows for the most moves of one


@dataclass(frozen=True, eq=False)
class NeuronMoves:
    """Loads and stores of neuron values: int64[N] reads and writes of each; reads_by, writes_by: int64[len(KINDS)],
    repeated reads and live writes by kind; piles: int64[up to STRETCHES, len(KINDS)], the same in each stretch, and
    first reads and output writes in column 0.
    """

    reads: npt.NDArray[np.int64]
    writes: npt.NDArray[np.int64]
    reads_by: npt.NDArray[np.int64]
    writes_by: npt.NDArray[np.int64]
    first_reads: int
    writes_outputs: int
    piles: npt.NDArray[np.int64]


def neuron_moves(network: Network, order: Any, *, memory: int, policy: str, pinning: str) -> NeuronMoves:
    """Return what moves under an order, by kind and along it. O(W + N)."""
    sources, targets = processing_arrays(network, order)
    made = moves_of(sources, targets, network.is_output, memory=memory, policy=policy, pinning=pinning)
    n, w, width = network.n_neurons, len(sources), len(KINDS)
    last = np.full(n, -1)
    np.maximum.at(last, targets, np.arange(w))
    kind = np.where(last[made.neuron] < 0, 1, np.where(made.step <= last[made.neuron], 2, 3))
    loads, live = made.kind == LOAD, made.kind == STORE_LIVE
    first = np.flatnonzero(loads)[np.unique(made.neuron[loads], return_index=True)[1]]
    again = loads.copy()
    again[first] = False
    columns = min(STRETCHES, w)
    piled = np.where(again | live, kind, 0)
    cells = np.bincount(np.minimum(made.step, w - 1) * columns // w * width + piled, minlength=columns * width)
    return NeuronMoves(
        np.bincount(made.neuron[loads], minlength=n), np.bincount(made.neuron[live], minlength=n),
        np.bincount(kind[again], minlength=width), np.bincount(kind[live], minlength=width), len(first),
        int((made.kind == STORE_OUTPUT).sum()), cells.reshape(columns, width),
    )  # fmt: skip


def moves_picture(piles: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.uint8]:
    """Return uint8[HEIGHT, stretches]: ONCE at the bottom, kind upon kind, 0 above. most: moves that reach the top."""
    rows = np.cumsum(piles, axis=1) * HEIGHT / max(1, most)
    level = np.arange(HEIGHT, 0, -1)[:, None]
    passed = np.stack([level > rows[:, k] + 0.5 for k in range(len(KINDS))]).sum(axis=0)
    picture: npt.NDArray[np.uint8] = np.array([ONCE, *range(1, len(KINDS)), 0], np.uint8)[passed]
    return picture


def explain_page(
    network: Network,
    ordering: Ordering,
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    view: MachineView | None = None,
    bound: NetworkBound | None = None,
) -> str:
    """Return the page as HTML: moves along the order, spills, convergence and the order itself, beside two-optimal."""
    machine = {"memory": memory, "policy": policy, "pinning": pinning}
    plain = make_order(network, "two-optimal", **machine)  # type: ignore[arg-type]
    lower, bound = io_bounds(network).lower_total, bound or lower_bound(network, memory)
    sides: list[dict[str, Any]] = []
    piles = []
    for title, compared in ((f"{ordering.method} (this order)", ordering), ("two-optimal", plain)):
        counts = count_io(network, compared, **machine)  # type: ignore[arg-type]
        seen = neuron_moves(network, compared, **machine)  # type: ignore[arg-type]
        moved = seen.reads_by + seen.writes_by
        piles.append(seen.piles)
        sides.append(
            {
                "title": title,
                "total": counts.total,
                "runs": counts.runs,
                "costs": _costs(network, counts.total, seen),
                "edges": _grid(edge_picture(network, compared.edges)),
                "reads": np.bincount(np.minimum(seen.reads[network.touched], 12), minlength=13).tolist(),
                "spilled": _most_spilled(network, seen),
                "shares": (moved / max(1, moved.sum())).round(4).tolist(),
            }
        )
    most = max(int(each.sum(axis=1).max()) for each in piles)
    for side, each in zip(sides, piles, strict=True):
        side["slots"] = _grid(moves_picture(each, most))
    data = {
        "kinds": (*KINDS, "first read or output write"), "sides": sides, "lower": lower, "bound": bound.total,
        "connections": network.n_connections,
        "curve": [[int(work), round(seconds, 4), value] for work, seconds, value in ordering.curve],
        "start": sides[1]["total"], "comparable": bool(ordering.curve) and ordering.curve[-1][2] == sides[0]["total"],
    }  # fmt: skip
    settings = f"M = {memory}, policy {policy}, pinning {pinning}, seed {ordering.seed}"
    body = asset(__file__, "explain.html").format(
        sentence=text(_sentence(sides, lower, bound)),
        machine="" if view is None else machine_part(view),
        most=f"{most:,}",
    )
    style, script = asset(__file__, "explain.css"), asset(__file__, "explain.js")
    title = f"{network.name}, ordered by {ordering.method}"
    return Page(title, body, subtitle=settings, style=style, data=data, script=script).html()


def machine_part(view: MachineView) -> str:
    words = filter(None, (view.sentence, view.choices, view.note))
    parts = ["<h2>On the machine</h2>", *(f"<p>{text(each)}</p>" for each in words)]
    for title, key, factor, si in (("Bytes over the memory bus", "streams", 1.0, "B"), ("Energy", "terms", 1e-12, "J")):
        mine, other = view.cost[key], view.plain[key]
        names = sorted(mine.keys() | other.keys(), key=lambda name: -max(mine.get(name, 0), other.get(name, 0)))
        rows = [(name, mine.get(name, 0), other.get(name, 0)) for name in names]
        rows = [row for row in rows if row[1] or row[2]]
        rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
        unit, cells = in_one_unit([cell for row in rows for cell in row[1:]], factor, si)
        heads = (title, f"{view.name}, {unit}", f"two-optimal, {unit}", "change")
        head = "".join(f"<th>{text(each)}</th>" for each in heads)
        body = "".join(_machine_row(*row, *cells[2 * k : 2 * k + 2]) for k, row in enumerate(rows))
        parts.append(f'<div class="panel scroll"><table><tr>{head}</tr>{body}</table></div>')
    return "\n".join(parts)


def _machine_row(name: str, now: float, was: float, shown: str, before: str) -> str:
    change = now - was
    share = "0" if not change else f"{100 * change / was:+.1f} %" if was else "new"
    kind = "good" if change < 0 else "bad" if change > 0 else "soft"
    cells = f'<td>{shown}</td><td>{before}</td><td class="{kind}">{share}</td>'
    named = text(name).replace("_", "_<wbr>")  # where it may break on a phone
    return f"<tr><td>{named}</td>{cells}</tr>"


def _sentence(sides: list[dict[str, Any]], lower: int, bound: NetworkBound) -> str:
    ours, plain = sides
    saved = plain["total"] - ours["total"]
    share = _share_left(ours["total"], plain["total"], lower, bound)
    pairs = [
        (was - now, name)
        for (name, now), (_, was) in zip(ours["costs"], plain["costs"], strict=True)
        if name != "connections"
    ]
    most, name = max(pairs)
    why = f" The largest saving: '{name}', {most:,} less." if most > 0 else ""
    word = f"{abs(saved):,} {'fewer' if saved > 0 else 'more'} than" if saved else "as many as"
    return f"{ours['total']:,} I/Os, {word} two-optimal{share}.{why}"


def _share_left(ours: int, plain: int, lower: int, bound: NetworkBound) -> str:
    by = f", proved by {bound.argument}" if bound.total > lower else ""
    if ours == plain == bound.total:
        return f"; both meet the lower bound {bound.total:,}{by}"
    left = gap(ours, plain, lower)
    share = "" if left is None else f"; {left:.1%} of two-optimal's distance to the lower bound {lower:,} is left"
    if by and (left := gap(ours, plain, bound.total)) is not None:
        share += f" ({left:.1%} to {bound.total:,}{by})"
    return share


def _costs(network: Network, total: int, seen: NeuronMoves) -> list[tuple[str, int]]:
    costs = [("connections", network.n_connections), ("first reads of values and biases", seen.first_reads)]
    costs += [(f"repeated reads, {KINDS[k]}", int(seen.reads_by[k])) for k in (1, 2, 3)]
    costs += [(f"spill writes, {KINDS[k]}", int(seen.writes_by[k])) for k in (2, 3)]
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
    """Return uint8[rows, columns]: sources across, targets down, both by depth; 0 no edge, 1 to 255 the mean time."""
    row, rows = _pixels(network, network.in_degree > 0)
    column, columns = _pixels(network, network.out_degree > 0)
    pixel = row[network.targets[edges]] * columns + column[network.sources[edges]]
    times = np.bincount(pixel, weights=np.arange(len(edges)), minlength=rows * columns)
    counts = np.bincount(pixel, minlength=rows * columns)
    shade = np.zeros(rows * columns, np.uint8)
    seen = counts > 0
    shade[seen] = 1 + (254 * times[seen] / counts[seen] / max(1, len(edges) - 1)).astype(np.uint8)
    return shade.reshape(rows, columns)


def _pixels(network: Network, shown: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], int]:
    by_depth = np.argsort(network.depth, kind="stable")
    by_depth = by_depth[shown[by_depth]]
    side = min(PIXELS, len(by_depth))
    pixel = np.zeros(network.n_neurons, np.int64)
    pixel[by_depth] = np.arange(len(by_depth)) * side // len(by_depth)
    return pixel, side


def _most_spilled(network: Network, seen: NeuronMoves) -> list[list[int]]:
    moved = seen.reads + seen.writes
    order = np.argsort(-moved, kind="stable")[:MOST_SPILLED]
    columns = (order, network.depth[order], network.in_degree[order], network.out_degree[order])
    rows: list[list[int]] = np.stack((*columns, seen.reads[order], seen.writes[order]), axis=1).tolist()
    return rows
