"""Stop long commands in the middle, from outside and as a terminal does: what is left, and whether they go on.

    python scripts/stress_commands.py            SIGTERM, SIGINT and SIGHUP, nine moments of each command
    python scripts/stress_commands.py shards     of one: tuples, shards, eon, learned, papers
    python scripts/stress_commands.py --kill     SIGKILL, too
    python scripts/stress_commands.py --flip 200 rounds: SIGKILL `order-tuples` on shards, damage what is there, go on

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
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sweep_runs import ENVIRONMENT, canonical

from reorder.eon.contents import contents
from traces.generators.networks import random_layered
from traces.readers.native import save

EDGEWATT = ("-m", "edgewatt")
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # and SIGKILL with --kill, which no command can answer


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
        more = ["--resume", str(file), "--force"] if file.exists() else []  # it replaces what it goes on from
        return [
            *EDGEWATT,
            "learn",
            "eon",
            str(folder / "net.npz"),
            "-M",
            "8",
            "--iterations",
            "60",
            "-o",
            str(file),
            *more,
        ]

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

    tuples = [*EDGEWATT, "order-tuples", str(folder / "m.npz"), "-j", "2", "--effort", "4"]
    of_folder = [*EDGEWATT, "order-tuples", str(folder / "model"), "-j", "2", "--effort", "3"]
    figure = [str(Path(__file__).parent / "papers"), "gleinig-2a", "--seeds", "1", "--iterations", "300"]
    return {
        "tuples": Case(lambda out: [*tuples, "--checkpoint", str(out / "c.npz"), "-o", str(out / "o.npz")],
                       lambda out: whole(out, "o.npz")),
        "shards": Case(lambda out: [*of_folder, "-o", str(out)], shards),
        "eon": Case(eon_words, eon),
        "papers": Case(lambda out: [*figure, "-r", str(out), "-j", "2"], papers),
    }  # fmt: skip


MARK = "EDGEWATT_STRESS"


def members(mark: str) -> dict[int, int]:
    """Return the processes with a mark in their environment that are not over, and their CPU ticks: theirs and of the
    children that they waited for. Workers have sessions of their own, so a session does not tell."""
    ticks, wanted = {}, f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        try:
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                ticks[int(folder.name)] = sum(map(int, fields[11:15]))
        except (OSError, ValueError, IndexError):
            continue
    return ticks


def _usual_signals() -> None:
    """Undo what `nohup` and a shell's `&` let a command inherit: that it ignores SIGHUP and SIGINT."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A command under way in a session of its own; what it says goes to a file, so that it never waits for us."""

    def __init__(self, words: list[str], out: Path) -> None:
        out.mkdir(exist_ok=True)
        self.mark = f"{time.monotonic_ns()}"
        self.said = out.with_suffix(".said")
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                env={**ENVIRONMENT, MARK: self.mark},
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                preexec_fn=_usual_signals,
            )

    def ticks(self) -> int:
        """Return the CPU time of the command and its workers so far, as far as they are there or were waited for."""
        return sum(members(self.mark).values())

    def reached(self, ticks: float) -> bool:
        """Wait until the command took so much CPU time; return whether it is still under way."""
        while self.process.poll() is None and self.ticks() < ticks:
            time.sleep(0.02)
        return self.process.poll() is None

    def end(self, seconds: float | None = None) -> str:
        """Wait for the command; return what it said."""
        self.process.wait(seconds)
        return self.said.read_text()

    def whole(self) -> int:
        """Let it end; return its CPU time, seen last just before."""
        last = 0
        while self.process.poll() is None:
            last = max(last, self.ticks())
            time.sleep(0.02)
        return last


def stop(case: Case, folder: Path, moments: int, seed: int, signals: tuple[signal.Signals, ...]) -> dict[str, Any]:
    """Stop a command at random moments, by its CPU time so that a busy machine moves none; then let it end.

    A command that was over before its moment begins again from nothing.
    """
    pick, wrong, midway, went_on = random.Random(seed), [], 0, 0
    told: dict[str, dict[int, int]] = {}
    out = folder / "whole"
    whole = Command(case.words(out), out)
    length, wanted = whole.whole(), case.result(out)
    if wanted is None:
        raise SystemExit(f"the undisturbed command made nothing: {whole.end()}")
    out = folder / "stopped"
    for moment in range(moments):
        number = signals[moment % len(signals)]
        ticks, group = pick.uniform(0.3, 0.9) * length, pick.random() < 0.5
        command = Command(case.words(out), out)
        while not command.reached(ticks):  # what was done before made it short, or it was over by then
            if (status := command.process.returncode) != 0 or case.result(out) != wanted:
                wrong.append(f"gone on: exit status {status}: {command.end()[-300:]}")
            shutil.rmtree(out)
            ticks *= 0.9
            command = Command(case.words(out), out)
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(command.process.pid, number)
        try:
            error = command.end(60)
        except subprocess.TimeoutExpired:
            wrong.append(f"{number.name}: still there after 60 s")
            os.killpg(command.process.pid, signal.SIGKILL)
            error = command.end()
        code = command.process.returncode
        status = told.setdefault(f"{number.name}{' to the group' if group else ''}", {})
        status[code] = status.get(code, 0) + 1
        if code not in (0, 130, 128 + number, -number):
            wrong.append(f"{number.name}: exit status {code}: {error[-200:]}")
        deadline = time.monotonic() + 20
        while left := members(command.mark):
            if time.monotonic() > deadline:
                wrong.append(f"{number.name}: {len(left)} processes outlive the command")
                for each in left:
                    os.kill(each, signal.SIGKILL)
                break
            time.sleep(0.1)
        if "Traceback" in (error := command.end()):  # of a worker, too, which ends a little later
            wrong.append(f"{number.name}: {error[-1500:]}")
        case.result(out)  # raises where a file is half written
        midway += code != 0
        went_on += any(out.iterdir())
    command = Command(case.words(out), out)
    command.process.wait()
    same = case.result(out) == wanted
    if not same:
        wrong.append(f"another result in the end: {command.end()[-200:]}")
    return {"signals": moments, "in the middle": midway, "with something to go on from": went_on,
            "exit statuses": told, "result as undisturbed": same, "wrong": wrong,
            "ok": not wrong and 4 * midway >= 3 * moments}  # fmt: skip


