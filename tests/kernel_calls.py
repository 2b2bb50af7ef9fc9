"""Every public entry of `cython_ext` called wrongly, each in a process of its own.

Calls that tests make are kept; each attack repeats one with arguments changed: shorter, longer or other arrays, ids out
of range, odd sizes, None. ``python -m tests.kernel_calls CALLS [SEED [NAME ...]]`` prints a line an entry: whether it
stood, or what ended it. Under sanitizers a report ends the process, too.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import os
import random
import re
import resource
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
ODD = (0, 1, 2, 3, 7, 8, 64, -1, -2, 255, 256, 65536, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**62), 2**63 - 1, -(2**63))
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, -1e30, float("inf"), float("nan"))
CALL_S = 0.2  # of a processor
MEMORY_BYTES = 3 << 30
QUICK = ("property/exact", "property/greedy_orders", "property/in_burst", "property/natural_orders",
         "property/ranked_orders", "property/recency", "property/streaming", "property/on_cache",
         "property/eon_frontier",
         "property/tuple_orders", "unit/eon_contents", "unit/long_runs")  # fmt: skip
TESTS = (*QUICK, "property/arena", "property/dram", "property/encoders", "property/inference", "property/iomodel",
         "property/schedule_oracle", "property/optimal_dbi", "property/replay_kernels", "property/cache",
         "property/both", "property/constructions", "property/scratchpad", "property/paths_bound",
         "unit/explain_order")  # fmt: skip
KEPT, OF_A_TEST, BEFORE = 60, 3, 8  # calls of an entry; calls before on its object
SMALL_BYTES, LARGE = 1 << 15, 2  # of an array, but in so many calls of an entry, which have less than 100 times that


def entries() -> Iterator[tuple[str, str, str | None]]:
    """Yield (module, function, class or None) of all stubs; a class's __init__ stands for the class."""
    for stub in sorted((ROOT / "cython_ext").glob("*/*.pyi")):
        module = ".".join(stub.relative_to(ROOT).with_suffix("").parts)
        for line in ast.parse(stub.read_text()).body:
            if isinstance(line, ast.FunctionDef) and not line.name.startswith("_"):
                yield module, line.name, None
            elif isinstance(line, ast.ClassDef) and not line.name.startswith("_"):
                for member in line.body:
                    if isinstance(member, ast.FunctionDef) and (member.name == "__init__" or member.name[0] != "_"):
                        yield module, member.name, line.name


def name_of(entry: tuple[str, str, str | None]) -> str:
    """Return module.function, module.Class or module.Class.method without the package."""
    module, function, owner = entry
    return ".".join(
        [module.split(".")[-1], *([owner] if owner else []), *([function] if function != "__init__" else [])]
    )


@dataclass
class Call:
    """An entry's arguments, and of a method the calls of its object before, its making first."""

    name: str
    args: list[Any]
    before: list[Call] = field(default_factory=list)


calls: dict[str, list[Call]] = defaultdict(list)
real: dict[str, Any] = {}
noted: Counter[tuple[str, str | None]] = Counter()


class TooBig(Exception):
    """Not kept."""


def kept(value: Any, name: str) -> Any:
    """Return a copy of an argument that later calls do not change."""
    if isinstance(value, memoryview):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.nbytes > SMALL_BYTES:
            noted[name, "large"] += 1
            if noted[name, "large"] > LARGE * 8 or value.nbytes > 100 * SMALL_BYTES:
                raise TooBig
        return copied(value)
    if isinstance(value, (list, tuple)):
        return type(value)(kept(each, name) for each in value) if type(value) in (list, tuple) else value
    if hasattr(value, "kernel_calls"):
        return Call("object", [], list(value.kernel_calls))
    return value


def note(name: str, args: tuple[Any, ...], more: dict[str, Any], before: list[Call]) -> Call | None:
    key = name, os.environ.get("PYTEST_CURRENT_TEST", "").split("[")[0]
    is_method = name.count(".") == 2
    wanted = len(calls[name]) < KEPT and noted[key] < OF_A_TEST and bool(before) == is_method
    keeps = inspect.isclass(real.get(name)) or 0 < len(before) < BEFORE  # for later calls on the object
    if not wanted and not keeps:
        return None
    try:
        call = Call(name, [kept(list(args), name), kept(list(more.items()), name)], list(before))
    except TooBig:
        return None
    if wanted:
        noted[key] += 1
        calls[name].append(call)
    return call


def watched(name: str, function: Any) -> Any:
    @functools.wraps(function, assigned=("__doc__", "__name__"))
    def call(*args: Any, **more: Any) -> Any:
        note(name, args, more, [])
        return function(*args, **more)

    return call


