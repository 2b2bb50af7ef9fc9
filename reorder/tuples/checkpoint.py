"""Finished groups of strides in a file, so that a killed run continues; what is read is checked before it is used."""

from __future__ import annotations

import io
import time
import warnings
from pathlib import Path

import numpy as np

from reorder.tuples.tuple_problem import Int64Array
from traces.base.archive import npz_names, read_npz
from traces.base.errors import DamageWarning, InputError
from traces.base.files import replace_file, set_aside

_SHARE = 20  # of the time that a checkpoint may take


class Checkpoint:
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
            arrays = read_npz(path)
            if _text(arrays.pop("digest")) == digest:
                self.parts = _checked(arrays, bounds, todo)
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
        if wrong := what_is_wrong(part, bounds, todo[int(number)]):
            raise InputError(f"checkpoint: {name!r} {wrong}: damaged")
    return parts


def what_is_wrong(part: np.ndarray, bounds: Int64Array, group: tuple[int, int]) -> str:
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
