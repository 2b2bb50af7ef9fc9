"""Orders on a public corpus of tasks: python scripts/orderbench COMMAND

    python scripts/orderbench run METHOD          # a method of edgewatt on every task that it is for, as JSON
    python scripts/orderbench run auto --time 1   # with a time limit for each, in seconds
    python scripts/orderbench write FOLDER        # every task as a JSON file, for solvers of others
    python scripts/orderbench count FOLDER        # their answers, files TASK.json, counted: results as of `run`
    python scripts/orderbench add RESULTS.json    # take what is better than the best known, with its recipe
    python scripts/orderbench page RESULTS.json... -o FILE.html

METHOD: of `edgewatt list orderings`, `tuple-orders`, `schedulers` or `allocators`. Solvers of others write {"order":
[...]}, for buffers {"offsets": [...]}; check.py counts one with Python alone. Results are {"method": name, "recipe":
command, "rows": {task: {"cost": c, "seconds": s, "floor": proved or null, "answer": [...]}}}; all are counted again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import getoutput
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]

from orderbench.check import count  # noqa: E402
from orderbench.instances import Task, instances  # noqa: E402
from orderbench.page import page  # noqa: E402

BEST = HERE / "best.json"
Answer = tuple[Any, Callable[[], float]]  # whole numbers, and how to find a floor
KINDS = {"connections": "orderings", "entries": "tuple-orders", "operators": "schedulers", "buffers": "allocators"}


def solve(task: Task, method: str, limit: float | None, parameters: dict[str, Any]) -> Answer:
    """Return the answer of a method of edgewatt, of the registry that KINDS names for what a task has."""
    import numpy as np
    from scipy.sparse import csr_array

    import edgewatt as ew
    from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor

    if "connections" in task:
        pairs, memory = np.array(task["connections"]).T, task["memory"]
        ends = {"inputs": np.setdiff1d(*pairs), "outputs": task["outputs"]}
        network = ew.Network(*pairs, n_neurons=task["n_neurons"], **ends)
        order = ew.order(network, method, memory=memory, policy=task["policy"], time_limit_s=limit, **parameters)
        if order.parameters.get("optimal") == "proved":
            return order.edges, lambda: count(task, order.edges.tolist())
        return order.edges, lambda: ew.orders.lower_bound(network, memory).total
    if "entries" in task:
        rows, bits, columns = np.array(task["entries"]).T
        values = bits.astype(np.uint16).view(np.float16).astype(np.float32)
        matrix = csr_array((values, columns, np.searchsorted(rows, np.arange(rows[-1] + 2))))
        tuples = ew.order_tuples(matrix, value_format="fp16", stride="row", method=method, **parameters)
        return tuples.positions, lambda: tuples.lower_bound or 0
    if "operators" in task:
        nodes = []
        for k, (n_bytes, inputs) in enumerate(task["operators"]):
            written = Tensor(str(k), (n_bytes,), n_bytes, str(k))
            nodes.append(Operator(str(k), "ADD" if inputs else INPUT, tuple(map(str, inputs)), (written,)))
        graph = OpGraph(task["name"], tuple(nodes), tuple(map(str, task["outputs"])))
        plan = ew.schedule(graph, method=method, allocator="linear", time_limit_s=limit, **parameters)
        return plan.order, lambda: plan.lower_bound_bytes
    placed = ew.allocate(*np.array(task["buffers"]).T, allocator=method, time_limit_s=limit, **parameters)
    return placed.offset, lambda: placed.lower_bound


def run(method: str, limit: float | None, only: str, floors: bool, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a method on all tasks that it is for and whose name begins with `only`."""
    from edgewatt import __version__
    from edgewatt.plugins import registry

    known, rows = [things for things, kind in KINDS.items() if method in registry(kind)], {}
    tasks = [task for task in instances() if task["name"].startswith(only) and any(things in task for things in known)]
    if not tasks:
        names = ", ".join(sorted({name for kind in KINDS.values() for name in registry(kind)}))
        raise ValueError(f"{method!r} is no method of a task whose name begins with {only!r}; methods: {names}")
    solve(tasks[0], method, limit, parameters)  # so that no row has the time of imports
    for task in tasks:
        began = time.process_time()
        numbers, floor = solve(task, method, limit, parameters)
        seconds = time.process_time() - began
        rows[task["name"]] = row = row_of(task, [int(k) for k in numbers], seconds, int(floor()) if floors else None)
        print(f"{task['name']:16} {row['cost']:8,}  {seconds:6.2f} s", file=sys.stderr)
    options = [f" -s {name}={value}" for name, value in parameters.items()] + [f" --time {limit}"] * (limit is not None)
    commit = getoutput(f"git -C '{HERE}' describe --always --abbrev=8 --dirty --exclude='*' 2>/dev/null || echo '?'")
    recipe = f"python scripts/orderbench run {method}{''.join(options)}  # edgewatt {__version__}, commit {commit}"
    return {"method": method, "recipe": recipe, "rows": rows}


def row_of(task: Task, answer: Any, seconds: Any, floor: Any, where: str = "") -> dict[str, Any]:
    """Return the row of an answer, counted; ValueError naming the task if the answer, seconds or floor cannot be."""
    try:
        cost = count(task, answer)
        if type(seconds) not in (int, float) or not 0 <= seconds < 1e9:
            raise ValueError(f"wanted: seconds, a number from 0; given: {seconds!r:.40}")
        if floor is not None and (type(floor) is not int or not 0 <= floor <= cost):
            raise ValueError(f"wanted: a floor up to the answer's cost, {cost}, or null; given: {floor!r:.40}")
    except ValueError as error:
        raise ValueError(f"{where}{task['name']}: {error}") from None
    return {"cost": cost, "seconds": round(seconds, 3), "floor": floor, "answer": answer}


