"""Orders of sparse networks on a public corpus: python scripts/orderbench COMMAND

    python scripts/orderbench run METHOD          # a method of `edgewatt list orderings` on every instance, as JSON
    python scripts/orderbench run auto --time 1   # with a time limit for each, in seconds
    python scripts/orderbench write FOLDER        # every instance as a JSON file, for solvers of others
    python scripts/orderbench add RESULTS.json    # take what is better than the best known, with its recipe
    python scripts/orderbench page RESULTS.json... -o FILE.html

A solver of your own reads the files of `write` and writes {"order": [...]}, indices of connections in turn;
`scripts/orderbench/check.py INSTANCE ORDER` counts it with Python alone. Results that `add` and `page` take are
{"method": name, "recipe": how it was run, "rows": {instance: {"io": total, "seconds": s, "floor": least proved or
null}}}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]

from orderbench.check import count  # noqa: E402
from orderbench.instances import Instance, instances  # noqa: E402
from orderbench.page import page  # noqa: E402

BEST = HERE / "best.json"


def network_of(instance: Instance) -> Any:
    """Return an instance as a network of edgewatt."""
    import edgewatt as ew

    sources, targets = zip(*instance.connections, strict=True)
    inputs = sorted({*sources} - {*targets})
    return ew.Network(sources, targets, n_neurons=instance.n_neurons, inputs=inputs, outputs=instance.outputs)


def run(method: str, time_limit_s: float | None, only: str) -> dict[str, Any]:
    """Return the results of a method on all instances whose name begins with `only`, counted by check.py."""
    import edgewatt as ew

    rows = {}
    for one in instances():
        if not one.name.startswith(only):
            continue
        network, began = network_of(one), time.process_time()
        task: dict[str, Any] = {"memory": one.memory, "policy": one.policy}
        found = ew.order(network, method, time_limit_s=time_limit_s, **task)
        seconds = time.process_time() - began
        counted = one.n_neurons, one.connections, one.outputs, one.memory, one.policy
        total = count(*counted, found.edges.tolist())
        optimal = found.parameters.get("optimal") == "proved"
        proved = total if optimal else ew.orders.lower_bound(network, one.memory).total
        rows[one.name] = {"io": total, "seconds": round(seconds, 3), "floor": int(proved)}
        print(f"{one.name:16} {one.policy:3} M = {one.memory:<3} {total:8,} I/Os  {seconds:6.2f} s", file=sys.stderr)
    limit = "" if time_limit_s is None else f" --time {time_limit_s:g}"
    return {"method": method, "recipe": f"python scripts/orderbench run {method}{limit}", "rows": rows}


def add(results: dict[str, Any], best: dict[str, Any]) -> int:
    """Take what is better into the best known; return how many of its totals and floors changed."""
    changed = 0
    for name, row in results["rows"].items():
        known = best.setdefault(name, {"io": None, "by": "", "recipe": "", "floor": 0})
        if known["io"] is None or row["io"] < known["io"]:
            known.update(io=row["io"], by=results["method"], recipe=results["recipe"])
            changed += 1
        if (row.get("floor") or 0) > known["floor"]:
            known["floor"] = row["floor"]
            changed += 1
    return changed


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("method")
    running.add_argument("--time", type=float, help="Stop each search after this many seconds.")
    running.add_argument("--only", default="", help="Only instances whose name begins so.")
    commands.add_parser("write").add_argument("folder", type=Path)
    commands.add_parser("add").add_argument("results", type=Path)
    paging = commands.add_parser("page")
    paging.add_argument("results", type=Path, nargs="*")
    for command in (running, paging):
        command.add_argument("-o", "--output", type=Path, help="Write here, not to standard output.")
    asked = parser.parse_args()
    best = json.loads(BEST.read_text())
    if asked.command == "write":
        asked.folder.mkdir(parents=True, exist_ok=True)
        for one in instances():
            (asked.folder / f"{one.name}.json").write_text(json.dumps(one.as_dict()))
    elif asked.command == "add":
        changed = add(json.loads(asked.results.read_text()), best)
        BEST.write_text(json.dumps(best, indent=0, sort_keys=True) + "\n")
        print(f"{changed} better")
    else:
        if asked.command == "run":
            made = json.dumps(run(asked.method, asked.time, asked.only), indent=1)
        else:
            made = page(list(instances()), best, [json.loads(path.read_text()) for path in asked.results])
        if asked.output:
            asked.output.write_text(made)
        else:
            print(made)


if __name__ == "__main__":
    main()
