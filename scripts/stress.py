"""Stop long commands in the middle, fill the disk, share a store: what is left, and whether they go on.

    python scripts/stress.py stop      SIGTERM, SIGINT and SIGHUP, from outside and as a terminal, of each command
    python scripts/stress.py stop sweep --kill    of one (sweep, tuples, shards, eon, papers); SIGKILL, too, of workers
    python scripts/stress.py disk      a full disk at points all over a sweep, then room again
    python scripts/stress.py hosts     two hosts on one store, killed and started again: every point once

A moment is a share of the CPU time of an undisturbed command and its workers, so a busy machine moves none out of it.
A stopped command leaves its outputs whole or not at all, no process and no traceback; the same command then goes on and
ends with the result of an undisturbed one. Prints what it measured as JSON; exit status 1 where that is wrong.
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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from edgewatt.results.record import canonical_json  # noqa: E402
from edgewatt.results.store import Store  # noqa: E402
from reorder.eon.contents import contents  # noqa: E402
from traces.generators.networks import random_layered  # noqa: E402
from traces.readers.native import save  # noqa: E402

EDGEWATT = ("-m", "edgewatt")
MARK = "EDGEWATT_STRESS"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # and SIGKILL with --kill, which no command can answer
SMALL = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}}
LARGER = {"generate": {"kind": "random-layered", "n_layers": 4, "width": 64, "density": 0.3}}
REPORTING = """
import atexit, sys
import edgewatt.runs.sweep as module
def counting(*args, sweep=module.sweep, **given):
    done = sweep(*args, **given)
    atexit.register(sys.stderr.write, f"STRESS computed {done.computed}\\n")
    return done
module.sweep = counting
"""


def _usual_signals() -> None:
    """Undo what `nohup` and a shell's `&` let a command inherit: that it ignores SIGHUP and SIGINT."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A command under way in a session of its own; what it says goes to memory, so that it never waits for us."""

    def __init__(self, words: list[str]) -> None:
        self.mark, self._said = f"{time.monotonic_ns()}", os.memfd_create("said")
        self.process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": str(ROOT), MARK: self.mark},
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
            preexec_fn=_usual_signals,
        )

    def members(self) -> dict[int, int]:
        """Return the processes with its mark that are not over, and their CPU ticks: theirs and of the children that
        they waited for. Workers have sessions of their own, so a session does not tell."""
        ticks, wanted = {}, f"{MARK}={self.mark}".encode()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    if fields[0] != "Z":
                        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
        return ticks

    def wait(self, ticks: float = float("inf")) -> int | None:
        """Wait until it took so much CPU time or is over; return its CPU time as last seen, None where it is over."""
        last = 0
        while self.process.poll() is None:
            last = max(last, sum(self.members().values()))
            if last >= ticks:
                return last
            time.sleep(0.02)
        return last if ticks == float("inf") else None

    def end(self, seconds: float | None = None) -> str:
        """Wait for the command; return what it said."""
        self.process.wait(seconds)
        return os.pread(self._said, 1 << 20, 0).decode()


@dataclass(frozen=True)
class Case:
    """A command by its output folder, and what its result is there: None where there is none, else to be compared."""

    words: Callable[[Path], list[str]]
    result: Callable[[Path], Any]


def sweep_file(folder: Path, n_points: int, network: dict[str, Any], iterations: int = 0) -> Path:
    orders = {"orderings": [{"kind": "connection-reordering", "iterations": iterations}]} if iterations else {}
    base = {"network": network, "fast_memory": {"size": 8}, **orders}
    path = folder / "sweep.yaml"
    path.write_text(json.dumps({"base": base, "grid": {"seed": list(range(n_points))}}))
    return path


def sweep_words(config: Path, results: Path, *, workers: int = 2, before: str = "") -> list[str]:
    """Return the words of a sweep. before: Python to run in its process first; it then says how many it computed."""
    code = f"{before}{REPORTING}\nfrom edgewatt.__main__ import main\nmain()"
    how = ["-c", code] if before else EDGEWATT
    return [*how, "sweep", str(config), "-o", str(results), "-j", str(workers)]


def canonical(folder: Path) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in Store(folder)}


def stamps(results: Path) -> dict[str, int]:
    return {path.stem: path.stat().st_mtime_ns for path in (results / "records").glob("[!.]*.json")}


