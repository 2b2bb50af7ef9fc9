"""Sweeps on Dask: a local cluster, and a running scheduler with two worker processes, one of which is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgewatt.results.record import canonical_json
from edgewatt.results.store import Store
from edgewatt.sweeps.executors import DaskExecutor
from edgewatt.sweeps.sweep import sweep
from traces.base.errors import EdgewattError

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

SWEEP: dict[str, Any] = {
    "base": {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
        "fast_memory": {"size": 8},
    },
    "grid": {"encoder": ["raw", "dbi-dc"], "seed": list(range(20))},
}


def canonical(folder: Path) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in Store(folder)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers as processes of their own, as on two machines."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    file = tmp_path / "scheduler.json"
    start = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--port",
        "0",
        "--no-dashboard",
        "--host",
        "127.0.0.1",
    ]
    started = [subprocess.Popen([*start, "--scheduler-file", str(file)], env=environment, stderr=subprocess.DEVNULL)]
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1"]
    worker += ["--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
    started += [subprocess.Popen(worker, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    import json

    yield json.loads(file.read_text())["address"], started[1:]
    for process in reversed(started):
        process.kill()
        process.wait()


def test_a_killed_worker_loses_nothing(tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]) -> None:
    address, workers = cluster
    killed = []

    def kill_one(done: int, total: int | None, text: str) -> None:
        if done >= 5 and not killed:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.append(workers[0].wait())

    found = sweep(SWEEP, results=tmp_path / "dask", scheduler=address, progress=kill_one)
    assert killed == [-signal.SIGKILL]
    assert not found.failed and found.computed == 40
    sweep(SWEEP, results=tmp_path / "inline", executor="inline")
    assert canonical(tmp_path / "dask") == canonical(tmp_path / "inline")


def test_local_cluster(tmp_path: Path) -> None:
    found = sweep(SWEEP, results=tmp_path / "dask", executor="dask", workers=2)
    assert found.computed == 40 and not found.failed


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewatt.sweeps.executors.CONNECT_S", 1.0)
    executor = DaskExecutor(scheduler="tcp://127.0.0.1:9")
    with pytest.raises(EdgewattError, match="no Dask scheduler answers"):
        next(iter(executor.run(iter([{"hash": "x", "config": {}}]))))
