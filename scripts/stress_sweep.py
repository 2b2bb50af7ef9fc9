"""Stress the sweep: what is lost when it is killed, what it costs beyond the simulation, what a second worker brings.

    python scripts/stress_sweep.py kill        kill -9 of the sweep or a worker at 20 random moments, then again
    python scripts/stress_sweep.py overhead    10,000 points of a small network: cost beyond the simulation, page size
    python scripts/stress_sweep.py workers     200 points of 0.5 s or more: two workers against one, best of three
    python scripts/stress_sweep.py share       2 orderings x 4 encoders x 3 parts: the shared pass through the caches
    python scripts/stress_sweep.py disk        a full disk (a size limit on files) in mid-sweep, then room again

Each prints what it measured as JSON and exits with status 1 where the result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from edgewatt.results.record import canonical_json  # noqa: E402
from edgewatt.results.store import Store  # noqa: E402

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
SMALL = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}}


def sweep(n_points: int, network: dict[str, Any], **base: Any) -> dict[str, Any]:
    return {"base": {"network": network, "fast_memory": {"size": 8}, **base}, "grid": {"seed": list(range(n_points))}}


def start(config: Path, results: Path, *more: str) -> subprocess.Popen[bytes]:
    code = "from edgewatt.cli import main; main()"
    command = [sys.executable, "-c", code, "sweep", str(config), "-o", str(results), *more]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def workers_of(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and b"edgewatt.sweeps.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def canonical(folder: Path) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in Store(folder)}


def kill(folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """Kill at random moments; count points computed more than once beyond those in flight (by the records' clock)."""
    pick = random.Random(seed)
    config = folder / "sweep.json.yaml"
    network = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 64, "density": 0.3}}
    config.write_text(
        json.dumps(sweep(200, network, orderings=[{"kind": "connection-reordering", "iterations": 2000}]))
    )
    begin = time.monotonic()
    undisturbed = start(config, folder / "whole", "-j", "2")
    undisturbed.communicate()
    length = time.monotonic() - begin
    whole = canonical(folder / "whole")
    results = folder / "killed"
    kills = {"sweep": 0, "worker": 0}
    lost_work: list[int] = []
    restarts = 0
    recomputed = 0
    while sum(kills.values()) < moments:
        process = start(config, results, "-j", "2")
        restarts += 1
        before = _stamps(results)
        time.sleep(pick.uniform(0.4, 0.4 + 2 * length / moments))
        if pick.random() < 0.5:
            process.kill()
            process.wait()
            kills["sweep"] += 1
            time.sleep(0.3)
        else:
            workers = workers_of(process.pid)
            if workers:
                os.kill(pick.choice(workers), signal.SIGKILL)
                kills["worker"] += 1
            time.sleep(0.5)
            process.kill()
            process.wait()
        after = _stamps(results)
        recomputed += sum(after[name] != stamp for name, stamp in before.items() if name in after)
        lost_work.append(len(set(before) - set(after)))
        damaged = [name for name in after if not _sound(results, name)]
        if damaged:
            raise SystemExit(f"damaged records: {damaged}")
        if len(after) == 200 and sum(kills.values()) < moments:  # finished too early: begin again
            shutil.rmtree(results)
    last = start(config, results, "-j", "2")
    error = last.communicate()[1].decode()
    found = canonical(results)
    return {
        "points": len(whole),
        "kills": kills,
        "starts": restarts + 1,
        "finished records lost": sum(lost_work),
        "finished records computed again": recomputed,
        "present at the end": len(found),
        "canonical parts identical": found == whole,
        "ok": found == whole and recomputed == 0 and sum(lost_work) == 0 and last.returncode == 0,
        "error": error,
    }


def _stamps(results: Path) -> dict[str, int]:
    records = results / "records"
    return {path.name[:-5]: path.stat().st_mtime_ns for path in records.glob("[!.]*.json")} if records.is_dir() else {}


def _sound(results: Path, name: str) -> bool:
    try:
        return Store(results).get(name) is not None
    except ValueError:
        return False


def overhead(folder: Path, n_points: int) -> dict[str, Any]:
    """CPU time of the whole sweep (one worker, all processes) less that of the points' own computing."""
    import resource

    config = folder / "many.yaml"
    config.write_text(json.dumps(sweep(n_points, SMALL)))
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.monotonic()
    process = start(config, folder / "many", "-j", "1")
    error = process.communicate()[1].decode()
    wall = time.monotonic() - wall
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    records = list(Store(folder / "many"))
    computing = sum(record.provenance["cpu_s"] for record in records)
    page = folder / "many.html"
    code = "from edgewatt.cli import main; main()"
    subprocess.run(
        [sys.executable, "-c", code, "report", str(folder / "many"), "-o", str(page)], env=ENVIRONMENT, check=True
    )
    each = 1e3 * (total - computing) / len(records)
    size = page.stat().st_size
    return {
        "points": len(records),
        "cpu ms a point beyond its computing": round(each, 3),
        "cpu ms a point of computing": round(1e3 * computing / len(records), 3),
        "wall s (shared machine)": round(wall, 1),
        "page MB": round(size / 1e6, 2),
        "ok": len(records) == n_points and each < 5 and size < 8e6,
        "error": error,
    }


