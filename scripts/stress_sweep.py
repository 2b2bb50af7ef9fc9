"""Stress the sweep: what is lost when it is killed, the disk is full, clocks jump or two hosts share a store.

    python scripts/stress_sweep.py kill        kill -9 of the sweep or a worker at random moments, then again
    python scripts/stress_sweep.py disk        a full disk at 20 points of a sweep, then room again
    python scripts/stress_sweep.py signals     SIGTERM, SIGINT and SIGHUP in mid-sweep, from outside and as a terminal
    python scripts/stress_sweep.py clocks      clocks hours ahead and back, jumping between them, two on one store
    python scripts/stress_sweep.py hosts       two hosts on one store, killed and started again: every point once

Each prints what it measured as JSON and exits with status 1 where the result is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sweep_runs import ENVIRONMENT, SMALL, canonical, start, sweep, workers_of, working

from edgewatt.results.store import Store


def kill(folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """Kill at random moments; count points computed more than once beyond those in flight (by the records' clock)."""
    pick = random.Random(seed)
    config = folder / "sweep.json.yaml"
    network = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 64, "density": 0.3}}
    config.write_text(
        json.dumps(sweep(200, network, orderings=[{"kind": "connection-reordering", "iterations": 2000}]))
    )
    start(config, folder / "whole", "-j", "2").communicate()
    whole = canonical(folder / "whole")
    results = folder / "killed"
    kills = {"sweep": 0, "worker": 0}
    lost_work: list[int] = []
    finished: list[int] = []
    restarts = 0
    recomputed = 0
    while sum(kills.values()) < moments:
        process = start(config, results, "-j", "2")
        restarts += 1
        before = _stamps(results)
        if pick.random() < 0.9:  # one in ten while it starts, the others among the records
            working(process)
            wanted = min(len(before) + pick.randrange(400 // moments + 2), 199)
            while len(_stamps(results)) < wanted and process.poll() is None:
                time.sleep(0.005)
        time.sleep(pick.uniform(0, 0.2))
        workers = workers_of(process.pid)
        if workers and pick.random() < 0.5:
            os.kill(pick.choice(workers), signal.SIGKILL)
            kills["worker"] += 1
            time.sleep(0.5)
        elif process.poll() is None:
            kills["sweep"] += 1
        process.kill()
        process.wait()
        after = _stamps(results)
        finished.append(len(after))
        recomputed += sum(after[name] != stamp for name, stamp in before.items() if name in after)
        lost_work.append(len(set(before) - set(after)))
        damaged = [name for name in after if not _sound(results, name)]
        if damaged:
            raise SystemExit(f"damaged records: {damaged}")
        if len(after) == 200 and sum(kills.values()) < moments:  # finished too early: begin again
            shutil.rmtree(results)
    last = start(config, results, "-j", "2")
    error = last.communicate()[1].decode()
    final = canonical(results)
    midway = sum(0 < n < 200 for n in finished)
    return {
        "points": len(whole),
        "kills": kills,
        "starts": restarts + 1,
        "kills with some records but not all": midway,
        "finished records lost": sum(lost_work),
        "finished records computed again": recomputed,
        "present at the end": len(final),
        "canonical parts identical": final == whole,
        "ok": final == whole
        and not recomputed
        and not any(lost_work)
        and not last.returncode
        and midway > moments // 2,
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


def disk(folder: Path, moments: int) -> dict[str, Any]:
    """Fill the disk at points all over a sweep, then make room and run it again.

    A file system of its own (tmpfs) where that may be mounted, with less and less room; else a limit on the size of a
    file, which the records exceed.
    """
    config = folder / "disk.yaml"
    config.write_text(json.dumps(sweep(50, SMALL)))
    start(config, folder / "whole", "-j", "2").communicate()
    whole = canonical(folder / "whole")
    needed = sum(f.stat().st_blocks * 512 for f in (folder / "whole").rglob("*") if f.is_file())
    place = folder / "small"
    place.mkdir()
    counts: dict[str, int] = {"full": 0, "tracebacks": 0, "half-written": 0, "lost": 0, "not recovered": 0}
    statuses, mounted = set(), False
    for moment in range(moments):
        room = max(64, int(needed * (moment + 0.5) / moments / 1024))
        mount = ["mount", "-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(place)]
        mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
        try:
            if mounted:
                limited = start(config, place / "r", "-j", "2")
                error = limited.communicate()[1].decode()
            else:
                code = (
                    f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({200 * (moment + 1)}, -1))\n"
                    "from edgewatt.__main__ import main; main()"
                )
                command = [sys.executable, "-c", code, "sweep", str(config), "-o", str(place / "r"), "-j", "2"]
                limited = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                error = limited.communicate()[1].decode()
            statuses.add(limited.returncode)
            counts["full"] += limited.returncode != 0
            counts["tracebacks"] += "Traceback" in error
            before = set(_stamps(place / "r"))
            counts["half-written"] += sum(not _sound(place / "r", name) for name in before)
            if mounted:
                subprocess.run(["mount", "-o", "remount,size=1g", str(place)], check=True)
            start(config, place / "r", "-j", "2").communicate()
            counts["lost"] += len(before - set(_stamps(place / "r")))
            counts["not recovered"] += canonical(place / "r") != whole
        finally:
            if mounted:
                subprocess.run(["umount", str(place)], check=True)
            else:
                shutil.rmtree(place / "r", ignore_errors=True)
    return {
        "points of fullness": moments,
        "a file system of its own": mounted,
        "KiB needed": needed // 1024,
        "exit statuses": sorted(statuses),
        **counts,
        "ok": statuses <= {0, 1} and counts["full"] >= moments // 2 and not any(list(counts.values())[1:]),
    }


def signals(folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """Send each signal at random moments: to the sweep alone and, as a terminal does, to its group."""
    pick = random.Random(seed)
    config = folder / "signals.yaml"
    network = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 64, "density": 0.3}}
    config.write_text(json.dumps(sweep(40, network, orderings=[{"kind": "connection-reordering", "iterations": 2000}])))
    start(config, folder / "whole", "-j", "2").communicate()
    whole, results = canonical(folder / "whole"), folder / "stopped"
    told: dict[str, dict[int, int]] = {}
    wrong: list[str] = []
    finished: list[int] = []
    for moment in range(moments):
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[moment % 3]
        begun = folder / f"begun-{moment}"
        process = start(config, results, "-j", "2", new_session=True, begun=begun)
        before = _stamps(results)
        while not begun.exists():
            time.sleep(0.01)
        if pick.random() < 0.8:  # most come while points are computed
            wanted = len(before) + pick.randrange(12)
            while len(_stamps(results)) < wanted and process.poll() is None:
                time.sleep(0.05)
        time.sleep(pick.uniform(0, 0.5))
        with_group = pick.random() < 0.5
        workers = workers_of(process.pid)
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if with_group else os.kill)(process.pid, number)
        error = process.communicate()[1].decode()
        told.setdefault(number.name, {}).setdefault(process.returncode, 0)
        told[number.name][process.returncode] += 1
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() and _state(pid) != "Z" for pid in workers):
            if time.monotonic() > deadline:
                wrong.append(f"{number.name}: workers outlive the sweep")
                break
            time.sleep(0.05)
        after = _stamps(results)
        finished.append(len(after))
        if any(after.get(name) != stamp for name, stamp in before.items()):
            wrong.append(f"{number.name}: a finished record was lost or computed again")
        if not all(_sound(results, name) for name in after):
            wrong.append(f"{number.name}: a damaged record")
        if "Traceback" in error:
            wrong.append(f"{number.name}: {error[-300:]}")
        if len(after) == len(whole) > 0:
            shutil.rmtree(results)
    start(config, results, "-j", "2").communicate()
    identical = canonical(results) == whole
    return {
        "signals": moments,
        "with some records but not all": sum(0 < n < len(whole) for n in finished),
        "exit statuses": {name: dict(sorted(statuses.items())) for name, statuses in told.items()},
        "canonical parts identical": identical,
        "wrong": wrong,
        "ok": identical and not wrong,
    }


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


