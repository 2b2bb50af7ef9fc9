"""Every public entry of `cython_ext` called with arguments that make no sense, each in a process of its own.

``python -m tests.kernel_calls CALLS [SEED [NAME ...]]`` prints a line an entry: whether it stood, or what ended
it. Under sanitizers a report ends the process, too.
"""

from __future__ import annotations

import ast
import contextlib
import os
import random
import resource
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
ODD = (
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    16,
    31,
    64,
    100,
    -1,
    -2,
    -100,
    255,
    256,
    65536,
    2**31 - 1,
    -(2**31),
    2**40,
    2**62,
    -(2**62),
    2**63 - 1,
)
SMALL = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8)
FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, -1e30, float("inf"), float("nan"))
CALL_S = 2.0
MEMORY_BYTES = 3 << 30


def entries() -> Iterator[tuple[str, ast.FunctionDef, str | None]]:
    """Yield (module, function, class or None) of all stubs; a class's __init__ stands for the class."""
    for stub in sorted((ROOT / "cython_ext").glob("*/*.pyi")):
        module = ".".join(stub.relative_to(ROOT).with_suffix("").parts)
        for line in ast.parse(stub.read_text()).body:
            if isinstance(line, ast.FunctionDef) and not line.name.startswith("_"):
                yield module, line, None
            elif isinstance(line, ast.ClassDef):
                yield from (
                    (module, member, line.name)
                    for member in line.body
                    if isinstance(member, ast.FunctionDef) and (member.name == "__init__" or member.name[0] != "_")
                )


def name_of(entry: tuple[str, ast.FunctionDef, str | None]) -> str:
    """Return module.function, module.Class or module.Class.method without the package."""
    module, function, owner = entry
    parts = [module.removeprefix("cython_ext.").split(".")[-1]]
    parts += [owner] if owner else []
    return ".".join([*parts, *([] if function.name == "__init__" else [function.name])])


class Given:
    """Makes arguments: arrays of one length more often than not, small numbers more often than odd ones."""

    def __init__(self, seed: str) -> None:
        self.rng = random.Random(seed)
        self.length, self.sane = self.rng.choice((0, 1, 2, 3, 5, 8, 17, 40)), self.rng.choice((0.5, 0.9, 1.0))

    def array(self, kind: str) -> Any:
        rng, dtype = self.rng, np.dtype(kind.replace("bool_", "bool"))
        n = self.length if rng.random() < 0.7 else rng.choice((0, 1, 2, 3, 5, 8, 17, 40, 200))
        shape = (n,) if rng.random() < 0.8 else rng.choice(((n, 2), (2, n), (n, 3), (3, n, 2), (4, 18, 18)))
        size = int(np.prod(shape))
        if dtype.kind == "f":
            return np.array([rng.choice(FLOATS) for _ in range(size)], dtype).reshape(shape)
        kinds = rng.random()
        if kinds < 0.3:
            values = [rng.randrange(max(1, self.length)) for _ in range(size)]
        elif kinds < 0.5:
            values = sorted(rng.randrange(max(1, self.length) + 1) for _ in range(size))
        else:
            values = [rng.choice(SMALL if rng.random() < self.sane else ODD) for _ in range(size)]
        return np.array(values, object).astype(np.int64, casting="unsafe").astype(dtype).reshape(shape)

    def value(self, annotation: str) -> Any:
        """Return something of a type, or of any."""
        rng = self.rng
        if "None" in annotation and rng.random() < 0.3:
            return None
        if "NDArray" in annotation:
            kind = annotation.partition("np.")[2].partition("]")[0]
            return self.array(
                kind if "Any" not in annotation else rng.choice(("uint8", "uint16", "int32", "int64", "uint64"))
            )
        if "Callable" in annotation:
            return None
        if annotation == "bool":
            return rng.random() < 0.5
        if annotation == "float":
            return rng.choice(FLOATS)
        if annotation == "int":
            return rng.choice(SMALL) if rng.random() < self.sane else rng.choice(ODD)
        if annotation == "Any":
            return (
                rng.choice((None, 1, 3, True))
                if rng.random() < 0.2
                else self.array(rng.choice(("int32", "int64", "uint8")))
            )
        if annotation.startswith(("tuple", "list")):
            return rng.choice((tuple, list))(self.value("Any") for _ in range(rng.randrange(5)))
        return {"s": 1} if annotation.startswith("dict") else annotation


def call(entry: tuple[str, ast.FunctionDef, str | None], given: Given) -> None:
    """Call an entry once; of a method also make its object, with arguments of the same kind."""
    module, function, owner = entry
    loaded = import_module(module)
    target: Any = getattr(loaded, owner or function.name)
    if owner and function.name != "__init__":
        made = next((each for m, each, o in entries() if m == module and o == owner and each.name == "__init__"), None)
        own = target(**arguments(made, given)) if made else target()
        if any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list):
            getattr(own, function.name)
            return
        target = getattr(own, function.name)
    target(**arguments(function, given))


def arguments(function: ast.FunctionDef, given: Given) -> dict[str, Any]:
    """Return arguments by the names of a stub; what has a default is left out now and then."""
    a = function.args
    plain = [each for each in a.posonlyargs + a.args if each.arg != "self"]
    left_out = {each.arg for each, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is not None}
    left_out |= {each.arg for each in plain[len(plain) - len(a.defaults) :]} if a.defaults else set()
    return {
        each.arg: given.value(ast.unparse(each.annotation) if each.annotation else "Any")
        for each in (*plain, *a.kwonlyargs)
        if each.arg not in left_out or given.rng.random() < 0.7
    }


def attack(entry: tuple[str, ast.FunctionDef, str | None], calls: int, seed: int) -> str:
    """Call an entry in a copy of this process; return '' or how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if "asan" not in os.environ.get("LD_PRELOAD", ""):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        nothing = os.open(os.devnull, os.O_WRONLY)
        if "asan" not in os.environ.get("LD_PRELOAD", ""):
            os.dup2(nothing, 2)
        for number in range(calls):
            os.write(write, number.to_bytes(4, "little"))
            signal.setitimer(signal.ITIMER_REAL, CALL_S)
            with contextlib.suppress(Exception):
                call(entry, Given(f"{name_of(entry)} {seed} {number}"))
        os._exit(0)
    os.close(write)
    last = b""
    while part := os.read(read, 1 << 16):
        last = (last + part)[-4:]
    os.close(read)
    _, status = os.waitpid(child, 0)
    number = int.from_bytes(last, "little")
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) == signal.SIGALRM:
            return f"slow {number}"  # so much work was asked for
        return f"{signal.Signals(os.WTERMSIG(status)).name} in call {number}"
    return f"exit {os.WEXITSTATUS(status)} in call {number}" if status else ""


def stands(entry: tuple[str, ast.FunctionDef, str | None], calls: int, seed: int) -> str:
    """Attack until `calls` are done, behind slow ones again; return '' or how it ended."""
    done, again = 0, 0
    while done < calls and again < 20:
        ended = attack(entry, calls - done, seed + 1000 * again)
        if not ended.startswith("slow"):
            return f"{ended} of seed {seed + 1000 * again}" if ended else ""
        done += int(ended.split()[1]) + 1
        again += 1
    return ""


def main() -> int:
    """Attack all entries, or those named."""
    calls, seed, names = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:]
    every_entry = list(entries())
    for module in {module for module, _, _ in every_entry}:
        import_module(module)
    bad = 0
    for entry in every_entry:
        if names and name_of(entry) not in names:
            continue
        ended = stands(entry, calls, seed)
        bad += bool(ended)
        print(f"{name_of(entry)}: {ended or 'stands'}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
