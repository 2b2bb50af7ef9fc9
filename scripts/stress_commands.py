"""Stop long commands in the middle, from outside and as a terminal does: what is left, and whether they go on.

    python scripts/stress_commands.py            SIGTERM, SIGINT and SIGHUP, nine moments of each command
    python scripts/stress_commands.py shards     of one: tuples, shards, eon, learned, papers

A stopped command leaves its outputs whole or not at all, no process and no traceback; the same command then goes on and
ends with the result of an undisturbed one. Prints what it measured as JSON; exit status 1 where that is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sweep_runs import ENVIRONMENT, canonical

from reorder.learning.eon.contents import contents
from reorder.search.streaming import read_weights
from traces.generators.networks import random_layered
from traces.readers.native import save

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class Case:
    """A command by its output folder, and what its result is there: None where there is none, else to be compared."""

    words: Callable[[Path], list[str]]
    result: Callable[[Path], Any]


def cases(folder: Path) -> dict[str, Case]:
    """Return the commands; `folder` is for what they read."""
    matrix = scipy.sparse.random(1500, 1500, 0.05, "csr", random_state=np.random.default_rng(0)).astype(np.float32)
    scipy.sparse.save_npz(folder / "m.npz", matrix)
    from safetensors.numpy import save_file

    for number in range(2):
        (folder / "model").mkdir(exist_ok=True)
        dense = matrix[750 * number : 750 * (number + 1)].toarray()
        save_file({f"w{number}": dense, f"b{number}": dense[0]}, folder / "model" / f"{number}.safetensors")
    network = random_layered(3, 12, 0.3, seed=1)
    save(network, folder / "net.npz")
    whole = lambda out, name: (out / name).read_bytes() if (out / name).exists() else None  # noqa: E731

    def shards(out: Path) -> Any:
        files = sorted(out.glob("*.safetensors"))
        return [file.read_bytes() for file in files] if len(files) == 2 else None

    def eon_words(out: Path) -> list[str]:
        file = out / "e.safetensors"
        more = ["--resume", str(file)] if file.exists() else []
        return ["learn", "eon", str(folder / "net.npz"), "-M", "8", "--iterations", "60", "-o", str(file), *more]

    def eon(out: Path) -> Any:
        return contents(out / "e.safetensors", network).iteration > 0 if (out / "e.safetensors").exists() else None

    def learned(out: Path) -> Any:
        return bool(read_weights(out / "w.json")) if (out / "w.json").exists() else None

    def papers(out: Path) -> Any:
        return {str(f.relative_to(out)): canonical(f.parent) for f in sorted(out.rglob("records"))} or None

    tuples = ["order-tuples", str(folder / "m.npz"), "-j", "2", "--effort", "4"]
    of_folder = ["order-tuples", str(folder / "model"), "-j", "2", "--effort", "3"]
    learning = ["learn", "order", "--seconds", "6", "--seeds", "0"]
    figure = ["papers", "gleinig-2a", "--seeds", "1", "--iterations", "300"]
    return {
        "tuples": Case(lambda out: [*tuples, "--checkpoint", str(out / "c.npz"), "-o", str(out / "o.npz")],
                       lambda out: whole(out, "o.npz")),
        "shards": Case(lambda out: [*of_folder, "-o", str(out)], shards),
        "eon": Case(eon_words, eon),
        "learned": Case(lambda out: [*learning, "-o", str(out / "w.json")], learned),
        "papers": Case(lambda out: [*figure, "-r", str(out), "-j", "2"], papers),
    }  # fmt: skip


def members(session: int) -> list[int]:
    """Return the processes of a session that are not over."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def stop(case: Case, folder: Path, moments: int, seed: int) -> dict[str, Any]:
    """Stop a command at random moments, then let it end."""
    pick, wrong = random.Random(seed), []
    told: dict[str, dict[int, int]] = {}

    def begin(out: Path) -> subprocess.Popen[bytes]:
        out.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "edgewatt", *case.words(out)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=pipe, start_new_session=True
        )

    started = time.monotonic()
    error = begin(folder / "whole").communicate()[1].decode()
    length, wanted = time.monotonic() - started, case.result(folder / "whole")
    if wanted is None:
        raise SystemExit(f"the undisturbed command made nothing: {error}")
    out, midway = folder / "stopped", 0
    for moment in range(moments):
        number = SIGNALS[moment % 3]
        process = begin(out)
        time.sleep(pick.uniform(0.2, 1) * length)
        group = pick.random() < 0.5
        midway += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(process.pid, number)
        try:
            error = process.communicate(timeout=60)[1].decode()
        except subprocess.TimeoutExpired:
            wrong.append(f"{number.name}: still there after 60 s")
            os.killpg(process.pid, signal.SIGKILL)
            error = process.communicate()[1].decode()
        status = told.setdefault(f"{number.name}{' to the group' if group else ''}", {})
        status[process.returncode] = status.get(process.returncode, 0) + 1
        if process.returncode not in (0, 130, 128 + number, -number):
            wrong.append(f"{number.name}: exit status {process.returncode}: {error[-200:]}")
        if "Traceback" in error:
            wrong.append(f"{number.name}: {error[-300:]}")
        deadline = time.monotonic() + 20
        while left := members(process.pid):
            if time.monotonic() > deadline:
                wrong.append(f"{number.name}: {len(left)} processes outlive the command")
                os.killpg(process.pid, signal.SIGKILL)
                break
            time.sleep(0.1)
        found = case.result(out)  # raises where a file is half written
        if process.returncode == 0 and found == wanted:  # it was over: begin again
            shutil.rmtree(out)
    error = begin(out).communicate()[1].decode()
    same = case.result(out) == wanted
    if not same:
        wrong.append(f"another result in the end: {error[-200:]}")
    return {"signals": moments, "in the middle": midway, "exit statuses": told, "result as undisturbed": same,
            "wrong": wrong, "ok": not wrong and midway > moments // 2}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--moments", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for case, made in cases(Path(name)).items():
            if not options.names or case in options.names:
                (Path(name) / case).mkdir()
                found[case] = stop(made, Path(name) / case, options.moments, options.seed)
                print(f"{case}: {found[case]}", file=sys.stderr, flush=True)
    print(json.dumps(found, indent=2))
    sys.exit(0 if all(each["ok"] for each in found.values()) else 1)


if __name__ == "__main__":
    main()