SKEWED = """
import random, sys, time
pick, real, when = random.Random({seed}), time.time, [0.0, {skew}]
def jumping():
    if real() > when[0]:
        when[:] = [real() + 0.2, pick.choice(({skew}, -{skew}, 0.0, {skew} * 50))]
    return real() + when[1]
time.time = jumping
"""


def clocks(folder: Path, moments: int) -> dict[str, Any]:
    """Sweep with clocks that jump by hours every 0.2 s in driver and workers, two at a time on one store.

    Where libfaketime is installed the whole processes see the other time, file ages included.
    """
    library = next((str(p) for p in Path("/usr/lib").rglob("libfaketime.so.1")), None)
    config = folder / "clocks.yaml"
    config.write_text(json.dumps(sweep(30, SMALL, orderings=[{"kind": "connection-reordering", "iterations": 500}])))
    start(config, folder / "whole", "-j", "2").communicate()
    whole, wrong = canonical(folder / "whole"), []
    for moment in range(moments):
        results = folder / f"skewed-{moment}"
        both = []
        for k, skew in enumerate((7200 * (moment + 1), -86400 * 365 * (moment + 1))):
            extra = {"LD_PRELOAD": library, "FAKETIME": f"{skew:+d}"} if library else {}
            code = SKEWED.format(seed=2 * moment + k, skew=skew)
            both.append(start(config, results, "-j", "1", before=code, environment=extra))
        errors = [process.communicate()[1].decode() for process in both]
        made = [_computed(text) for text in errors]
        if canonical(results) != whole:
            wrong.append(f"{moment}: other records")
        if any(process.returncode for process in both):
            wrong.append(f"{moment}: {errors[0][-200:]} {errors[1][-200:]}")
        if sum(made) != len(whole):
            wrong.append(f"{moment}: {made} computed")
    return {"sweeps": 2 * moments, "libfaketime": library is not None, "wrong": wrong, "ok": not wrong}