def read(path: Path) -> Any:
    """Return what a JSON file holds; ValueError naming the file if that is none."""
    try:
        return json.loads(path.read_text(), parse_constant=int)  # int("NaN") raises
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path}: {error}; wanted: JSON without NaN") from None


def recounted(path: Path) -> dict[str, Any]:
    """Return results, every answer counted again; ValueError naming the file, the task and what is wanted."""
    results, tasks = read(path), {task["name"]: task for task in instances()}
    rows = results.get("rows") if isinstance(results, dict) else None
    if not rows or not isinstance(rows, dict) or not {"method", "recipe"} <= results.keys():
        raise ValueError(f"{path}: wanted: method, recipe and rows of at least one task")
    for name, row in rows.items():
        if name not in tasks or not isinstance(row, dict) or not {"cost", "seconds", "answer"} <= row.keys():
            raise ValueError(f"{path}: {name!r:.60}: wanted: a task's name, with cost, seconds and answer")
        cost = row_of(tasks[name], row["answer"], row["seconds"], row.get("floor"), f"{path}: ")["cost"]
        if repr(row["cost"]) != repr(cost):
            raise ValueError(f"{path}: {name}: the answer costs {cost}, not {row['cost']!r:.40}")
    return dict(results)


def counted(folder: Path, recipe: str) -> dict[str, Any]:
    """Return the results of a folder of answers TASK.json, which may also have "seconds" and a proved "floor"."""
    rows, tasks = {}, {f"{task['name']}.json": task for task in instances()}
    names = {path.name for path in folder.iterdir()}
    if others := sorted(names - tasks.keys()):
        print(f"{folder}: left out, no TASK.json: {', '.join(others)}"[:500], file=sys.stderr)
    for name in sorted(names & tasks.keys()):
        given = read(folder / name)
        seconds, floor = (given.get("seconds", 0), given.get("floor")) if isinstance(given, dict) else (0, None)
        rows[name.removesuffix(".json")] = row = row_of(tasks[name], given, seconds, floor, f"{folder / name}: ")
        print(f"{name:21} {row['cost']:8,}", file=sys.stderr)
    if not rows:
        raise ValueError(f"{folder}: no answers: wanted: files TASK.json")
    return {"method": folder.name, "recipe": recipe, "rows": rows}


def add(results: dict[str, Any], best: dict[str, Any]) -> int:
    """Take what is better, of recounted results, into the best known; return how many costs and floors changed."""
    changed = 0
    for name, row in results["rows"].items():
        known = best.setdefault(name, {"cost": None, "by": "", "recipe": "", "floor": 0})
        if known["cost"] is None or row["cost"] < known["cost"]:
            known.update(cost=row["cost"], by=results["method"], recipe=results["recipe"])
            changed += 1
        if (row.get("floor") or 0) > known["floor"]:
            known["floor"] = row["floor"]
            changed += 1
        if known["floor"] > known["cost"]:
            raise ValueError(f"{name}: a floor of {known['floor']}, but an answer has {known['cost']}")
    return changed


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("method")
    running.add_argument("--time", type=float, help="Stop each search after this many seconds.")
    running.add_argument("--only", default="", help="Only tasks whose name begins so.")
    running.add_argument("--floors", action="store_true", help="Prove floors too (seconds for each network).")
    running.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE", help="A parameter.")
    commands.add_parser("write").add_argument("folder", type=Path)
    counting = commands.add_parser("count")
    counting.add_argument("folder", type=Path)
    counting.add_argument("--recipe", default="", help="The command that makes these answers.")
    commands.add_parser("add").add_argument("results", type=Path)
    paging = commands.add_parser("page")
    paging.add_argument("results", type=Path, nargs="*")
    for command in (running, counting, paging):
        command.add_argument("-o", "--output", type=Path, help="Write here, not to standard output.")
    asked = parser.parse_args()
    try:
        if output := getattr(asked, "output", None):
            output.open("a").close()  # not after all the work
        (output.write_text if output else print)(perform(asked))
    except (KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}"[:2000])


def perform(asked: argparse.Namespace) -> str:
    """Return what a command prints."""
    best = json.loads(BEST.read_text())
    if asked.command == "write":
        asked.folder.mkdir(parents=True, exist_ok=True)
        for task in instances():
            (asked.folder / f"{task['name']}.json").write_text(json.dumps(task))
        return f"{len(best)} tasks"
    if asked.command == "add":
        changed = add(recounted(asked.results), best)
        BEST.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(best[name])}' for name in sorted(best)) + "\n}\n")
        return f"{changed} better"
    if asked.command == "page":
        return page(list(instances()), best, [recounted(path) for path in asked.results])
    if asked.command == "count":
        return json.dumps(counted(asked.folder, asked.recipe), allow_nan=False)
    from edgewatt.cli.parts.output import read_value, split_parameter

    parameters = {name: read_value(value) for name, value in map(split_parameter, asked.set)}
    return json.dumps(run(asked.method, asked.time, asked.only, asked.floors, parameters))


if __name__ == "__main__":
    main()
