"""What a sweep costs beyond the simulation, and what a second worker and shared passes bring.

    python scripts/sweep_costs.py overhead    10,000 points of a small network: cost beyond the simulation, page size
    python scripts/sweep_costs.py workers     200 points of 0.5 s or more: two workers against one, best of three
    python scripts/sweep_costs.py tiny        2,500 points of some ms: two workers against one, and a control; a minute
    python scripts/sweep_costs.py share       2 orderings x 4 encoders x 3 parts: the shared pass through the caches

Each prints what it measured as JSON and exits with status 1 where the result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sweep_runs import ENVIRONMENT, SMALL, canonical, start, sweep

from edgewatt.results.store import Store


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
    code = "from edgewatt.__main__ import main; main()"
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


BURN = "import sys\nx = 0\nfor k in range(int(sys.argv[1])): x = (x * 5 + k) & 0xFFFFFFFF"


def burn(processes: int, steps: int = 25_000_000) -> float:
    """Seconds of the wall clock in which so many processes at once do work that shares nothing."""
    begin = time.monotonic()
    started = [subprocess.Popen([sys.executable, "-c", BURN, str(steps)]) for _ in range(processes)]
    for process in started:
        process.wait()
    return time.monotonic() - begin


def tiny(folder: Path, n_points: int) -> dict[str, Any]:
    """Wall-clock time a point of one and of two workers, start-up included, in turns: 1, 2, 2, 1; CPU time of one.

    control: what the machine gives to two processes, measured before, between and after: work that shares nothing.
    """
    config = folder / "tiny.yaml"
    config.write_text(json.dumps(sweep(n_points, SMALL)))
    wall: dict[int, list[float]] = {1: [], 2: []}
    cpu: dict[str, float] = {}
    control: list[float] = []
    for turn, n in enumerate((1, 2, 2, 1)):
        if turn != 2:
            control.append(2 * burn(1) / burn(2))
        results = folder / f"tiny-{turn}"
        spent, begin = os.times(), time.monotonic()
        start(config, results, "-j", str(n)).communicate()
        wall[n].append(time.monotonic() - begin)
        after = os.times()
        whole = after.children_user + after.children_system - spent.children_user - spent.children_system
        records = list(Store(results))
        assert len(records) == n_points
        own = sum(record.provenance["cpu_s"] for record in records)
        if n == 1:  # the second worker is no child of the sweep, which is not told what it took
            cpu["1 worker, all processes"] = whole / n_points
        cpu[f"{n} workers, the points' own"] = own / n_points
        shutil.rmtree(results)
    ratio = sum(wall[1]) / sum(wall[2])
    given = sorted(control)[1]
    return {
        "points": n_points,
        **{f"CPU ms a point, {what}": round(1e3 * seconds, 2) for what, seconds in cpu.items()},
        **{f"wall ms a point, {n} workers": [round(1e3 * s / n_points, 2) for s in wall[n]] for n in wall},
        "ratio": round(ratio, 2),
        "control": [round(times, 2) for times in control],
        "of what the machine gives": round(ratio / given, 2),
        "ok": ratio >= 0.9 * given,
    }


def share(folder: Path) -> dict[str, Any]:
    """CPU time of a sweep whose points differ behind the caches, with and without their pass shared, alternating."""
    import statistics

    import edgewatt.runs.course as course
    from edgewatt.runs.compute import process_memo
    from edgewatt.runs.plan import load_sweep
    from edgewatt.runs.sweep import sweep as run_sweep

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
    plan, find = load_sweep(config), course.shared
    ways = {"alone": lambda named: {}, "shared": find, "shared again": find}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(6):
        for way, choose in ways.items():
            course.shared = choose
            process_memo.cache_clear()
            begin = time.thread_time()
            run_sweep(plan, results=folder / way, executor="inline")
            if turn:  # the first round loads libraries
                seconds[way].append(time.thread_time() - begin)
            records = canonical(folder / way)
            kept = sum(f.stat().st_size for f in (folder / way / "stages").glob("cache_pass/*.npz"))
            shutil.rmtree(folder / way)
            if way == "alone":
                alone = records
            assert records == alone and len(records) == 24 and bool(kept) == (way != "alone")
    ratio = [a / b for a, b in zip(seconds["alone"], seconds["shared"], strict=True)]
    control = [a / b for a, b in zip(seconds["shared"], seconds["shared again"], strict=True)]
    return {
        **{f"{way}, median cpu s": round(statistics.median(values), 3) for way, values in seconds.items()},
        "times as fast": round(statistics.median(ratio), 2),
        "a/a control": round(statistics.median(control), 3),
        "kept MB": round(kept / 1e6, 1),
        "ok": statistics.median(ratio) > 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "workers", "tiny", "share"))
    parser.add_argument("--points", type=int, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {
            "overhead": lambda: overhead(folder, options.points or 10_000),
            "tiny": lambda: tiny(folder, options.points or 2_500),
            "workers": lambda: workers(folder, options.points or 200),
            "share": lambda: share(folder),
        }[options.what]()
    print(json.dumps(result, indent=2))
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
