"""All papers, figures and claims, and what of them a name means."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from papers.claim import RECORD, Claim, recorded
from papers.claims import ahn, feinberg, gleinig, kamatar
from papers.figure import Figure, Paper, Run
from traces.base.errors import unknown_name
from traces.base.files import whole_file

STUDIES = (
    "gleinig_io", "gleinig_clock", "ego_misses", "ego_clock", "eon",
    "cdr_strides", "cdr_ones", "cdr_search", "serenity_memory", "serenity_orders", "serenity_search",
)  # fmt: skip
PAPERS: dict[str, Paper] = {module.PAPER.key: module.PAPER for module in (gleinig, kamatar, feinberg, ahn)}
CLAIMS: dict[str, list[Claim]] = {module.PAPER.key: module.CLAIMS for module in (gleinig, kamatar, feinberg, ahn)}
FIGURES: dict[str, Figure] = {f.name: f for name in STUDIES for f in import_module(f"papers.studies.{name}").FIGURES}


def chosen(names: Sequence[str]) -> list[str]:
    """Return the figures that names mean: 'all', a figure, or the beginning of several ('gleinig', 'gleinig-2')."""
    picked: list[str] = []
    for name in names:
        hits = [name] if name in FIGURES else [k for k in FIGURES if name == "all" or (name and k.startswith(name))]
        if not hits:
            raise unknown_name("figure", name, [*FIGURES, "all"])
        picked += hits
    return list(dict.fromkeys(picked))


def keep(claims: Sequence[dict[str, Any]], selection: str, runs: Sequence[Run]) -> None:
    """Write the verdicts of these claims that could be decided into record.json, with date, commit and selection."""
    said = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parent)  # fmt: skip
    dates = {run.name: max(str(r.provenance["finished"])[:10] for r in run.records) for run in runs if run.records}
    kept = recorded()
    for claim in claims:
        run = all(name in dates for name in claim["figures"])
        if claim["readings"] and run and not claim["verdict"].startswith("not "):
            kept[claim["key"]] = {
                "verdict": claim["verdict"], "readings": claim["readings"], "ours": claim["ours_numbers"],
                "date": max(dates[name] for name in claim["figures"]), "commit": said.stdout.strip() or "unknown",
                "selection": selection,
            }  # fmt: skip
    lines = (f"{json.dumps(key)}: {json.dumps(kept[key])}" for key in sorted(kept))
    with whole_file(RECORD) as stream:
        stream.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())
