"""Sweeps in processes of their own, for stress_sweep.py and sweep_costs.py."""

from __future__ import annotations

import os
import subprocess
import sys
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


REPORTING = """
import atexit, sys
import edgewatt.runs.sweep as module
def counting(*args, sweep=module.sweep, **given):
    done = sweep(*args, **given)
    atexit.register(sys.stderr.write, f"STRESS computed {done.computed}\\n")
    return done
module.sweep = counting
"""


def start(
    config: Path,
    results: Path,
    *more: str,
    before: str = "",
    environment: dict[str, str] | None = None,
    new_session: bool = False,
    begun: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a sweep. before: Python to run in its process first; it then says how many points it computed.

    begun: a file that is there once Python itself has started and the command begins to load.
    """
    begins = f"import pathlib; pathlib.Path({str(begun)!r}).touch()\n" if begun else ""
    code = f"{before}{REPORTING if before else ''}\nfrom edgewatt.__main__ import main\n{begins}main()"
    command = [sys.executable, "-c", code, "sweep", str(config), "-o", str(results), *more]
    return subprocess.Popen(
        command,
        env={**ENVIRONMENT, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=new_session,
    )


def workers_of(pid: int) -> list[int]:
    """Return the living workers of a sweep: its child that leads a session of its own, and copies of it."""
    seen: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        try:
            _, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if b"traces.base.worker" in (folder / "cmdline").read_bytes():
                seen[int(folder.name)] = int(parent), int(session)
        except (OSError, ValueError):
            continue
    sessions = {each for each, (parent, session) in seen.items() if parent == pid and session == each}
    return [each for each, (_, session) in seen.items() if session in sessions]


def working(process: subprocess.Popen[bytes]) -> None:
    """Wait until a sweep has workers, or has ended."""
    while not workers_of(process.pid) and process.poll() is None:
        time.sleep(0.05)


def canonical(folder: Path) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in Store(folder)}
