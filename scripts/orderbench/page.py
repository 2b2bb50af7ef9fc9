"""The static page: each instance with its floor, the best known total and by how much each method misses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from orderbench.instances import Instance

STYLE = "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right}"
STYLE += "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f4f4f4}.closed{color:#070}"


def page(tasks: Sequence[Instance], best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    """Return HTML without scripts: methods, then kinds, then instances."""
    closed = sum(best[one.name]["io"] == best[one.name]["floor"] for one in tasks)
    words = (
        f"{len(tasks)} instances, {closed} closed: the best known total is the least that any order has. A method's "
    )
    words += "columns say by how many per cent of all I/Os it is above the best known, and its CPU seconds."
    methods = [str(one["method"]) for one in results]
    heads = ["instance", "neurons", "connections", "policy", "M", "floor", "best known", "by", *methods]
    totals = table(["method", "solved", "best known", "mean above", "worst", "seconds"], summary(best, results))
    return (
        f"<!doctype html><meta charset=utf-8><title>orderbench</title><style>{STYLE}</style><h1>orderbench</h1>"
        f"<p>{words}</p>{totals}"
        f"<h2>Kinds</h2>{table(['kind', 'instances', 'closed', *methods], kinds(tasks, best, results))}"
        f"<h2>Instances</h2>{table(heads, (line(one, best[one.name], results) for one in tasks))}"
    )


def above(row: Mapping[str, Any], known: Mapping[str, Any]) -> float:
    """Return by how many per cent a total is above the best known."""
    return 100 * (float(row["io"]) / float(known["io"]) - 1)


def summary(best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    """Yield a line for each method."""
    for result in results:
        rows = result["rows"]
        over = [above(row, best[name]) for name, row in rows.items()]
        hit, seconds = sum(value <= 0 for value in over), sum(row["seconds"] for row in rows.values())
        yield [str(result["method"]), str(len(rows)), str(hit), f"{sum(over) / len(over):.2f} %", f"{max(over):.1f} %",
               f"{seconds:.0f}"]  # fmt: skip


def kinds(
    tasks: Sequence[Instance], best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]
) -> Iterable[list[str]]:
    """Yield a line for each kind: the mean of each method."""
    for kind in dict.fromkeys(one.kind for one in tasks):
        names = [one.name for one in tasks if one.kind == kind]
        closed = sum(best[name]["io"] == best[name]["floor"] for name in names)
        cells = []
        for result in results:
            over = [above(result["rows"][name], best[name]) for name in names if name in result["rows"]]
            cells.append(f"{sum(over) / len(over):.2f} %" if over else "")
        yield [kind, str(len(names)), str(closed), *cells]


def line(one: Instance, known: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the cells of an instance."""
    rows = (result["rows"].get(one.name) for result in results)
    cells = ["" if row is None else f"{above(row, known):.2f} % {row['seconds']:.2f} s" for row in rows]
    return [one.name, f"{one.n_neurons:,}", f"{len(one.connections):,}", one.policy, str(one.memory),
            f"{known['floor']:,}", f"{known['io']:,}", str(known["by"]), *cells]  # fmt: skip


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts."""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells) for cells in lines)
    return "<table><tr>" + "".join(f"<th>{escape(head)}" for head in heads) + f"{body}</table>"