def cases(folder: Path) -> dict[str, Case]:
    """Return the commands; `folder` is for what they read."""
    matrix = scipy.sparse.random(1500, 1500, 0.05, "csr", random_state=np.random.default_rng(0)).astype(np.float32)
    scipy.sparse.save_npz(folder / "m.npz", matrix)
    from safetensors.numpy import save_file

    (folder / "model").mkdir()
    for number in range(2):
        dense = matrix[750 * number : 750 * (number + 1)].toarray()
        save_file({f"w{number}": dense, f"b{number}": dense[0]}, folder / "model" / f"{number}.safetensors")
    network = random_layered(3, 12, 0.3, seed=1)
    save(network, folder / "net.npz")

    def shards(out: Path) -> Any:
        files = sorted(out.glob("*.safetensors"))
        return [file.read_bytes() for file in files] if len(files) == 2 else None

    def eon_words(out: Path) -> list[str]:
        file = out / "e.safetensors"
        more = ["--resume", str(file), "--force"] if file.exists() else []  # it replaces what it goes on from
        return [*EDGEWATT, *f"learn eon {folder}/net.npz -M 8 --iterations 60 -o {file}".split(), *more]

    def eon(out: Path) -> Any:
        """All that a run is but its seconds: parameters, moments, the generator, the curve, the best order."""
        if not (out / "e.safetensors").exists():
            return None
        held = contents(out / "e.safetensors", network)
        made = {kind: {name: each.tobytes() for name, each in of.items()} for kind, of in held.made.items()}
        curve = [replace(look, seconds=0.0) for look in held.curve]
        return held.iteration, held.generator.tobytes(), held.best.tobytes(), curve, made

    def papers(out: Path) -> Any:
        return {str(f.relative_to(out)): canonical(f.parent) for f in sorted(out.rglob("records"))} or None

    config = sweep_file(folder, 40, LARGER, 2000)
    tuples = [*EDGEWATT, "order-tuples", str(folder / "m.npz"), "-j", "2", "--effort", "4"]
    of_folder = [*EDGEWATT, "order-tuples", str(folder / "model"), "-j", "2", "--effort", "3"]
    figure = [str(ROOT / "scripts" / "papers"), "gleinig-2a", "--seeds", "1", "--iterations", "300"]
    return {
        "sweep": Case(lambda out: sweep_words(config, out), lambda out: canonical(out) or None),
        "tuples": Case(lambda out: [*tuples, "--checkpoint", str(out / "c.npz"), "-o", str(out / "o.npz")],
                       lambda out: (out / "o.npz").read_bytes() if (out / "o.npz").exists() else None),
        "shards": Case(lambda out: [*of_folder, "-o", str(out)], shards),
        "eon": Case(eon_words, eon),
        "papers": Case(lambda out: [*figure, "-r", str(out), "-j", "2"], papers),
    }  # fmt: skip


def undisturbed(case: Case, out: Path) -> tuple[int, Any]:
    """Return the CPU time and the result of a command that nothing stops."""
    out.mkdir()
    command = Command(case.words(out))
    ticks, result = command.wait() or 0, case.result(out)
    if result is None:
        raise SystemExit(f"the undisturbed command made nothing: {command.end()}")
    return ticks, result


