"""The static page: each task with its floor, the best known cost and by how much each method misses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from orderbench.check import MEASURES
from orderbench.instances import Task

STYLE = "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right}"
STYLE += "td:first-child,th:first-child{text-align:left}tr:nth-child(even){background:#f4f4f4}.closed{color:#070}"


def page(tasks: Sequence[Task], best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    """Return HTML without scripts: methods, then kinds, then tasks."""
    closed = sum(best[one["name"]]["cost"] == best[one["name"]]["floor"] for one in tasks)
    words = (
        f"{len(tasks)} tasks, {closed} closed: the best known cost is proved to be the least. Costs are I/Os of "
        "networks, ones of tuples, bytes of operators and arenas. A method's columns say by how many per cent it is "
        "above the best known, and its CPU seconds."
    )
    methods = [str(one["method"]) for one in results]
    heads = ["task", "size", "memory", "floor", "best known", "by", *methods]
    totals = table(["method", "tasks", "best known", "mean above", "worst", "seconds"], summary(best, results))
    return (
        f"<!doctype html><meta charset=utf-8><title>orderbench</title><style>{STYLE}</style><h1>orderbench</h1>"
        f"<p>{words}</p>{totals}"
        f"<h2>Kinds</h2>{table(['kind', 'tasks', 'closed', *methods], kinds(tasks, best, results))}"
        f"<h2>Tasks</h2>{table(heads, (line(one, best[one['name']], results) for one in tasks))}"
    )


def above(row: Mapping[str, Any], known: Mapping[str, Any]) -> float:
    """Return by how many per cent a total is above the best known."""
    return 100 * (float(row["cost"]) / float(known["cost"]) - 1)


def summary(best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    """Yield a line for each method."""
    for result in results:
        over = [above(row, best[name]) for name, row in result["rows"].items()]
        seconds, hit = sum(row["seconds"] for row in result["rows"].values()), sum(value <= 0 for value in over)
        numbers = f"{len(over)}", f"{hit}", f"{fmean(over):.2f} %", f"{max(over):.1f} %", f"{seconds:.0f}"
        yield [str(result["method"]), *numbers]


def kinds(tasks: Sequence[Task], best: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> Iterable[list[str]]:
    """Yield a line for each kind: the mean of each method."""
    for kind in dict.fromkeys(one["kind"] for one in tasks):
        names = [one["name"] for one in tasks if one["kind"] == kind]
        closed = sum(best[name]["cost"] == best[name]["floor"] for name in names)
        cells = []
        for result in results:
            over = [above(result["rows"][name], best[name]) for name in names if name in result["rows"]]
            cells.append(f"{fmean(over):.2f} %" if over else "")
        yield [kind, str(len(names)), str(closed), *cells]


def line(one: Task, known: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the cells of a task."""
    rows = (result["rows"].get(one["name"]) for result in results)
    cells = ["" if row is None else f"{above(row, known):.2f} % {row['seconds']:.2f} s" for row in rows]
    things = next(name for name in MEASURES if name in one)
    memory = f"{one['policy']}, M = {one['memory']}" if "memory" in one else ""
    size, floor, cost = f"{len(one[things]):,} {things}", f"{known['floor']:,}", f"{known['cost']:,}"
    return [one["name"], size, memory, floor, cost, str(known["by"]), *cells]


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts."""
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells) for cells in lines)
    return "<table><tr>" + "".join(f"<th>{escape(head)}" for head in heads) + f"{body}</table>"