def watched_class(module: str, cls: Any) -> Any:
    """Return a subclass whose objects know the calls that made them what they are."""
    base = f"{module.split('.')[-1]}.{cls.__name__}"

    def of(method: str, plain: Any) -> Any:
        def call(self: Any, *args: Any, **more: Any) -> Any:
            if method:
                told = note(f"{base}.{method}", args, more, self.kernel_calls)
            else:
                self.kernel_calls, told = [], note(base, args, more, [])
            if told and len(self.kernel_calls) < BEFORE:
                self.kernel_calls.append(told)
            return None if plain is object.__init__ else plain(self, *args, **more)

        return call

    inside: dict[str, Any] = {"__init__": of("", cls.__init__), "kernel_calls": []}
    for method, plain in vars(cls).items():
        if not method.startswith("_") and callable(plain):
            inside[method] = of(method, plain)
    return type(cls.__name__, (cls,), inside)


def watch() -> None:
    """Put what notes calls into the place of all entries."""
    for module, function, owner in entries():
        loaded, name = import_module(module), owner or function
        full = f"{module.split('.')[-1]}.{name}"
        if full not in real:
            real[full] = getattr(loaded, name)
    for module, function, owner in entries():
        loaded, name = import_module(module), owner or function
        full = f"{module.split('.')[-1]}.{name}"
        if getattr(loaded, name) is real[full]:
            setattr(loaded, name, watched_class(module, real[full]) if owner else watched(full, real[full]))


