"""Counting I/Os: whole calls of count_io on 10^6 accesses, beside libCacheSim where it is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import edgewatt as ew
from bench.harness import Case

MEMORY, WIDTH, CONNECTIONS = 100, 4000, 500_000
PEERS = {"lru": "LRU", "rr": "FIFO", "min": "Belady"}


def pairs_of(kind: str) -> np.ndarray[Any, Any]:
    """Return pairs of two layers: 'random' in random order, 'grouped' target by target."""
    pairs = np.random.default_rng(1).choice(WIDTH * WIDTH, CONNECTIONS, replace=False)
    return np.sort(pairs) if kind == "grouped" else pairs


def write_oracle_general(path: Path, accesses: np.ndarray[Any, Any]) -> None:
    """Write libCacheSim's binary format: time, object, size, position of the object's next access (-1: none)."""
    record = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
    by_object = np.argsort(accesses, kind="stable")
    same = accesses[by_object[1:]] == accesses[by_object[:-1]]
    rows = np.zeros(len(accesses), record)
    rows["time"], rows["object"], rows["size"], rows["next"] = np.arange(len(accesses)), accesses + 1, 1, -1
    rows["next"][by_object[:-1][same]] = by_object[1:][same]
    rows.tofile(path)


def libcachesim(path: Path, policy: str) -> Callable[[], Any] | None:
    if not find_spec("libcachesim"):
        return None
    import libcachesim as peer

    def play() -> Any:
        reader = peer.TraceReader(str(path), peer.TraceType.ORACLE_GENERAL_TRACE)
        return getattr(peer, PEERS[policy])(cache_size=MEMORY - 1, hashpower=16).process_trace(reader)

    return play


def cases() -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("random", "grouped"):
            pairs = pairs_of(kind)
            sources, targets = pairs % WIDTH, pairs // WIDTH + WIDTH
            by_pair = np.lexsort((sources, targets))
            network = ew.Network(
                sources[by_pair], targets[by_pair], n_neurons=2 * WIDTH,
                inputs=range(WIDTH), outputs=range(WIDTH, 2 * WIDTH),
            )  # fmt: skip
            order = np.argsort(by_pair)
            path = Path(folder, kind)
            write_oracle_general(path, np.stack((sources, targets), axis=1).reshape(-1))
            for policy in PEERS:
                peer = libcachesim(path, policy)

                def count(edges: Callable[[], Any], policy: str = policy, network: Any = network) -> Any:
                    return {"total": ew.count_io(network, edges(), memory=MEMORY, policy=policy).total}

                given: dict[str, Callable[[], Any]] = {"array": order.view, "again": lambda order=order: order}
                for name, edges in given.items():
                    work = lambda edges=edges, count=count: count(edges)  # noqa: E731
                    yield Case(f"{kind}, {policy}, {name}", work, 2 * CONNECTIONS, "access", peer, "libCacheSim")
