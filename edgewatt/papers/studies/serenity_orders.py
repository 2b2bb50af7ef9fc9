"""Ahn et al. 2020, Figure 3: how many of all orders of a cell need how much memory.

Counted exactly, over the sets of operators that an order can have behind it: each keeps the orders that lead to it by
the greatest memory on the way. The paper does not say how it draws schedules, so two weights are counted: every order
alike, and an order drawn step by step, each ready operator alike.
"""

from __future__ import annotations

from typing import Any

import edgewatt as ew
from edgewatt.papers.serenity_graphs import available, graph_of, settings
from edgewatt.papers.study import STUDIES, Done, Job, Study, StudyTable
from traces.work.opgraph import OpGraph

DEVICE_BYTES = 250 * 1024  # the paper's SparkFun Edge
CELLS = ("SwiftNet cell A", "SwiftNet cell C", "DARTS normal cell", "RandWire WS32 seed 0")
WEIGHTS = ("alike", "drawn")
Ways = dict[int, tuple[int, float]]  # bytes at the peak so far -> orders that lead there, and their weight when drawn


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a cell; those of the reference data only where they are."""
    entries = [entry for entry in settings()["graphs"] if entry["name"] in CELLS]
    return [{"graph": entry["name"]} for entry in entries if available(entry)]


def compute(job: Job) -> dict[str, Any]:
    """Count the orders of the cell with its concatenations folded, as the paper's node counts have them."""
    entry = next(entry for entry in settings()["graphs"] if entry["name"] == job["graph"])
    graph = ew.rewrite_graph(graph_of(entry), "fold-concat")
    orders, peaks = count_orders(graph)
    return {"operators": graph.n_nodes, "orders": str(orders), "peaks": [[p, *s] for p, s in sorted(peaks.items())]}


def count_orders(graph: OpGraph) -> tuple[int, dict[int, tuple[float, float]]]:
    """Return the number of orders, and by bytes at the peak the share of them, by WEIGHTS."""
    before = [sum(1 << u for u in graph.predecessors[v]) for v in range(graph.n_nodes)]
    memory = _Memory(graph)
    reached: dict[int, Ways] = {0: {0: (1, 1.0)}}
    for _ in range(graph.n_nodes):
        then: dict[int, Ways] = {}
        for done, ways in reached.items():
            ready = [v for v in range(graph.n_nodes) if not done >> v & 1 and not before[v] & ~done]
            for v in ready:
                into, now = then.setdefault(done | 1 << v, {}), memory.during(done, v)
                for peak, (orders, weight) in ways.items():
                    here = into.get(max(peak, now), (0, 0.0))
                    into[max(peak, now)] = here[0] + orders, here[1] + weight / len(ready)
        reached = then
    (ways,) = reached.values()
    total = sum(orders for orders, _ in ways.values())
    return total, {peak: (orders / total, weight) for peak, (orders, weight) in ways.items()}


class _Memory:
    """Live bytes while an operator runs, by the set of operators done before it."""

    def __init__(self, graph: OpGraph) -> None:
        number = {buffer: k for k, buffer in enumerate(graph.buffers)}
        of_tensor = {t.name: number[t.buffer] for node in graph.nodes for t in node.outputs}
        self.sizes = graph.buffer_bytes.tolist()
        self.writers, self.users = [0] * len(number), [0] * len(number)
        self.written = [{number[t.buffer] for t in node.outputs} for node in graph.nodes]
        for v, node in enumerate(graph.nodes):
            for k in self.written[v]:
                self.writers[k] |= 1 << v
            for k in self.written[v] | {of_tensor[name] for name in node.inputs}:
                self.users[k] |= 1 << v
        self.kept = {number[buffer] for buffer in graph.output_buffers}

    def during(self, done: int, v: int) -> int:
        begun = (k for k, writers in enumerate(self.writers) if writers & done)
        live = {k for k in begun if k in self.kept or self.users[k] & ~done}
        return sum(self.sizes[k] for k in live | self.written[v])


def _within(result: Any, limit: int) -> list[float]:
    return [sum(row[1 + k] for row in result["peaks"] if row[0] <= limit) for k in range(len(WEIGHTS))]


def tables(done: Done) -> list[StudyTable]:
    """Return the cumulative shares of each cell."""
    result = []
    for job, r in done:
        rows = [(peak, *(f"{100 * share:.4f} %" for share in _within(r, peak))) for peak, *_ in r["peaks"]]
        title = f"Figure 3: orders of {job['graph']}, {r['operators']} operators, {int(r['orders']):,} orders"
        result.append(StudyTable(title, ("bytes at most", "every order alike", "drawn step by step"), rows))
    return result


def _words(limit: int | None) -> Any:
    def words(done: Done) -> tuple[str, str]:
        found = [r for job, r in done if job["graph"] == CELLS[0]]
        if not found:
            return "needs the reference data", ""
        alike, drawn = _within(found[0], min(row[0] for row in found[0]["peaks"]) if limit is None else limit)
        return f"{100 * alike:.3g} % of all orders; {100 * drawn:.2g} % drawn step by step", ""

    return words


STUDIES.register("serenity-orders", summary="Figure 3: the peaks of all orders of a cell")(
    Study(jobs, compute, tables, {"fits": _words(DEVICE_BYTES), "least": _words(None)})
)
