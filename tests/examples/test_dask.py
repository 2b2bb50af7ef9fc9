"""Sweeps on Dask: a local cluster, and a running scheduler with two worker processes, one of which is killed."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from oracles.pieces import square

import edgewatt as ew
from edgewatt.results.record import canonical_json
from edgewatt.results.store import Store
from edgewatt.runs.plan import load_sweep
from edgewatt.runs.sweep import TeamExecutor, sweep
from traces.base.errors import EdgewattError, EdgewattWarning, MissingExtraError
from traces.base.workers import Workers, go_on, local_dask_cluster
from traces.generators.networks import random_layered
from traces.readers.native import save

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

SWEEP: dict[str, Any] = {
    "base": {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
        "fast_memory": {"size": 8},
    },
    "grid": {"encoder": ["raw", "dbi-dc"], "seed": list(range(20))},
}


TUPLES: dict[str, Any] = {"value_format": "fp16", "stride": 64, "effort": 0.03}


def sparse_matrix(rows: int) -> scipy.sparse.csr_matrix:
    return scipy.sparse.random(rows, 900, 0.5, format="csr", random_state=np.random.default_rng(0), dtype=np.float32)


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
    (tmp_path / "elsewhere").mkdir()
    more = {"env": environment, "cwd": tmp_path / "elsewhere", "stderr": subprocess.DEVNULL}
    started += [subprocess.Popen(worker, **more) for _ in range(2)]
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


def test_relative_names_are_those_of_the_folder_where_the_sweep_is_started(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers live in another folder: nothing is written there, and the files are found."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    save(random_layered(n_layers=3, width=16, density=0.3), "net.npz")
    base = {**SWEEP["base"], "network": {"files": ["net.npz"]}}
    Path("sweep.yaml").write_text(json.dumps({"base": base, "grid": {"encoder": ["raw", "dbi-dc"]}}))
    found = sweep(load_sweep("sweep.yaml"), results="out", scheduler=cluster[0])
    assert found.computed == 2 and not found.failed and list(Path("out/stages").rglob("*.npz"))
    assert [path for path in (tmp_path / "elsewhere").rglob("*.*") if "worker" not in str(path)] == []


def test_local_cluster(tmp_path: Path) -> None:
    found = sweep(SWEEP, results=tmp_path / "dask", executor="dask", workers=2)
    assert found.computed == 40 and not found.failed


def test_a_local_cluster_does_not_watch_itself() -> None:
    """Ticks, the monitor and the profiler took an eighth of a core; a worker takes its settings from its starter."""
    import dask
    import distributed

    watched = ("admin.tick.interval", "admin.system-monitor.interval", "worker.profile.enabled")
    with local_dask_cluster(distributed, 1) as cluster, distributed.Client(cluster) as client:
        found = client.submit(lambda: [dask.config.get(f"distributed.{name}") for name in watched]).result()
        assert found == ["1s", "10s", False]
        assert client.submit(os.environ.get, "MALLOC_TRIM_THRESHOLD_").result() is None
        assert client.submit(os.environ.get, "OMP_NUM_THREADS").result() == "1"
    assert dask.config.get("distributed.worker.profile.enabled"), "others' clusters are as they were"


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.base.workers.CONNECT_S", 1.0)
    executor = TeamExecutor("dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(EdgewattError, match="no Dask scheduler answers"):
        next(iter(executor.run(iter([{"hash": "x", "config": {}}]))))


def test_nobody_else_runs_code_in_a_cluster_of_ours() -> None:
    """Another user of the machine found the scheduler on loopback, and its workers ran what they were sent."""
    import distributed
    import psutil

    with local_dask_cluster(distributed, 1) as cluster, distributed.Client(cluster) as ours:
        assert cluster.scheduler_address.startswith("tls://") and ours.submit(square, 3).result() == 9
        for security in ("None", "distributed.Security.temporary()"):  # another process, as another user's would be
            given = f"{cluster.scheduler_address!r}, security={security}, timeout='2s'"
            code = f"import distributed\ndistributed.Client({given})\nprint('connected')"
            stranger = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
            assert stranger.returncode != 0 and "connected" not in stranger.stdout, stranger.stdout + stranger.stderr
        here = psutil.Process()
        ports = [
            place.laddr.port
            for process in (here, *here.children(recursive=True))
            for place in process.net_connections("tcp")
            if place.status == "LISTEN"
        ]
        assert ports
        for port in ports:
            for path in ("", "status", "info/main/workers.html", "api/v1/get_workers", "metrics"):
                with pytest.raises((OSError, http.client.HTTPException)):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5)


def test_without_the_library_of_keys_no_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    def none() -> None:
        raise ImportError("no cryptography")

    monkeypatch.setattr(distributed.Security, "temporary", none)
    with pytest.raises(MissingExtraError, match=r"'cryptography': .*\[dask\]"):
        local_dask_cluster(distributed, 1)


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\x00" * 64])
def test_a_port_that_is_no_scheduler(says: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client waited for it for more than 400 s."""
    monkeypatch.setattr("traces.base.workers.CONNECT_S", 2.0)
    held = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(server.accept()[0])
                    held[-1].sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        before = time.monotonic()
        executor = TeamExecutor("dask", scheduler=f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(EdgewattError, match="no Dask scheduler answers at tcp://"):
            next(iter(executor.run(iter([{"hash": "x", "config": {}}]))))
        assert time.monotonic() - before < 20
        for each in held:
            each.close()


def test_a_scheduler_without_workers_and_one_that_is_killed(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    address, workers = cluster
    for worker in workers:
        worker.kill()
        worker.wait()
    import psutil

    scheduler = next(p for p in psutil.Process().children() if any("dask_scheduler" in word for word in p.cmdline()))
    threading.Timer(3.0, scheduler.kill).start()
    with (
        pytest.warns(EdgewattWarning, match="has no workers: waiting"),
        pytest.raises(EdgewattError, match="is gone; finished work is kept: run the same command to continue"),
    ):
        list(Workers(1, scheduler=address).map(square, [(k, (k,)) for k in range(3)]))


def test_tuple_orders_on_dask_are_those_of_one_process() -> None:
    matrix = sparse_matrix(90)
    alone = ew.order_tuples(matrix, **TUPLES)  # three groups
    shared = ew.order_tuples(matrix, **TUPLES, workers=2, executor="dask")
    assert (shared.positions == alone.positions).all()
    assert (shared.cost, shared.lower_bound) == (alone.cost, alone.lower_bound)


def test_a_local_cluster_is_threads_where_the_method_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes and what they import take longer to start than many a matrix takes; what is compiled needs none."""
    started = []

    def starting(distributed: Any, workers: int, threads: Any) -> Any:
        started.append((workers, threads is not None))
        return local_dask_cluster(distributed, workers, threads)

    monkeypatch.setattr("traces.base.workers.local_dask_cluster", starting)
    matrix = sparse_matrix(90)
    alone = ew.order_tuples(matrix, **TUPLES, bound=False)
    assert (
        ew.order_tuples(matrix, **TUPLES, bound=False, workers=2, executor="dask").positions == alone.positions
    ).all()
    assert started == [(2, True)]


def wait_until_nobody_asks(began: float) -> None:
    while time.monotonic() < began + 30:
        go_on()
        time.sleep(0.001)


def test_pieces_on_threads_of_a_local_cluster_are_abandoned_after_an_error() -> None:
    """As on threads without Dask: Ctrl-C does not wait for pieces that take minutes."""
    began = time.monotonic()
    with pytest.raises(KeyError), Workers(2, "dask", local="threads") as team:
        for _ in team.map(wait_until_nobody_asks, ((k, (began - 30 * (k == 0),)) for k in range(9))):
            raise KeyError
    assert time.monotonic() < began + 20


@pytest.mark.parametrize(("local", "here"), [("threads", {True}), ("processes", {False})])
def test_who_does_the_pieces_of_a_local_cluster(local: str, here: set[bool]) -> None:
    with Workers(2, "dask", local=local) as team:
        assert {pid == os.getpid() for _, pid in team.map(os.getpid, ((k, ()) for k in range(9)))} == here
        with pytest.raises(KeyError):
            list(team.map(square, ((k, (k, 3)) for k in range(9))))


def test_tuple_orders_on_a_scheduler_outlive_a_worker(cluster: tuple[str, list[subprocess.Popen[bytes]]]) -> None:
    address, workers = cluster
    matrix, told = sparse_matrix(200), []

    def kill_one(done: int, total: int | None, text: str) -> None:
        if not told:
            workers[-1].send_signal(signal.SIGKILL)
        told.append(done)

    found = ew.order_tuples(matrix, **TUPLES, bound=False, scheduler=address, progress=kill_one)
    assert (found.positions == ew.order_tuples(matrix, **TUPLES, bound=False).positions).all()
