"""Orders on a public corpus of tasks: python scripts/orderbench COMMAND

    python scripts/orderbench run METHOD          # a method of edgewatt on every task that it is for, as JSON
    python scripts/orderbench run auto --time 1   # with a time limit for each, in seconds
    python scripts/orderbench write FOLDER        # every task as a JSON file, for solvers of others
    python scripts/orderbench count FOLDER        # their answers, files TASK.json, counted: results as of `run`
    python scripts/orderbench add RESULTS.json    # take what is better than the best known, with its recipe
    python scripts/orderbench page RESULTS.json... -o FILE.html

METHOD: of `edgewatt list orderings`, `tuple-orders`, `schedulers` or `allocators`. Solvers of others write {"order":
[...]}, for buffers {"offsets": [...]}; check.py counts one with Python alone. Results are {"method": name, "recipe":
command, "rows": {task: {"cost": c, "seconds": s, "floor": proved or null, "answer": [...]}}}; `add` counts again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
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
    from edgewatt.plugins import registry

    known, rows = [things for things, kind in KINDS.items() if method in registry(kind)], {}
    tasks = [task for task in instances() if task["name"].startswith(only) and any(things in task for things in known)]
    if not tasks:
        raise ValueError(f"{method!r} is no method of a task whose name begins with {only!r}")
    solve(tasks[0], method, limit, parameters)  # so that no row has the time of imports
    for task in tasks:
        began = time.process_time()
        numbers, floor = solve(task, method, limit, parameters)
        seconds = time.process_time() - began
        rows[task["name"]] = row_of(task, [int(k) for k in numbers], seconds, int(floor()) if floors else None)
    options = [f" -s {name}={value}" for name, value in parameters.items()] + [f" --time {limit}"] * (limit is not None)
    return {"method": method, "recipe": f"python scripts/orderbench run {method}{''.join(options)}", "rows": rows}


def row_of(task: Task, answer: dict[str, Any] | list[int], seconds: float, floor: int | None) -> dict[str, Any]:
    """Return the row of an answer, counted; ValueError naming the task if it is none."""
    try:
        cost = count(task, answer)
    except (KeyError, TypeError, ValueError) as error:
        raise type(error)(f"{task['name']}: {error}") from None
    print(f"{task['name']:16} {cost:8,}  {seconds:6.2f} s", file=sys.stderr)
    return {"cost": cost, "seconds": round(seconds, 3), "floor": floor, "answer": answer}


def counted(folder: Path, recipe: str) -> dict[str, Any]:
    """Return the results of a folder of answers, which may also have "seconds" and a proved "floor"."""
    rows, tasks = {}, {task["name"]: task for task in instances()}
    for path in sorted(folder.iterdir()):
        if path.stem not in tasks:
            raise ValueError(f"{path}: there is no task {path.stem!r}")
        try:
            given = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        seconds, floor = (given.get(key) if isinstance(given, dict) else None for key in ("seconds", "floor"))
        rows[path.stem] = row_of(tasks[path.stem], given, seconds or 0, floor)
    return {"method": folder.name, "recipe": recipe, "rows": rows}


def add(results: dict[str, Any], best: dict[str, Any]) -> int:
    """Take what is better into the best known; return how many of its costs and floors changed."""
    changed, tasks = 0, {task["name"]: task for task in instances()}
    for name, row in results["rows"].items():
        known = best.setdefault(name, {"cost": None, "by": "", "recipe": "", "floor": 0})
        if known["cost"] is None or row["cost"] < known["cost"]:
            if row["cost"] != row_of(tasks[name], row["answer"], row["seconds"], None)["cost"]:
                raise ValueError(f"{name}: the answer does not cost {row['cost']}")
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
        made = perform(asked)
    except (KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    (asked.output.write_text if getattr(asked, "output", None) else print)(made)


def perform(asked: argparse.Namespace) -> str:
    """Return what a command prints."""
    best = json.loads(BEST.read_text())
    if asked.command == "write":
        asked.folder.mkdir(parents=True, exist_ok=True)
        for task in instances():
            (asked.folder / f"{task['name']}.json").write_text(json.dumps(task))
        return f"{len(best)} tasks"
    if asked.command == "add":
        changed = add(json.loads(asked.results.read_text()), best)
        BEST.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(best[name])}' for name in sorted(best)) + "\n}\n")
        return f"{changed} better"
    if asked.command == "page":
        return page(list(instances()), best, [json.loads(path.read_text()) for path in asked.results])
    if asked.command == "count":
        return json.dumps(counted(asked.folder, asked.recipe))
    from edgewatt.cli.parts.output import read_value, split_parameter

    parameters = {name: read_value(value) for name, value in map(split_parameter, asked.set)}
    return json.dumps(run(asked.method, asked.time, asked.only, asked.floors, parameters))


if __name__ == "__main__":
    main()
