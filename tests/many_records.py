"""Fill a results folder with many records, to measure what reads them.

    python tests/many_records.py FOLDER 100000 [--measure all] [--shift 0.01]

A few real points (orderings x sizes of the fast memory x formats, of a small generated network) are computed; the
others are those with other seeds and counts moved a little by a seeded generator, through the writer that a sweep uses.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import edgewatt as ew
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store


def templates(measure: str) -> list[Record]:
    """Return the real points."""
    return ew.run(
        {
            "base": {
                "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
                "measure": measure,
            },
            "grid": {
                "orderings": [["layerwise"], ["by-source"], ["two-optimal"]],
                "fast_memory.size": [8, 12, 16, 24],
                "formats": [["fp16"], ["int8"]],
            },
        }
    )


def moved(value: Any, by: float) -> Any:
    """Return results whose numbers are larger by a share; structure, texts and zeros stay."""
    if isinstance(value, dict):
        return {key: moved(item, by) for key, item in value.items()}
    if isinstance(value, list):
        return [moved(item, by) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return value
    return type(value)(value * (1 + by))


def fill(folder: Path, count: int, measure: str = "io", shift: float = 0.0) -> Store:
    """Write `count` records and the plan of their sweep. shift: share by which all counts are larger."""
    real, rng = templates(measure), random.Random(7)
    store, hashes = Store(folder).open(), []
    for number in range(count):
        like = real[number % len(real)]
        config = {**like.config, "seed": number // len(real)}
        results = moved(like.results, shift + rng.random() / 100)
        name = content_hash(config)
        store.put(Record({**like.canonical, "hash": name, "config": config, "results": results}, like.provenance))
        hashes.append(name)
    store.put_plan("many", hashes)
    return store


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--measure", choices=("io", "all"), default="io")
    parser.add_argument("--shift", type=float, default=0.0)
    asked = parser.parse_args()
    fill(asked.folder, asked.count, asked.measure, asked.shift)
