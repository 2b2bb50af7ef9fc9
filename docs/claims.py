"""The claims of four papers beside the recorded run (`python scripts/papers all --record`)."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from papers.catalogue import CLAIMS, PAPERS
from papers.claim import recorded, shown

HEAD = "| printed | where | found | decides | verdict | why |\n|---|---|---|---|---|---|\n"
INTRODUCTION = """# Claims of the papers

Generated from the recorded run: its verdict, date, commit and selection stand beside those of a later run and never in
their place. What is compared and how: [The papers, read again](../guides/papers.md).

"""


def claims() -> str:
    """Return the page: a table a paper, with every claim, the numbers and the verdict recorded."""
    kept, parts = recorded(), [INTRODUCTION]
    for key, paper in PAPERS.items():
        rows, verdicts = [], Counter[str]()
        for claim in CLAIMS[key]:
            one = kept.get(f"{key}/{claim.key}", {})
            said = one.get("verdict") or (f"not comparable: {claim.lacking}" if claim.lacking else "not run")
            verdicts[said.split(":")[0]] += 1
            found = [
                shown(v, claim.unit) + (f" ({name})" if name else "") for name, v in one.get("readings", {}).items()
            ]
            found += [f"our method: {shown(one['ours'], claim.unit)}"] if one.get("ours") else []
            decides = claim.relation.text.format(claim.unit).strip().replace(" ,", ",")
            when = f" ({one['date']}, {one['commit']}, `{one['selection']}`)" if one else ""
            rows.append(
                f"| {claim.says} | {claim.where} | {'; '.join(found)} | {decides} | {said}{when} | {claim.note} |"
            )
        tally = ", ".join(f"{verdict}: {count}" for verdict, count in sorted(verdicts.items()))
        body = "\n".join(rows)
        parts.append(f"## {paper.short}: {paper.title}\n\n{len(rows)} claims; {tally}.\n\n{HEAD}{body}\n\n")
    return "".join(parts)
