"""Write the tables of claims in docs/guides/papers.md from a run's page.

edgewatt papers all --json claims.json
python docs/claims.py claims.json
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from edgewatt.papers.claims import load_catalogue
from edgewatt.papers.page import VERDICTS

GUIDE = Path(__file__).parent / "guides" / "papers.md"
HEAD = "| printed | where | ours | verdict | why |\n|---|---|---|---|---|\n"


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


def main(file: str) -> None:
    """Put the tables of a run's claims in the guide."""
    claims = json.loads(Path(file).read_text())["claims"]
    guide = GUIDE.read_text()
    begin, end = re.search(r"^## Gleinig", guide, re.M), re.search(r"^## Running it", guide, re.M)
    assert begin is not None and end is not None
    GUIDE.write_text(guide[: begin.start()] + tables(claims) + guide[end.start() :])


if __name__ == "__main__":
    main(sys.argv[1])
