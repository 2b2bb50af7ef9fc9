"""Order all strides of a problem: in groups that workers share, with the same result for any number of them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.tuple_problem import Int64Array, Piece, TupleProblem
from traces.base.errors import InputError
from traces.base.journal import Journal
from traces.base.progress import Progress
from traces.base.workers import Workers, go_on

GROUP_TUPLES = 16384


def groups(problem: TupleProblem, first: int = 0) -> list[tuple[int, int]]:
    """Cut the strides from `first` on into groups of about GROUP_TUPLES tuples."""
    last, cuts = len(problem.bounds) - 1, [first]
    while cuts[-1] < last:
        stop = int(np.searchsorted(problem.bounds, problem.bounds[cuts[-1]] + GROUP_TUPLES, side="right")) - 1
        cuts.append(min(max(stop, cuts[-1] + 1), last))
    return list(pairwise(cuts))


def order_piece(piece: Piece, method: str, seed: int, parameters: Any) -> npt.NDArray[np.unsignedinteger]:
    """Return uint[n], slot -> tuple of a piece's own strides, counted from their first."""
    problem = piece.problem
    order = np.arange(problem.size, dtype=np.int64)
    TUPLE_ORDERS[method].item.order(
        problem, order, piece.first, piece.last, seed, parameters, lambda done, total, text: go_on()
    )
    start, stop = (int(problem.bounds[k]) for k in (piece.first, piece.last))
    if wrong := order_error(order[start:stop], problem.bounds, (piece.first, piece.last)):
        at = problem.before.strides + piece.first
        raise InputError(
            f"tuple order {method!r}: what it returns for strides {at} to {at + piece.last - piece.first - 1} {wrong}"
        )
    return (order[start:stop] - start).astype(np.min_scalar_type(max(stop - start - 1, 0)))


def order_all(
    problem: TupleProblem,
    method: str,
    *,
    seed: int = 0,
    parameters: Any = None,
    workers: int | Workers = 1,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Int64Array:
    """Return int64[N] new slot -> old slot. `checkpoint`: a journal of finished groups, which are not done again."""
    todo, bounds = groups(problem), problem.bounds
    entry = TUPLE_ORDERS[method]
    journal = Journal(Path(checkpoint), _digest(problem, method, seed, parameters)) if checkpoint else None
    finished = {} if journal is None else _finished_groups(journal, bounds, todo)
    order, done = np.empty(problem.size, np.int64), sum(map(len, finished.values()))  # every slot is in a stride
    for k, part in finished.items():
        order[bounds[todo[k][0]] : bounds[todo[k][1]]] = part
    open_groups = [k for k in range(len(todo)) if k not in finished]
    calls = ((k, (problem.piece(*todo[k]), entry.name, seed, parameters)) for k in open_groups)
    try:
        with Workers.of(workers) as team:
            for k, local in team.map(order_piece, calls, len(open_groups)):
                start, stop = (int(bounds[s]) for s in todo[k])
                np.add(local, start, out=order[start:stop], dtype=np.int64)
                done += len(local)
                if journal:
                    journal.put(group=k, order=base64.b64encode(local.astype("<u4").tobytes()).decode())
                if progress:
                    progress(done, problem.size, "tuples")
    finally:
        if journal:
            journal.close()
    return order


def _finished_groups(journal: Journal, bounds: Int64Array, todo: list[tuple[int, int]]) -> dict[int, Int64Array]:
    """Return the finished groups of a journal, those left out that are not orders of their strides."""
    finished: dict[int, Int64Array] = {}
    for line in journal.lines:
        k, packed = line.get("group"), line.get("order")
        if type(k) is int and 0 <= k < len(todo) and isinstance(packed, str):
            with contextlib.suppress(ValueError):
                part = np.frombuffer(base64.b64decode(packed), "<u4") + bounds[todo[k][0]]
                if not order_error(part, bounds, todo[k]):
                    finished[k] = part
    return finished


def order_error(part: np.ndarray, bounds: Int64Array, group: tuple[int, int]) -> str:
    """Return why an array is not an order of a group's slots that keeps every tuple in its stride; "" if it is."""
    first, last = group
    start, stop = int(bounds[first]), int(bounds[last])
    if part.dtype != np.int64 or part.shape != (stop - start,):
        return f"holds {part.dtype} of shape {part.shape}, int64 of {stop - start} is wanted"
    if not len(part):
        return ""
    if part.min() < start or part.max() >= stop or np.bincount(part - start, minlength=len(part)).max() > 1:
        return f"is not a permutation of slots {start} to {stop - 1}"
    stride = np.repeat(np.arange(last - first), np.diff(bounds[first : last + 1]))
    return "moves a tuple out of its stride" if (stride[part - start] != stride).any() else ""


def _digest(problem: TupleProblem, method: str, seed: int, parameters: Any) -> str:
    seen = hashlib.sha256(repr((method, seed, parameters, GROUP_TUPLES)).encode())
    if origin := TUPLE_ORDERS[method].origin:  # another author's: what has changed since orders again
        seen.update(repr(origin).encode())
    for f in problem.fields:
        seen.update(np.ascontiguousarray(f.bits).data)
        seen.update(repr((f.name, f.element_bits)).encode())
    for part in (problem.bounds, problem.rows):
        seen.update(np.ascontiguousarray(part).data)
    names = ("encoder", "block_bytes", "objective", "metric", "bus_bytes", "energy_pj")
    seen.update(repr([getattr(problem, name) for name in names]).encode())
    return seen.hexdigest()
