"""Write the tables of docs/guides/papers.md: claims from a run's page, and what --full gave from its records.

python scripts/papers all -r results/papers --json claims.json
python docs/claims.py claims.json results/papers
python scripts/papers all --full -r results/full
python docs/claims.py --full results/full
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from papers.claims import Figure, load_catalogue
from papers.estimate import words
from papers.measurements import Measurement, measure
from papers.page import VERDICTS, older
from papers.reproduction import Reproduction, reproduce
from papers.study import STUDIES, StudyRun

GUIDE = Path(__file__).parent / "guides" / "papers.md"
HEAD = "| printed | where | ours | verdict | why |\n|---|---|---|---|---|\n"
FULL_HEAD = "| figure | setting | two-optimal | CR, 1,000,000 | `auto` | bound |\n|---|---|---|---|---|---|\n"
CLOCKS = {
    "gleinig-clock": (
        "x", "mkl", "two-optimal, runs", "reordered, runs", "two-optimal, literal", "reordered, literal", "fastest",
        "gain by reordering, runs", "gain by reordering, literal",
    ),
    "ego-clock": (
        "network", "layers", "vectors", "scipy", "torch", "layerwise, runs", "unsorted, runs", "ego, runs",
        "unsorted, literal", "ego, literal",
    ),
}  # fmt: skip
RUN_HEAD = "| name | finished | CPU time |\n|---|---|---|\n"


def tables(claims: list[dict[str, Any]]) -> str:
    """Return the four tables, a paper each."""
    parts = []
    for paper in load_catalogue().papers.values():
        mine = [c for c in claims if c["paper"] == paper.title]
        name = mine[0]["where"].split(", ")[0]
        counts = Counter(c["verdict"] for c in mine)
        tally = ", ".join(f"{v}: {counts[v]}" for v in VERDICTS if counts[v])
        rows = "".join(_row(c, name) for c in mine)
        parts.append(f"## {name}: {paper.title}\n\n{len(mine)} claims; {tally}.\n\n{HEAD}{rows}\n")
    return "".join(parts)


def _row(claim: dict[str, Any], paper: str) -> str:
    ours = claim["theirs"] if claim["measured"] else ""
    if claim["measured"] and claim["ours"]:
        ours += f"; our method: {claim['ours']}"
    cells = (claim["claim"], claim["where"].removeprefix(f"{paper}, "), ours, claim["verdict"], claim["because"])
    return f"| {' | '.join(cells)} |\n"


def clocks(name: str, folder: str) -> str:
    """Return the table of a study that reads a clock, as it stands in the guide."""
    run = reproduce(name, results=folder, run=False)
    assert isinstance(run, StudyRun)
    table = next(table for table in STUDIES[name].item.tables(run.done) if table.rows)
    kept = [k for k, head in enumerate(table.heads) if head in CLOCKS[name]]
    rows = (table.heads, ["---"] * len(table.heads), *table.rows)
    return "".join(f"| {' | '.join(str(row[k]) for k in kept)} |\n" for row in rows)


def full(folder: str) -> str:
    """Return what --full gave: the counts of every sweep's points, and the CPU time of everything."""
    catalogue = load_catalogue()
    runs = [reproduce(name, results=folder, full=True, run=False) for name in (*catalogue.figures, *STUDIES)]
    sweeps = [run for run in runs if isinstance(run, Reproduction)]
    rows = [row for run in sweeps for row in _points(catalogue.figures[run.name], run)]
    told = "".join(f"| {' | '.join(cells)} |\n" for cells in rows if cells[2] != cells[5])
    least = Counter(f"Figure {row[0]}{_panel(row[1])}" for row in rows if row[2] == row[5])
    at_bound = "; ".join(f"{count} point{'s' * (count > 1)} of {where}" for where, count in least.items())
    seen: set[str] = set()
    return (
        f"{FULL_HEAD}{told}\nAt the bound without any search: {at_bound}.\n\n"
        f"{RUN_HEAD}{''.join(_state(run, seen) for run in runs)}\n"
    )


def _panel(setting: str) -> str:
    return f" with {setting.partition(';')[0]}" if ";" in setting else ""


def _points(figure: Figure, run: Reproduction) -> Iterator[tuple[str, ...]]:
    """One row a panel and x, of the network that all methods have."""
    found: dict[tuple[str, float], dict[str, Measurement]] = {}
    for m in measure(figure, run.records):  # a curve ends with what its search found
        found.setdefault((m.panel, m.x if figure.shows == "io" else 0), {})[m.kind] = m
    for (panel, x), methods in found.items():
        two = methods[figure.baseline]
        setting = "; ".join(part for part in (panel, f"{_axis(figure)}{x:g}" if figure.shows == "io" else "") if part)
        counts = (_count(methods.get(kind), two) for kind in (figure.theirs, "auto"))
        yield str(figure.figure), setting, f"{two.value:,.0f}", *counts, f"{two.lower:,}"


def _axis(figure: Figure) -> str:
    return "M = " if figure.x.path.endswith("size") else f"{figure.x.path.split('.')[-1].replace('n_', '')} "


def _count(m: Measurement | None, two: Measurement) -> str:
    if m is None:
        return ""
    change = f" ({100 * (m.value / two.value - 1):+.1f} %)" if abs(m.value / two.value - 1) >= 0.001 else ""
    return f"{m.value:,.0f}{change}"


def _state(run: Reproduction | StudyRun, seen: set[str]) -> str:
    """How much of a figure is finished, and the CPU time of what no figure above has."""
    new = {record.hash: record for record in run.records if record.hash not in seen}
    seen.update(new)
    cpu = sum(float(record.provenance.get("cpu_s") or 0.0) for record in new.values())
    of = len(run.jobs if isinstance(run, StudyRun) else run.plan.points)
    age = f", {count} by older counts" if (count := older(run)) else ""
    return f"| `{run.name}` | {len(run.records)} of {of}{age} | {words(cpu) if cpu else ''} |\n"


def _replace(begin: str, end: str, text: str) -> None:
    """Put text in the guide from the line that matches `begin` to the next one that matches `end`."""
    guide = GUIDE.read_text()
    first = re.search(begin, guide, re.M)
    assert first is not None
    last = re.search(end, guide[first.end() :], re.M)
    assert last is not None
    GUIDE.write_text(guide[: first.start()] + text + guide[first.end() + last.start() :])


def main(*arguments: str) -> None:
    """Put a run's claims and times, or the table of a folder that --full filled, in the guide."""
    if arguments[0] == "--full":
        _replace(r"^\| figure \| setting ", r"^<!-- end of the table", full(arguments[1]))
    else:
        _replace("^## Gleinig", "^## Running it", tables(json.loads(Path(arguments[0]).read_text())["claims"]))
        for name in CLOCKS if len(arguments) > 1 else ():
            _replace(rf"^\| {CLOCKS[name][0]} \|", "^$", clocks(name, arguments[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