def workers(folder: Path, n_points: int) -> dict[str, Any]:
    """Wall-clock time of one and of two workers, alternating, best of three each."""
    config = folder / "slow.yaml"
    network = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 500, "density": 0.05}}
    search = [{"kind": "connection-reordering", "iterations": 4000}]
    config.write_text(json.dumps(sweep(n_points, network, orderings=search, fast_memory={"size": 100})))
    best = {1: float("inf"), 2: float("inf")}
    mean = 0.0
    for turn in range(3):
        for n in best:
            results = folder / f"slow-{n}-{turn}"
            begin = time.monotonic()
            start(config, results, "-j", str(n)).communicate()
            best[n] = min(best[n], time.monotonic() - begin)
            records = list(Store(results))
            assert len(records) == n_points
            mean = sum(record.provenance["cpu_s"] for record in records) / n_points
            shutil.rmtree(results)
    ratio = best[1] / best[2]
    seconds = {f"{n} workers, best s": round(s, 1) for n, s in best.items()}
    return {
        "points": n_points,
        "cpu s a point": round(mean, 2),
        **seconds,
        "ratio": round(ratio, 2),
        "ok": ratio >= 1.7,
    }


def share(folder: Path) -> dict[str, Any]:
    """CPU time of a sweep whose points differ behind the caches, with and without their pass shared, alternating."""
    import statistics

    import edgewatt.sweeps.sweep as sweeps
    from edgewatt.point.compute import process_memo

    widths = [1024] * 5
    config = {
        "base": {
            "network": {"generate": {"kind": "uniform-layers", "widths": widths, "density": 0.1}},
            "fast_memory": {"size": 100},
            "caches": ["buffer-8k"],
            "formats": "fp16",
        },
        "grid": {
            "orderings": ["two-optimal", "by-source"],
            "encoder": ["raw", "dbi-dc", "base-xor+dbi-dc", "transition"],
            "dram.part": ["lpddr4-3200", "lpddr4-3733", "lpddr4-4266"],
        },
    }
    plan, find = sweeps.load_sweep(config), sweeps.shared
    ways = {"alone": lambda points: set(), "shared": find, "shared again": find}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(6):
        for way, choose in ways.items():
            sweeps.shared = choose
            process_memo.cache_clear()
            begin = time.thread_time()
            sweeps.sweep(plan, results=folder / way, executor="inline")
            if turn:  # the first round loads libraries
                seconds[way].append(time.thread_time() - begin)
            found = canonical(folder / way)
            kept = sum(f.stat().st_size for f in (folder / way / "stages").glob("cache_pass/*.npz"))
            shutil.rmtree(folder / way)
            if way == "alone":
                alone = found
            assert found == alone and len(found) == 24 and bool(kept) == (way != "alone")
    ratio = [a / b for a, b in zip(seconds["alone"], seconds["shared"], strict=True)]
    control = [a / b for a, b in zip(seconds["shared"], seconds["shared again"], strict=True)]
    return {
        **{f"{way}, median cpu s": round(statistics.median(values), 3) for way, values in seconds.items()},
        "times as fast": round(statistics.median(ratio), 2),
        "a/a control": round(statistics.median(control), 3),
        "kept MB": round(kept / 1e6, 1),
        "ok": statistics.median(ratio) > 1,
    }


def disk(folder: Path) -> dict[str, Any]:
    """Run under a limit on the size of any file that the records exceed, then without."""
    config = folder / "disk.yaml"
    config.write_text(json.dumps(sweep(50, SMALL)))
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))\n"
        "from edgewatt.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "sweep", str(config), "-o", str(folder / "disk"), "-j", "2"]
    limited = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    half = [path for path in (folder / "disk").rglob("*") if path.is_file() and path.suffix not in (".lock", ".npz")]
    again = start(config, folder / "disk", "-j", "2")
    again.communicate()
    return {
        "status with a full disk": limited.returncode,
        "said": limited.stderr.strip().splitlines()[-1:] if limited.stderr else [],
        "half-written records left": len([path for path in half if path.parent.name == "records"]),
        "present after making room": len(canonical(folder / "disk")),
        "ok": limited.returncode == 1
        and "Traceback" not in limited.stderr
        and again.returncode == 0
        and len(canonical(folder / "disk")) == 50,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kill", "overhead", "workers", "share", "disk"))
    parser.add_argument("--points", type=int, default=None)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "kill": lambda: kill(folder, options.moments, options.seed),
            "overhead": lambda: overhead(folder, options.points or 10_000),
            "workers": lambda: workers(folder, options.points or 200),
            "share": lambda: share(folder),
            "disk": lambda: disk(folder),
        }[options.what]()
    print(json.dumps(found, indent=2))
    sys.exit(0 if found["ok"] else 1)


if __name__ == "__main__":
    main()
