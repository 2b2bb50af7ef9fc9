"""A sweep of twelve small points, and what must not depend on who computes them."""

from typing import Any

from edgewatt.results.record import canonical_json
from edgewatt.results.store import Store

BASE: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
    "orderings": ["two-optimal", "by-source"],
    "fast_memory": {"size": 8},
    "caches": [{"size_bytes": 1024, "ways": 2}],
}
GRID = {"name": "small", "base": BASE, "grid": {"encoder": ["raw", "dbi-dc"], "fast_memory.size": [6, 8, 12]}}


def canonical(store: Store) -> dict[str, str]:
    """Return the canonical bytes of every record by its hash."""
    return {record.hash: canonical_json(record.canonical) for record in store}
