"""Write tests/golden/replay.json, our own counts on the shipped network: python scripts/golden_replay.py

A golden number proves that nothing moved, not that it is right: the property tests do that. Review its diff.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.layout.settings import Layout
from traces.readers import load
from traces.trace.build import build_trace

ROOT = Path(__file__).parents[1]
CASES = (
    ("csr-fp32-raw", Layout("csr"), (CacheSpec(1024, 32, 2),), "raw"),
    ("csr-int8-base-xor+dbi-dc", Layout("csr", value_format="int8"), (CacheSpec(1024, 32, 2),), "base-xor+dbi-dc"),
    ("tuples-fp16-dbi-ac", Layout("tuples", "fp16", "fp16"), (CacheSpec(512, 32, 2), CacheSpec(4096, 64, 4)), "dbi-ac"),
)


def counts() -> dict[str, Any]:
    """Return the counts of every case; whole numbers only."""
    network = load(ROOT / "configs/examples/networks/digits_small.npz", kind="network")
    cases = {}
    for name, layout, caches, encoder in CASES:
        result = replay(build_trace(network, layout=layout, sample=3), Machine(caches, encoder=encoder))
        total = result.total
        cases[name] = {
            "caches": [asdict(level) for level in result.caches],
            "reads": total.reads.tolist(),
            "writes": total.writes.tolist(),
            "ones": total.ones,
            "toggles": total.toggles,
        }
    return cases


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    path = ROOT / "tests/golden/replay.json"
    path.write_text(json.dumps(counts(), indent=1) + "\n")
    print(path)
