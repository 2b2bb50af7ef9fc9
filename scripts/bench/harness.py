"""Rounds in turns: thread CPU time of calls beside each other, with an A/A control.

A suite yields cases. A case is measured in rounds; each round calls the work, what it is compared with, and the work
again, in alternating order. The figure is the median over the rounds, a ratio the median of the rounds' ratios, and
A/A the ratio of the work to itself: where it is off by more than 10 %, the machine was too busy to tell.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SUITES = tuple(sorted(path.stem for path in (FOLDER / "suites").glob("[a-z]*.py")))
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One thing to measure. name: unique in its suite. work: the call; a mapping that it returns is printed with it.

    units, of: how many of what one call works through (accesses, bytes, tuples), for the time of one. against: what it
    is compared with in the same rounds, `peer` its name. rounds: fewer than asked for, where a call takes seconds.
    """

    name: str
    work: Callable[[], Any]
    units: int = 1
    of: str = "call"
    against: Callable[[], Any] | None = None
    peer: str = ""
    rounds: int | None = None


@dataclass
class Measured:
    """What came out. cpu_s: median thread CPU seconds of a call. ratio: of `against` to the work, above 1 is faster."""

    suite: str
    name: str
    rounds: int
    cpu_s: float
    per_unit_ns: float
    of: str
    a_to_a: float
    peer: str = ""
    ratio: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def reference(*names: str) -> Path | None:
    path = Path(os.environ.get("EDGEWATT_REFERENCE", "/nonexistent"), *names)
    return path if path.exists() else None


def cpu_seconds(work: Callable[[], Any], calls: int = 1) -> float:
    start = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - start) / calls


def calls_of(seconds: float) -> int:
    """Return how many calls of so many seconds make 20 ms, which a clock and a scheduler leave in peace."""
    return max(1, min(1000, int(0.02 / max(seconds, 1e-6))))


def rounds_of(times: Callable[[int], float], most: int, seconds: float) -> Iterator[list[float]]:
    """Yield the times of three, in turns: at least three rounds, at most `most`, no new one after `seconds`."""
    end, n = time.monotonic() + seconds, 0
    while n < min(3, most) or (n < most and time.monotonic() < end):
        row = [0.0, 0.0, 0.0]
        for k in (2, 1, 0) if n % 2 else (0, 1, 2):
            row[k] = times(k)
        yield row
        n += 1


def pin_to_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def cases_of(suite: str) -> Iterator[Case]:
    cases: Iterator[Case] = import_module(f"bench.suites.{suite}").cases()
    return cases


def measure(suite: str, case: Case, rounds: int, seconds: float) -> Measured:
    facts, most = case.work(), min(rounds, case.rounds or rounds)
    if case.against:
        case.against()
    many = calls_of(cpu_seconds(case.work)) if most > 1 else 1
    calls = [case.work, case.against or (lambda: None), case.work]
    rows = list(rounds_of(lambda k: cpu_seconds(calls[k], many), most, seconds))
    own = statistics.median((a + c) / 2 for a, _, c in rows)
    a_to_a = statistics.median(c / a for a, _, c in rows)
    ratio = statistics.median(2 * b / (a + c) for a, b, c in rows) if case.against else None
    said = dict(facts) if isinstance(facts, Mapping) else {}
    per_unit = 1e9 * own / case.units
    return Measured(suite, case.name, len(rows), own, per_unit, case.of, a_to_a, case.peer, ratio, said)


class Checkout:
    """A process in which one checkout makes the calls of a suite, each when it is asked to."""

    def __init__(self, tree: Path, suite: str) -> None:
        own = "[f for f in sys.meta_path if not getattr(f, '__module__', '').startswith('__editable__')]"
        paths = [str(tree.resolve()), str(FOLDER.parent)]
        program = f"import sys; sys.path[:0] = {paths!r}; sys.meta_path = {own}"
        program += f"; from bench.harness import answer; answer({suite!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, text: str) -> str:
        """Send a line and return the answer. Ends the program where the checkout fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return answer.strip() if answer else sys.exit(f"{self.process.args}: ended")


def answer(suite: str) -> None:
    """Serve a `Checkout`: name the next case for `next`, tell the thread CPU seconds of one of N calls for `time N`."""
    pin_to_one_core()
    cases, case = cases_of(suite), None
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        if line.strip() == "next":
            case = next(cases, None)
            print(case.name if case else "", file=out, flush=True)
        elif case:
            print(cpu_seconds(case.work, int(line.split()[1])), file=out, flush=True)


def compare(suite: str, old: Path, new: Path, only: str, rounds: int, seconds: float) -> Iterator[Measured]:
    """Yield each case of a suite with the time of `old` over that of `new`; A/A is new over new."""
    trees = [Checkout(old, suite), Checkout(new, suite), Checkout(new, suite)]
    while name := trees[0].ask("next"):
        if {tree.ask("next") for tree in trees[1:]} != {name}:
            sys.exit(f"{suite}: the checkouts differ in their cases")
        if only not in name:
            continue
        for tree in trees:  # the first call fills caches
            tree.ask("time 1")
        many = calls_of(float(trees[1].ask("time 1")))
        rows = list(rounds_of(lambda k, many=many: float(trees[k].ask(f"time {many}")), rounds, seconds))  # type: ignore[misc]
        own = statistics.median((b + c) / 2 for _, b, c in rows)
        a_to_a = statistics.median(c / b for _, b, c in rows)
        ratio = statistics.median(2 * a / (b + c) for a, b, c in rows)
        yield Measured(suite, name, len(rows), own, 1e9 * own, "call", a_to_a, str(old), ratio)


def instructions(suite: str, case: Case) -> float:
    """Return the instructions of one call: callgrind of two calls less one (needs valgrind)."""
    totals = []
    for calls in (1, 2):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, str(FOLDER)]
        command += [suite, "--only", case.name, "--calls", str(calls)]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        totals.append(int(re.findall(r"(?:refs|Collected *): +([\d,]+)", done.stderr)[-1].replace(",", "")))
    return float(totals[1] - totals[0])
