"""Schedules of operators and places of their buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import edgewatt as ew
from bench.harness import Case, reference
from traces.generators.operators import cell, randwire


def schedule(make: Callable[[], Any], **options: Any) -> Callable[[], dict[str, Any]]:

    def work() -> dict[str, Any]:
        plan = ew.schedule(make(), allocator="linear", **options)
        return {"peak": plan.peak_bytes, "bound": plan.lower_bound_bytes, "states": plan.states}

    return work


def placement(buffers: tuple[Any, Any, Any]) -> Callable[[], dict[str, Any]]:

    def work() -> dict[str, Any]:
        found = ew.allocate(*buffers)
        return {"height": int(found.height), "proved": found.proved}

    return work


def cases() -> Iterator[Case]:
    yield Case("cell darts_v2", schedule(lambda: cell("darts_v2")))
    yield Case("cell amoebanet", schedule(lambda: cell("amoebanet")))
    for n in (32, 48, 64):
        yield Case(f"randwire ws{n}", schedule(lambda n=n: randwire("ws", n)), rounds=5)
    large = schedule(lambda: randwire("ws", 1000), method="greedy")
    yield Case("randwire ws1000, large", large, rounds=3)
    folder = reference("arena")
    for file in sorted(folder.rglob("*.csv"))[:12] if folder else ():
        head, *rows = [line.split(",") for line in file.read_text().splitlines()]
        if {"lower", "upper", "size"} <= set(head):
            columns = [np.array([int(row[head.index(name)]) for row in rows]) for name in ("lower", "upper", "size")]
            yield Case(f"arena {file.stem}", placement((columns[0], columns[1], columns[2])), rounds=3)
