"""Shards that are filled in any order and continued after a kill: the reordered matrices of a model, and all else.

A shard is written as NAME.safetensors.partial and gets its name when it is whole and on the disk. What it holds stands
in journal.jsonl, a line a group or shard with its checksum; a line that does not fit the file does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np

from traces.base.errors import InputError
from traces.base.files import sync_folder, whole_file
from traces.base.journal import Journal
from traces.readers.parts.weights import INDEX, RowMatrix, StoredTensor

JOURNAL = "journal.jsonl"
SENT = ("original_ones_values", "original_ones_ids", "ones_values", "ones_ids")
"""What is noted of a whole matrix."""
ABOUT = {"sparse_format": "csr per matrix", "note": "stored order matters"}
_COPIED = 1 << 24  # bytes at a time
_BITS = {8: "U8", 16: "U16", 32: "U32"}
_VALUES = {"fp32": "F32", "fp16": "F16", "bf16": "BF16"}


@dataclass(frozen=True)
class TensorSpec:
    kind: str
    shape: tuple[int, ...]
    n_bytes: int


def csr_specs(matrix: RowMatrix, id_bits: int) -> dict[str, TensorSpec]:
    count, rows = int(matrix.pointers[-1]), matrix.shape[0]
    word = np.dtype(matrix.word).itemsize
    return {
        f"{matrix.name}.data": TensorSpec(_VALUES[matrix.value_format], (count,), count * word),
        f"{matrix.name}.indices": TensorSpec(_BITS[id_bits], (count,), count * id_bits // 8),
        f"{matrix.name}.indptr": TensorSpec("I64", (rows + 1,), 8 * (rows + 1)),
        f"{matrix.name}.shape": TensorSpec("I64", (2,), 16),
    }


class Shard:
    """One shard to be written; `write` and `copy` put bytes into its tensors."""

    def __init__(self, path: Path, specs: Mapping[str, TensorSpec], about: Mapping[str, str] = ABOUT) -> None:
        self.path, self.partial = path, path.with_name(f"{path.name}.partial")
        self.tensors = dict(specs)
        self.starts: dict[str, int] = {}
        at, header = 0, {"__metadata__": dict(about)}
        for name, spec in self.tensors.items():
            header[name] = {"dtype": spec.kind, "shape": list(spec.shape), "data_offsets": [at, at + spec.n_bytes]}  # type: ignore[dict-item]
            self.starts[name], at = at, at + spec.n_bytes
        text = json.dumps(header, separators=(",", ":")).encode()
        self.header = len(text + b" " * (-len(text) % 8)).to_bytes(8, "little") + text + b" " * (-len(text) % 8)
        self.size = len(self.header) + at

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Keep the file open for writing: made at its full size, or as a killed run left it."""
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self.stream: IO[bytes] = os.fdopen(os.open(self.partial, flags, 0o666), "r+b")
        except OSError as error:
            raise InputError(f"{self.partial}: cannot be written ({error.strerror or error})") from error
        try:
            with self._named():
                self.stream.write(self.header)
                self.stream.truncate(self.size)
            yield
            self.flush()
        finally:
            with contextlib.suppress(OSError):  # the failed write raised already
                self.stream.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self.partial}: cannot be written ({error.strerror or error}); what is finished is kept, make room "
                "and run the same command again"
            ) from error

    def write(self, name: str, at: int, data: bytes | memoryview) -> None:
        """Put bytes into a tensor, `at` bytes from where it begins."""
        with self._named():
            self.stream.seek(len(self.header) + self.starts[name] + at)
            self.stream.write(data)

    def flush(self) -> None:
        """Hand what was written to the system, so that a killed process has not lost it."""
        with self._named():
            self.stream.flush()

    def read(self, name: str, at: int, count: int) -> bytes:
        with self._named():
            self.stream.seek(len(self.header) + self.starts[name] + at)
            return self.stream.read(count)

    def is_whole(self, checksum: int | None) -> bool:
        """Return whether the file has its name, its size and the checksum of all that was written to it."""
        try:
            with open(self.path, "rb") as stream:
                return stream.seek(0, 2) == self.size and _checksum(stream) == checksum
        except OSError:
            return False

    def copy(self, tensor: StoredTensor) -> None:
        for at in range(0, tensor.stop - tensor.start, _COPIED):
            self.write(tensor.name, at, tensor.read(at, min(_COPIED, tensor.stop - tensor.start - at)))

    def resumes(self) -> bool:
        """Return whether a killed run's file is there; one that got its name just before the kill gives it back."""
        with self._named():
            if not self.partial.exists() and self.path.is_file() and self.path.stat().st_size == self.size:
                os.replace(self.path, self.partial)
            return self.partial.is_file() and self.partial.stat().st_size == self.size

    def finish(self) -> int:
        """Give the file its name once its bytes are on the disk; return their checksum."""
        with self._named():
            with open(self.partial, "r+b") as stream:
                checksum = _checksum(stream)
                os.fsync(stream.fileno())
            os.replace(self.partial, self.path)
            sync_folder(self.path.parent)
        return checksum


def _checksum(stream: IO[bytes]) -> int:
    stream.seek(0)
    checksum = 0
    while part := stream.read(_COPIED):
        checksum = crc32(part, checksum)
    return checksum


class Finished:
    """What a journal says of shards.

    groups: matrix -> {first tuple of a group: checksum of its bytes}. matrices: matrix -> its ones, by names of SENT.
    shards: name of a shard that was whole -> checksum of its file.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.groups: dict[str, dict[int, int]] = {}
        self.matrices: dict[str, dict[str, int]] = {}
        self.shards: dict[str, int] = {}
        for line in journal.lines:
            self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        name = line.get("matrix")
        if "shard" in line:
            if type(line.get("crc")) is int:
                self.shards[str(line["shard"])] = line["crc"]
        elif isinstance(name, str) and isinstance(sent := line.get("sent"), dict):
            if sent.keys() == set(SENT) and all(type(ones) is int and 0 <= ones < 2**63 for ones in sent.values()):
                self.matrices[name] = sent
        elif isinstance(name, str) and type(line.get("start")) is type(line.get("crc")) is int:
            self.groups.setdefault(name, {})[line["start"]] = line["crc"]

    def put(self, **line: Any) -> None:
        self._take(line)
        self.journal.put(**line)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.groups.pop(name, None)
            self.matrices.pop(name, None)


def make_folder(target: Path, source: Path) -> None:
    """Make a folder for shards, with the config.json of the ones they are made from."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        if (config := source / "config.json").is_file():
            shutil.copyfile(config, target / config.name)
    except OSError as error:
        raise InputError(f"{target}: cannot be made ({error.strerror or error})") from error


def write_index(folder: Path, weight_map: Mapping[str, str], total: int, about: Mapping[str, Any]) -> None:
    content = {"metadata": {"total_size": total, **about}, "weight_map": dict(sorted(weight_map.items()))}
    with whole_file(folder / INDEX) as stream:
        stream.write((json.dumps(content, indent=2) + "\n").encode())
    sync_folder(folder)
