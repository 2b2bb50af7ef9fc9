"""Order all strides of a problem: in groups that worker processes share, with the same result for any number of them.

Groups are cut by the number of tuples alone. Each starts from the tuple that storage order puts before it, which only
the first stride of a group can tell from a strictly sequential run.
"""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from reorder.cdr.base import TUPLE_ORDERS
from reorder.cdr.tuple_problem import Int64Array, TupleProblem
from traces.base.archive import npz_names, read_npz
from traces.base.children import end_with_parent, safe_children
from traces.base.errors import DamageWarning, InputError
from traces.base.files import replace_file, set_aside
from traces.base.progress import Progress

GROUP_TUPLES = 16384
_SHARE = 20  # of the time that a checkpoint may take


def groups(problem: TupleProblem) -> list[tuple[int, int]]:
    """Cut the strides into groups of about GROUP_TUPLES tuples."""
    last, cuts = len(problem.bounds) - 1, [0]
    while cuts[-1] < last:
        stop = int(np.searchsorted(problem.bounds, problem.bounds[cuts[-1]] + GROUP_TUPLES, side="right")) - 1
        cuts.append(min(max(stop, cuts[-1] + 1), last))
    return list(pairwise(cuts))


class _Runner:
    """Orders one group after another; what depends on the whole problem is made once."""

    def __init__(self, problem: TupleProblem, method: str, seed: int, parameters: Any) -> None:
        self.problem, self.seed, self.parameters = problem, seed, parameters
        self.member = TUPLE_ORDERS[method].item
        self.given = np.arange(problem.size, dtype=np.int64)

    def __call__(self, group: tuple[int, int]) -> Int64Array:
        start, stop = self.problem.bounds[group[0]], self.problem.bounds[group[1]]
        self.member.order(self.problem, self.given, *group, self.seed, self.parameters, lambda done, total, text: None)
        found = self.given[start:stop].copy()
        self.given[start:stop] = np.arange(start, stop)  # the next group meets the order given before it
        return found


_runner: _Runner | None = None


def _receive(problem: TupleProblem, method: str, seed: int, parameters: Any) -> None:
    global _runner
    end_with_parent()
    _runner = _Runner(problem, method, seed, parameters)


def _work(group: tuple[int, int]) -> Int64Array:
    assert _runner is not None
    return _runner(group)


