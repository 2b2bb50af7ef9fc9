"""Write the claims of docs/guides/papers.md from the recorded run.

python scripts/papers all --record
python docs/claims.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from papers.catalogue import CLAIMS, PAPERS
from papers.claim import recorded, shown

GUIDE = Path(__file__).parent / "guides" / "papers.md"
HEAD = "| printed | where | found | decides | verdict | why |\n|---|---|---|---|---|---|\n"


def tables() -> str:
    """Return a table a paper: every claim, the numbers and the verdict recorded."""
    kept, parts = recorded(), []
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


if __name__ == "__main__":
    GUIDE.write_text(
        re.sub(r"(?s)(?<=\n)## Gleinig.*?(?=## Running it)", lambda _: tables(), GUIDE.read_text(), count=1)
    )