def copied(values: np.ndarray) -> np.ndarray:
    """Return a copy that lies on 64 bytes where it is bytes and the array does: kernels refuse other counters."""
    if values.dtype != np.uint8 or values.ctypes.data % 64 or not values.flags.c_contiguous:
        return values.copy()
    room = np.zeros(values.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    room[at : at + values.nbytes] = values.ravel()
    return room[at : at + values.nbytes].reshape(values.shape)


class Change:
    """Changes one or two arguments of a call, of those before it on its object now and then."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)

    def array(self, a: Any) -> Any:
        """Return an array of the same type, with other values or another length."""
        rng, n = self.rng, len(a) if a.ndim else 0
        what = rng.randrange(9)
        if what == 0:
            return a[: rng.choice((0, 0, 1, n // 2, max(0, n - 1)))].copy()
        if what == 1:
            return (
                np.concatenate([a, a[: rng.choice((1, 2, n))]])
                if n
                else np.zeros((rng.randrange(3),) * a.ndim, a.dtype)
            )
        if what == 2:
            return a[::-1].copy() if a.ndim else a
        if what == 3:
            return a[..., : rng.randrange(a.shape[-1] + 1)].copy() if a.ndim else a
        if what == 4 and n:
            return np.array(a)[rng.sample(range(n), n)]
        a = a.copy()
        with contextlib.suppress(OverflowError, ValueError, TypeError):
            for _ in range(rng.choice((1, 1, 2, 5)) if a.size else 0):
                value = a.flat[rng.randrange(a.size)]
                if a.dtype.kind in "iu":
                    new = rng.choice((int(value) + 1, int(value) - 1, n, n - 1, int(a.max()) + 1, rng.choice(ODD)))
                    value = np.array(new, object).astype(np.int64, casting="unsafe") if abs(new) < 2**63 else 0
                else:
                    value = rng.choice(FLOATS)
                a.flat[rng.randrange(a.size)] = np.asarray(value).astype(a.dtype)
        return a

    def value(self, value: Any) -> Any:
        """Return another argument of the same kind, or None."""
        rng = self.rng
        if isinstance(value, np.ndarray):
            return None if rng.random() < 0.03 else self.array(value)
        if isinstance(value, (bool, np.bool_)):
            return not value
        if isinstance(value, (int, np.integer)):
            return rng.choice((int(value) + 1, int(value) - 1, 2 * int(value), *ODD))
        if isinstance(value, float):
            return rng.choice(FLOATS)
        if isinstance(value, tuple) and hasattr(value, "_replace"):
            name = rng.choice(value._fields)
            return value._replace(**{name: self.value(getattr(value, name))})
        if dataclasses.is_dataclass(value) and not isinstance(value, type):  # what its own checks would refuse, too
            name, value = rng.choice(dataclasses.fields(value)).name, copy.copy(value)
            with contextlib.suppress(AttributeError):
                object.__setattr__(value, name, self.value(getattr(value, name)))
        return value

    def walk(self, values: Any, at: set[int], count: list[int]) -> Any:
        """Return thawed values, those at some leaves changed."""
        if type(values) in (list, tuple):
            return type(values)(self.walk(each, at, count) for each in values)
        if isinstance(values, Call):
            return self.object(values.before, at, count)
        count[0] += 1
        if count[0] - 1 in at:
            return self.value(values)
        return copied(values) if isinstance(values, np.ndarray) else values

    def object(self, before: list[Call], at: set[int], count: list[int]) -> Any:
        args, more = self.walk(before[0].args, at, count)
        made = real[before[0].name](*args, **dict(more))
        for call in before[1:]:
            args, more = self.walk(call.args, at, count)
            with contextlib.suppress(Exception):
                getattr(made, call.name.split(".")[-1])(*args, **dict(more))
        return made

    def call(self, name: str, kept: list[Call]) -> None:
        """Do a kept call with arguments changed."""
        call = self.rng.choice(kept)
        leaves = sum(_leaves(each.args) for each in (*call.before, call))
        at = {self.rng.randrange(leaves) for _ in range(self.rng.choice((1, 1, 2, 3)))} if leaves else set()
        count = [0]
        if name.count(".") == 2:  # a method; a property where the call kept is another one's
            made = self.object([*call.before, call][: len(call.before) + (call.name != name)], at, count)
            target = getattr(made, name.split(".")[-1])
            if not callable(target):
                return
        else:
            target = real[name]
        args, more = self.walk(call.args, at, count) if call.name == name else ([], [])
        target(*args, **dict(more))


def _leaves(values: Any) -> int:
    if type(values) in (list, tuple):
        return sum(map(_leaves, values))
    return sum(_leaves(each.args) for each in values.before) if isinstance(values, Call) else 1


def attack(name: str, kept: list[Call], times: int, seed: int) -> str:
    """Call an entry wrongly in a copy of this process; return '' or how it ended.

    A sanitizer's report counts, too, where the time for a call ends before the report does.
    """
    read, write = os.pipe()
    said = tempfile.TemporaryFile()  # noqa: SIM115
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if "asan" not in os.environ.get("LD_PRELOAD", ""):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        os.dup2(said.fileno(), 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        for number in range(times):
            os.write(write, number.to_bytes(4, "little"))
            signal.setitimer(signal.ITIMER_PROF, CALL_S)
            with contextlib.suppress(Exception):
                Change(f"{name} {seed} {number}").call(name, kept)
        os._exit(0)
    os.close(write)
    last = b""
    while part := os.read(read, 1 << 16):
        last = (last + part)[-4:]
    os.close(read)
    _, status = os.waitpid(child, 0)
    number = int.from_bytes(last, "little")
    said.seek(0)
    with said:
        report = re.search(rb"(==ERROR: .*|.*runtime error: .*)", said.read())
    if report:
        return f"{report[0].decode(errors='replace')} in call {number}"
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) == signal.SIGPROF:
            return f"slow {number}"  # so much work was asked for
        return f"{signal.Signals(os.WTERMSIG(status)).name} in call {number}"
    return f"exit {os.WEXITSTATUS(status)} in call {number}" if status else ""


def stands(name: str, kept: list[Call], times: int, seed: int) -> str:
    """Attack until so many calls are done, behind slow ones again; return '' or how it ended."""
    done, again = 0, 0
    while done < times and again < 200:
        ended = attack(name, kept, times - done, seed + 1000 * again)
        if not ended.startswith("slow"):
            return f"{ended} of seed {seed + 1000 * again}" if ended else ""
        done += int(ended.split()[1]) + 1
        again += 1
    return "" if done >= times else f"too many slow calls, {done} done"


def watch_tests(names: Iterable[str] = TESTS) -> None:
    """Run property tests, few examples of each, and keep what they call."""
    import pytest
    from hypothesis import settings

    settings.register_profile("few", max_examples=3, derandomize=True, deadline=None, database=None)
    os.environ["HYPOTHESIS_PROFILE"] = "few"
    watch()
    from traces.trace import build, transfers

    for small in (build.build_trace, transfers.transfers):  # calls of few accesses are kept
        small.__kwdefaults__["chunk_accesses"] = 64
    paths = [str(ROOT / "tests/{}/test_{}.py".format(*name.split("/"))) for name in names]
    ended = pytest.main(["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", *paths])
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):  # without calls every entry would stand
        sys.exit(f"the tests that make calls did not run: {ended!r}")
    use_product()


def use_product() -> None:
    """Small operations that call what tests leave."""
    import edgewatt as ew
    from cython_ext.common import cpu
    from hwmodel.processor.work import ordered_work
    from reorder.edges.machine.numbering import tiles_of
    from traces.generators.networks import uniform_layers

    cpu.simd_level(), cpu.debug_build()
    network = uniform_layers([12, 10, 8, 4], 0.6, seed=1)
    tiles_of(network, 3, 20, 0)
    for tile in (3, 8):  # which a processor with narrow vectors does not ask for
        ordered_work(network, ew.order(network, "long-runs", memory=6, sources=tile)).shared.sum()
    for method in ("auto", "long-runs"):
        ew.order(network, method, memory=6)
    for system in ("edge", "scratchpad-8k", "application-core"):
        ew.order(network, "auto", memory=None, machine=system, objective="energy")


def main() -> int:
    """Attack all entries, or those named."""
    times, seed, names = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:]
    watch_tests(TESTS if times >= 100 else QUICK)
    bad = 0
    for name in map(name_of, entries()):
        if names and not {name, name.split(".")[0]} & set(names):
            continue
        owner = name.rpartition(".")[0] + "."
        kept = calls[name]
        if not kept and name.count(".") == 2:  # properties are looked at behind other calls
            kept = [call for other in [*calls] if other.startswith(owner) for call in calls[other]]
        ended = stands(name, kept, times, seed) if kept else ""
        bad += bool(ended)
        print(f"{name}: {ended or ('stands' if kept else 'not called')} ({len(kept)} calls kept)", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
