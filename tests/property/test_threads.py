"""What is called from several Python threads at once gives what it gives alone: kernels hold no state of their own.

`make sanitize` runs this on kernels built with ThreadSanitizer.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.results.record import canonical_json
from edgewatt.results.store import Store
from traces.base import registry as registries
from traces.generators.networks import random_layered
from traces.generators.operators import randwire

THREADS = 4
NETWORKS = [random_layered(3, 14, 0.4, seed=seed) for seed in range(THREADS)]


def assert_same_together(jobs: list[Callable[[], Any]]) -> None:
    """Compute jobs each in a thread of its own, all let go at one time, then one after the other."""
    together = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        together.wait(60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        found = list(pool.map(run, jobs))
    for a, job in zip(found, jobs, strict=True):
        np.testing.assert_equal(a, job())


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("two-optimal", {}),
        ("ego", {}),
        ("output-stationary", {}),
        ("learned", {}),
        ("sweep", {}),
        ("connection-reordering", {"iterations": 2000}),
        ("residency", {"moves": 2000}),
        ("auto", {"moves": 1000}),
    ],
)
def test_orders(method: str, more: dict[str, Any]) -> None:
    """The first two threads order one network, whose derived tables both may be the first to ask for."""
    networks = [random_layered(3, 14, 0.4, seed=seed) for seed in (9, *range(THREADS - 1))]
    networks[1] = networks[0]
    assert_same_together([lambda n=n: ew.order(n, method, memory=8, **more).edges for n in networks])  # type: ignore[misc]


FIRST = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import edgewatt as ew
from traces.generators.networks import random_layered
networks = [random_layered(3, 14, 0.4, seed=seed) for seed in range(4)]
ew.order(networks[0], "ego", memory=8)
together = Barrier(4)
def first(network):
    together.wait(60)
    return len(ew.order(network, "output-stationary", memory=8).edges)
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(first, networks)) == [len(n.sources) for n in networks])
"""


def test_first_calls_together() -> None:
    """What a kernel finds out once, such as the level of SIMD, several threads may be the first to ask for."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-P", "-c", FIRST], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.strip() == "True", done.stderr[-2000:]


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
def test_counts_of_ios(policy: str) -> None:
    assert_same_together([lambda n=n: ew.count_io(n, memory=8, policy=policy).total for n in NETWORKS])  # type: ignore[misc]


@pytest.mark.parametrize("objective", ["peak", "arena", "traffic"])
def test_schedules(objective: str) -> None:
    graphs = [randwire("ws", 12, stages=1, seed=seed) for seed in range(THREADS)]
    more = {"onchip_bytes": 32768} if objective == "traffic" else {}
    assert_same_together(
        [lambda g=g: ew.schedule(g, objective=objective, evaluations=200, **more).order for g in graphs]  # type: ignore[misc]
    )


def test_placements() -> None:
    buffers = [np.random.default_rng(seed).integers(1, 60, (3, 80)) for seed in range(THREADS)]
    assert_same_together([lambda b=b: ew.allocate(b[0], b[0] + b[1], b[2], nodes=20_000).offset for b in buffers])  # type: ignore[misc]


@pytest.mark.parametrize("method", ["greedy", "local-search"])
def test_tuple_orders(method: str) -> None:
    matrices = [np.random.default_rng(seed).normal(size=(6, 64)).round(1) for seed in range(THREADS)]
    assert_same_together(
        [
            lambda m=m: ew.order_tuples(m, value_format="fp16", stride=64, method=method).positions  # type: ignore[misc]
            for m in matrices
        ]
    )


@pytest.mark.parametrize("encoder", ["base-xor+dbi-dc", "dbi-ac", "dbi-opt"])
def test_encoders(encoder: str) -> None:
    data = [np.random.default_rng(seed).integers(0, 256, 4096, np.uint8) for seed in range(THREADS)]

    def job(raw: np.ndarray) -> Any:
        found = ew.encode(raw, encoder, element_bytes=2)
        return found.ones, found.toggles

    assert_same_together([lambda d=d: job(d) for d in data])  # type: ignore[misc]


def test_caches_and_memory() -> None:
    def job(seed: int) -> Any:
        random = np.random.default_rng(seed)
        op, address = random.integers(0, 2, 3000).astype(np.uint8), random.integers(0, 1 << 14, 3000) * 4
        cache = ew.simulate_cache(op, address, np.full(3000, 4), size_bytes=4096, line_bytes=32, ways=4)
        dram = ew.simulate_dram(address.astype(np.uint64) & ~np.uint64(63), op, np.arange(3000), part="ddr4-3200-x8")
        return str(cache), dram.done_cycle

    assert_same_together([lambda seed=seed: job(seed) for seed in range(THREADS)])  # type: ignore[misc]


def test_runs_into_one_store(tmp_path: Path) -> None:
    """Four sweeps of one configuration in threads: each point is there once, and is what one alone finds."""
    config = {
        "network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 6, "density": 0.5}},
        "orderings": ["two-optimal", "ego", {"kind": "connection-reordering", "iterations": 50}],
        "caches": [{"size_bytes": 8192, "line_bytes": 32, "ways": 2, "policy": "lru"}],
        "dram": {"part": "lpddr4-3200"},
    }
    ew.run(config, results=tmp_path / "alone")
    together = threading.Barrier(THREADS)

    def run(_: int) -> None:
        together.wait(60)
        ew.run(config, results=tmp_path / "one")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))
    found = {name: sorted(canonical_json(r.canonical) for r in Store(tmp_path / name)) for name in ("alone", "one")}
    assert found["alone"] == found["one"] and len(found["one"]) == 3


MEMBER = """
import time
from slow_kind import SLOW
@SLOW.register("{name}", summary="one of two")
class Member:
    other = SLOW["a"] if "{name}" == "b" else None  # a member may ask for another while it is imported
time.sleep(0.3)
"""


def test_members_are_looked_for_once_and_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread imported a kind's members, others were told that there were none of that name."""
    package = tmp_path / "slow_kind"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from traces.base.registry import Registry\nSLOW = Registry('slow', 'edgewatt.slow', folder='slow_kind')\n"
    )
    for name in "ab":
        (package / f"{name}.py").write_text(MEMBER.format(name=name))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registries, "_ALL", [*registries._ALL])  # another test asks which kinds there are
    slow = import_module("slow_kind").SLOW
    assert_same_together([lambda: slow["b"].name, lambda: sorted(slow), lambda: len(slow), lambda: "a" in slow])
    assert slow["b"].item.other.name == "a"
