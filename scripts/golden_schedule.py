"""Write tests/golden/schedule.json: numbers of generated operator graphs, from the slow versions in tests/oracles.

Run after a deliberate change of a generator or of a cost rule (a few minutes), and read the difference:
python scripts/golden_schedule.py
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from oracles import schedule_oracle as oracle  # noqa: E402

from edgewatt.operators.request import load_graph  # noqa: E402
from reorder.operators.rewriting.rewrite import rewrite_graph  # noqa: E402
from reorder.operators.schedule import constructive  # noqa: E402
from reorder.operators.schedule.operator_problem import OperatorProblem  # noqa: E402

GRAPHS = (
    ("darts_v1", ()),
    ("darts_v2", ("fold-concat",)),
    ("nasnet", "all"),
    ("randwire-ws16", ()),
    ("randwire-er12", ()),
)


def numbers(model: str, patterns: Any) -> dict[str, Any]:
    """Everything the oracle says about one graph."""
    graph = rewrite_graph(load_graph(model), patterns)
    peak, downsets = oracle.optimal_peak(graph)
    kahn = constructive.kahn(OperatorProblem(graph)).tolist()
    return {
        "model": model,
        "rewrite": patterns if isinstance(patterns, str) else list(patterns),
        "operators": graph.n_nodes,
        "optimal_peak": peak,
        "downsets": downsets,
        "kahn_peak": oracle.peak(graph, kahn),
        "greedy_peak": oracle.peak(graph, oracle.greedy(graph)),
        "kahn_arena": {name: oracle.arena(graph, kahn, name) for name in ("linear", "size-best-fit", "size-first-fit")},
        "kahn_traffic_65536": list(oracle.traffic(graph, kahn, 65536, 1024)),
    }


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    text = json.dumps([numbers(*graph) for graph in GRAPHS], indent=1)
    (ROOT / "tests" / "golden" / "schedule.json").write_text(text + "\n")