def forked(words: list[str], said: Path) -> int:
    """Begin a command of edgewatt in a copy of this process, which has imported it; what it says goes to a file."""
    from edgewatt.__main__ import main as edgewatt

    if child := os.fork():
        return child
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code: Any = 1
    try:
        sys.argv = ["edgewatt", *words]
        edgewatt()
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    os._exit(code if isinstance(code, int) else 1)


def damage(folder: Path, pick: random.Random) -> str:
    """Flip a bit, zero, cut or lengthen up to three of the files under a folder; return what was done."""
    done = []
    for file in pick.choices(sorted(f for f in folder.rglob("*") if f.is_file()) or [folder], k=pick.randrange(1, 4)):
        if file.is_dir() or not (data := bytearray(file.read_bytes())):
            continue
        at = pick.randrange(len(data))
        if (kind := pick.choice(("flip", "flip", "zero", "zero", "cut", "longer"))) == "flip":
            data[at] ^= 1 << pick.randrange(8)
        elif kind == "zero":
            end = min(len(data), at + pick.choice((1, 8, 4096)))
            data[at:end] = bytes(end - at)
        else:
            data = data[:at] if kind == "cut" else data + data[at:]
        file.write_bytes(data)
        done.append(f"{kind} {file.relative_to(folder)} at {at}")
    return ", ".join(done)


def flip(case: Case, folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    """Kill a command, damage what it left, let it go on: its result is that of an undisturbed one, or it refuses."""
    pick, wrong, counts = random.Random(seed), [], {"equal": 0, "refused": 0, "killed": 0, "damaged": 0}
    out, said = folder / "out", folder / "said"
    words = [*case.words(out)[len(EDGEWATT) :], "--effort", "fast"]
    begun = time.monotonic()
    os.waitpid(forked(words, said), 0)
    length, wanted = time.monotonic() - begun, case.result(out)
    if wanted is None:
        raise SystemExit(f"the undisturbed command made nothing: {said.read_text()}")
    for number in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        child, status = forked(words, said), 0
        if pick.random() < 0.7:  # the others end, and their shards are damaged
            time.sleep(pick.uniform(0.1, 1) * length)
            os.kill(child, signal.SIGKILL)
        counts["killed"] += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        what = damage(out, pick) if out.exists() else ""
        counts["damaged"] += bool(what)
        _, status = os.waitpid(forked(words, said), 0)
        if status and not os.WIFSIGNALED(status) and "Traceback" not in said.read_text():
            counts["refused"] += 1
        elif not status and case.result(out) == wanted:
            counts["equal"] += 1
        else:
            wrong.append(f"round {number}: status {status} after {what}: {said.read_text()[-800:]}")
    return {"rounds": rounds, **counts, "wrong": wrong, "ok": not wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--moments", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true", help="SIGKILL among the signals")
    parser.add_argument("--flip", type=int, default=0, metavar="ROUNDS", help="kill and damage, of shards")
    options = parser.parse_args()
    if options.flip:
        options.names = ["shards"]
    results, signals = {}, (*SIGNALS, signal.SIGKILL) if options.kill else SIGNALS
    with tempfile.TemporaryDirectory() as name:
        for case, made in cases(Path(name)).items():
            if not options.names or case in options.names:
                (Path(name) / case).mkdir()
                if options.flip:
                    results[case] = flip(made, Path(name) / case, options.flip, options.seed)
                else:
                    results[case] = stop(made, Path(name) / case, options.moments, options.seed, signals)
                print(f"{case}: {results[case]}", file=sys.stderr, flush=True)
    print(json.dumps(results, indent=2))
    sys.exit(0 if all(each["ok"] for each in results.values()) else 1)


if __name__ == "__main__":
    main()