def order_all(
    problem: TupleProblem,
    method: str,
    *,
    seed: int = 0,
    parameters: Any = None,
    workers: int = 1,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Int64Array:
    """Return int64[N] new slot -> old slot. `checkpoint`: finished groups are kept in that file and not done again."""
    if workers < 1:
        raise InputError(f"workers is {workers}: at least one process does the work")
    todo = groups(problem)
    digest = _digest(problem, method, seed, parameters) if checkpoint else ""
    store = _Checkpoint(Path(checkpoint), digest, problem.bounds, todo) if checkpoint else None
    order, done = np.arange(problem.size, dtype=np.int64), 0
    entry = TUPLE_ORDERS[method]
    results: Iterator[tuple[int, Int64Array]]
    open_groups = []
    for k, (first, last) in enumerate(todo):
        kept = store.get(k) if store else None
        if kept is None:
            open_groups.append(k)
        else:
            order[problem.bounds[first] : problem.bounds[last]] = kept
            done += len(kept)
    made_from = (problem, entry.name, seed, parameters)
    if workers > 1 and len(open_groups) > 1:
        results = _pooled(made_from, todo, open_groups, workers)
    else:
        results = _inline(_Runner(*made_from), todo, open_groups)
    try:
        for k, part in results:
            first, last = todo[k]
            if wrong := _wrong(part, problem.bounds, todo[k]):
                raise InputError(
                    f"tuple order {entry.name!r}: what it returns for strides {first} to {last - 1} {wrong}"
                )
            order[problem.bounds[first] : problem.bounds[last]] = part
            done += len(part)
            if store:
                store.put(k, part)
            if progress:
                progress(done, problem.size, "tuples")
    finally:
        if store:
            store.write()
    return order


def _inline(run: _Runner, todo: list[tuple[int, int]], open_groups: list[int]) -> Iterator[tuple[int, Int64Array]]:
    for k in open_groups:
        yield k, run(todo[k])


def _pooled(
    made_from: tuple[TupleProblem, str, int, Any], todo: list[tuple[int, int]], open_groups: list[int], workers: int
) -> Iterator[tuple[int, Int64Array]]:
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(
        min(workers, len(open_groups)), get_context("spawn"), initializer=_receive, initargs=made_from
    )
    try:
        with safe_children():
            futures = {pool.submit(_work, todo[k]): k for k in open_groups}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _digest(problem: TupleProblem, method: str, seed: int, parameters: Any) -> str:
    seen = hashlib.sha256(repr((method, seed, parameters, GROUP_TUPLES)).encode())
    for f in problem.fields:
        seen.update(f.bits.tobytes() + repr((f.name, f.element_bits)).encode())
    for part in (problem.bounds, problem.rows):
        seen.update(np.ascontiguousarray(part).tobytes())
    names = ("encoder", "block_bytes", "objective", "metric", "padded", "bus_bytes", "energy_pj")
    seen.update(repr([getattr(problem, name) for name in names]).encode())
    return seen.hexdigest()


class _Checkpoint:
    """An npz with the finished groups; written whole or not at all; one of another problem is ignored.

    It is written again once the work since then took _SHARE times as long as writing it, and at the end: it costs a
    twentieth of the work at most, however many groups there are, and a killed run loses what it did since.

    A damaged one is set aside and the work begins afresh, with a warning.
    """

    def __init__(self, path: Path, digest: str, bounds: Int64Array, todo: list[tuple[int, int]]) -> None:
        self.path, self.digest = path, digest
        self.parts: dict[str, Int64Array] = {}
        self.unwritten, self.wrote_at, self.took = 0, 0.0, 0.0
        if not path.exists():
            return
        if not path.is_file():
            raise InputError(f"{path}: not a file: a checkpoint of tuple orders cannot be kept there")
        try:
            if "digest" not in npz_names(path):
                raise _Foreign
            found = read_npz(path)
            if _text(found.pop("digest")) == digest:
                self.parts = _checked(found, bounds, todo)
        except _Foreign:
            raise InputError(
                f"{path}: not a checkpoint of tuple orders but another npz file; name another, or delete it"
            ) from None
        except InputError as error:
            other = set_aside(path)
            warnings.warn(
                f"{error}; the checkpoint {f'is kept as {other} and' if other else 'is dropped and'} its groups are "
                "ordered again",
                DamageWarning,
                stacklevel=2,
            )

    def get(self, k: int) -> Int64Array | None:
        return self.parts.get(f"group_{k}")

    def put(self, k: int, part: Int64Array) -> None:
        self.parts[f"group_{k}"] = part
        self.unwritten += 1
        if time.monotonic() - self.wrote_at >= _SHARE * self.took:
            self.write()

    def write(self) -> None:
        """Write what was finished since the last time, if anything."""
        if not self.unwritten:
            return
        began = time.monotonic()
        memory = io.BytesIO()
        np.savez(memory, digest=np.array(self.digest), **self.parts)  # type: ignore[arg-type]
        try:
            replace_file(self.path, memory.getbuffer())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        self.unwritten, self.wrote_at = 0, time.monotonic()
        self.took = self.wrote_at - began


class _Foreign(Exception):
    """An npz of something else."""


def _text(array: np.ndarray) -> str:
    return str(array) if array.dtype.kind == "U" and array.ndim == 0 else ""


def _checked(parts: dict[str, np.ndarray], bounds: Int64Array, todo: list[tuple[int, int]]) -> dict[str, Int64Array]:
    """Return the groups of a checkpoint; InputError where one is no order of its own strides."""
    for name, part in parts.items():
        number = name.removeprefix("group_")
        if not (number.isascii() and number.isdecimal() and name == f"group_{int(number[:12])}"):
            raise InputError(f"checkpoint: no group is called {name!r}: damaged")
        if int(number) >= len(todo):
            raise InputError(f"checkpoint: {name!r} is beyond the {len(todo)} groups of this matrix: damaged")
        if wrong := _wrong(part, bounds, todo[int(number)]):
            raise InputError(f"checkpoint: {name!r} {wrong}: damaged")
    return parts


def _wrong(part: np.ndarray, bounds: Int64Array, group: tuple[int, int]) -> str:
    """Say why an array is no order of a group's slots that keeps every tuple in its stride, or nothing."""
    first, last = group
    start, stop = int(bounds[first]), int(bounds[last])
    if part.dtype != np.int64 or part.shape != (stop - start,):
        return f"holds {part.dtype} of shape {part.shape}, int64 of {stop - start} is wanted"
    if not len(part):
        return ""
    if part.min() < start or part.max() >= stop or np.bincount(part - start, minlength=len(part)).max() > 1:
        return f"is no permutation of slots {start} to {stop - 1}"
    stride = np.repeat(np.arange(last - first), np.diff(bounds[first : last + 1]))
    return "moves a tuple out of its stride" if (stride[part - start] != stride).any() else ""