def stop(case: Case, folder: Path, given: argparse.Namespace, pick: random.Random) -> dict[str, Any]:
    """Stop a command at random moments, then let it end. One that is over before its moment begins from nothing."""
    wrong: list[str] = []
    midway = went_on = 0
    told: dict[str, Counter[int]] = {}
    length, wanted = undisturbed(case, folder / "whole")
    out, signals = folder / "stopped", (*SIGNALS, signal.SIGKILL) if given.kill else SIGNALS
    for moment in range(given.moments):
        number = signals[moment % len(signals)]
        ticks, to = pick.uniform(0.3, 0.9) * length, pick.choice(("it", "group"))
        while True:
            out.mkdir(exist_ok=True)
            before, command = stamps(out), Command(case.words(out))
            if command.wait(ticks) is not None:
                break
            if (status := command.process.returncode) != 0 or case.result(out) != wanted:
                wrong.append(f"gone on: exit status {status}: {command.end()[-300:]}")
            shutil.rmtree(out)  # what was done before made it short, or it was over by then
            ticks *= 0.9
        workers = [each for each in command.members() if each != command.process.pid]
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL and workers and pick.random() < 0.5:
                to = "worker"
                os.kill(pick.choice(workers), number)
                time.sleep(0.5)
            (os.killpg if to == "group" else os.kill)(command.process.pid, number)
        try:
            command.end(60)
        except subprocess.TimeoutExpired:
            wrong.append(f"{number.name}: still there after 60 s")
            os.killpg(command.process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while left := command.members():
            if time.monotonic() > deadline:
                wrong.append(f"{number.name}: {len(left)} processes outlive the command")
                for each in left:
                    os.kill(each, signal.SIGKILL)
                break
            time.sleep(0.1)
        error, code = command.end(), command.process.returncode  # a worker says something a little later, too
        told.setdefault(f"{number.name} to {to}", Counter())[code] += 1
        if code not in (0, 130, 128 + number, -number):
            wrong.append(f"{number.name}: exit status {code}: {error[-200:]}")
        if "Traceback" in error:
            wrong.append(f"{number.name}: {error[-1500:]}")
        result, after = case.result(out), stamps(out)  # raises where a file is half written
        if after and (any(after.get(name) != stamp for name, stamp in before.items()) or set(result) != set(after)):
            wrong.append(f"{number.name}: a finished record was lost, damaged or computed again")
        midway += code != 0
        went_on += any(out.iterdir())
    command = Command(case.words(out))
    command.wait()
    same = case.result(out) == wanted
    if not same:
        wrong.append(f"another result in the end: {command.end()[-200:]}")
    return {"signals": given.moments, "in the middle": midway, "with something to go on from": went_on,
            "exit statuses": told, "result as undisturbed": same, "wrong": wrong,
            "ok": not wrong and 4 * midway >= 3 * given.moments}  # fmt: skip


def disk(folder: Path, moments: int) -> dict[str, Any]:
    """Fill the disk at points all over a sweep, then make room and run it again.

    A file system of its own (tmpfs) where that may be mounted, with less and less room; else a limit on the size of a
    file, which the records exceed.
    """
    config = sweep_file(folder, 50, SMALL)
    Command(sweep_words(config, folder / "whole")).end()
    whole, place = canonical(folder / "whole"), folder / "small"
    needed = sum(f.stat().st_blocks * 512 for f in (folder / "whole").rglob("*") if f.is_file())
    place.mkdir()
    counts = Counter({"full": 0, "tracebacks": 0, "half-written": 0, "lost": 0, "not recovered": 0})
    statuses, mounted = set(), False
    for moment in range(moments):
        room = max(64, int(needed * (moment + 0.5) / moments / 1024))
        mount = ["mount", "-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(place)]
        mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({200 * (moment + 1)}, -1))\n"
        results = place / "r"
        try:
            limited = Command(sweep_words(config, results, before="" if mounted else limit))
            counts["tracebacks"] += "Traceback" in limited.end()
            statuses.add(limited.process.returncode)
            counts["full"] += limited.process.returncode != 0
            before = set(stamps(results))
            counts["half-written"] += len(before - set(canonical(results)))
            if mounted:
                subprocess.run(["mount", "-o", "remount,size=1g", str(place)], check=True)
            Command(sweep_words(config, results)).end()
            counts["lost"] += len(before - set(stamps(results)))
            counts["not recovered"] += canonical(results) != whole
        finally:
            if mounted:
                subprocess.run(["umount", str(place)], check=True)
            else:
                shutil.rmtree(results, ignore_errors=True)
    bad = {name: n for name, n in counts.items() if name != "full"}
    return {"points of fullness": moments, "a file system of its own": mounted, "KiB needed": needed // 1024,
            "exit statuses": sorted(statuses), **counts,
            "ok": statuses <= {0, 1} and counts["full"] >= moments // 2 and not any(bad.values())}  # fmt: skip


HOST = """
import ctypes, socket
if ctypes.CDLL(None).unshare(0x04000000) == 0:  # CLONE_NEWUTS
    socket.sethostname("{name}")
else:
    socket.gethostname = lambda: "{name}"
"""


def hosts(folder: Path, moments: int, pick: random.Random) -> dict[str, Any]:
    """Let two hosts (host names of their own, where that is allowed) work on one store; kill one, start it again."""
    config = sweep_file(folder, 60, LARGER, 2000)
    Command(sweep_words(config, folder / "whole", workers=1)).end()
    whole = canonical(folder / "whole")
    wrong: list[str] = []
    killed = kept = 0
    results = folder / "shared"

    def host(k: int) -> Command:
        return Command(sweep_words(config, results, workers=1, before=HOST.format(name=f"host-{k}")))

    for moment in range(moments):
        shutil.rmtree(results, ignore_errors=True)
        running, there = [host(0), host(1)], {}
        if moment % 2:  # one of them dies on the way and comes back
            wanted = pick.randrange(2, len(whole) // 2)
            while len(stamps(results)) < wanted and running[0].process.poll() is None:
                time.sleep(0.02)
            running[0].process.kill()
            running[0].end()
            there = stamps(results)
            killed, kept = killed + 1, kept + len(there)
            running[0] = host(0)
        errors = [command.end() for command in running]
        if canonical(results) != whole or any(command.process.returncode for command in running):
            wrong.append(f"{moment}: other records, or a failure: {errors}")
        n_computed = sum(int(n) for error in errors for n in re.findall(r"STRESS computed (\d+)", error))
        if not moment % 2 and n_computed != len(whole):
            wrong.append(f"{moment}: {n_computed} points computed")
        if there.items() - stamps(results).items():
            wrong.append(f"{moment}: a finished record was computed again")
    return {"runs": moments, "killed": killed, "finished at the kills": kept, "points": len(whole),
            "wrong": wrong, "ok": not wrong}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("stop", "disk", "hosts"))
    parser.add_argument("names", nargs="*", help="commands to stop; without any, all")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true", help="SIGKILL among the signals")
    given = parser.parse_args()
    pick = random.Random(given.seed)
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "stop":
            for case, made in cases(folder).items():
                if case in given.names or not given.names:
                    (own := folder / case).mkdir()
                    results[case] = stop(made, own, given, pick)
                    print(f"{case}: {results[case]}", file=sys.stderr, flush=True)
        elif given.what == "hosts":
            results["hosts"] = hosts(folder, given.moments, pick)
        else:
            results["disk"] = disk(folder, given.moments)
    print(json.dumps(results, indent=2))
    sys.exit(0 if all(each["ok"] for each in results.values()) else 1)


if __name__ == "__main__":
    main()