def hosts(folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """Let two hosts (host names of their own, where that is allowed) work on one store; kill one, start it again."""
    pick = random.Random(seed)
    config = folder / "hosts.yaml"
    network = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 64, "density": 0.3}}
    config.write_text(json.dumps(sweep(60, network, orderings=[{"kind": "connection-reordering", "iterations": 2000}])))
    start(config, folder / "whole", "-j", "1").communicate()
    whole = canonical(folder / "whole")
    alone = _made(folder / "whole")
    wrong: list[str] = []
    killed = kept = 0
    for moment in range(moments):
        results = folder / "shared"
        shutil.rmtree(results, ignore_errors=True)
        running = [start(config, results, "-j", "1", before=HOST.format(name=f"host-{k}")) for k in range(2)]
        if moment % 2:  # one of them dies on the way and comes back
            wanted = pick.randrange(2, len(whole) // 2)
            while len(_stamps(results)) < wanted and running[0].poll() is None:
                time.sleep(0.02)
            running[0].kill()
            running[0].communicate()
            killed += 1
            stamps = _stamps(results)
            running[0] = start(config, results, "-j", "1", before=HOST.format(name="host-0"))
            kept += len(stamps)
        errors = [process.communicate()[1].decode() for process in running]
        if canonical(results) != whole:
            wrong.append(f"{moment}: other records {errors}")
        if any(process.returncode for process in running):
            wrong.append(f"{moment}: {errors}")
        computed = sum(map(_computed, errors))
        if not moment % 2 and (computed != len(whole) or _made(results) != alone):
            wrong.append(f"{moment}: {computed} points computed, steps {_made(results)} for {alone}")
        if moment % 2 and any(_stamps(results).get(name) != stamp for name, stamp in stamps.items()):
            wrong.append(f"{moment}: a finished record was computed again")
        if list((results / "claims").iterdir()):
            wrong.append(f"{moment}: claims are left")
    return {
        "runs": moments, "killed": killed, "finished at the kills": kept, "points": len(whole),
        "steps computed": alone, "wrong": wrong, "ok": not wrong,
    }  # fmt: skip


HOST = """
import ctypes, socket
if ctypes.CDLL(None).unshare(0x04000000) == 0:  # CLONE_NEWUTS
    socket.sethostname("{name}")
else:
    socket.gethostname = lambda: "{name}"
"""


def _made(results: Path) -> dict[str, int]:
    """Return how often each step of a store's records was computed."""
    made: dict[str, int] = {}
    for record in Store(results):
        for step, times in record.provenance["stages_computed"].items():
            made[step] = made.get(step, 0) + times
    return {step: made[step] for step in sorted(made) if step not in ("network", "trace")}


def _computed(error: str) -> int:
    """Return the number of points that a sweep says it computed."""
    match = re.search(r"STRESS computed (\d+)", error)
    return int(match[1]) if match else -1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kill", "disk", "signals", "clocks", "hosts"))
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {
            "kill": lambda: kill(folder, options.moments, options.seed),
            "disk": lambda: disk(folder, options.moments),
            "signals": lambda: signals(folder, options.moments, options.seed),
            "clocks": lambda: clocks(folder, options.moments),
            "hosts": lambda: hosts(folder, options.moments, options.seed),
        }[options.what]()
    print(json.dumps(result, indent=2))
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
