"""Models that count accesses per tensor (ZigZag, Stream, Timeloop, AccelForge) together with the tensor's bytes.

A count says how many accesses of so many bits moved a tensor, not in which order. Where the whole tensor moved a known
number of times, the set bits that went over the wires are known exactly; toggles and row misses depend on an order.
`read_counts` takes a table of counts and assumes one: each tensor is walked from its first byte to its last, again and
again, its accesses spread evenly over the layer.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traces.accelerators.scalesim import TENSORS, TensorTraffic
from traces.base.errors import InputError
from traces.base.memory import claim, read_within

_SAME = {"i": "ifmap", "w": "filter", "o": "ofmap", "inputs": "ifmap", "weights": "filter", "outputs": "ofmap"}
_MOST_WALKED = 1 << 30  # bytes
_BYTES_A_WORD = 41  # of memory: cycle, access, word, two on the way, and the byte


@dataclass(frozen=True)
class CountedTraffic:
    """accesses x access_bits of a tensor of tensor_bytes bytes with ones_per_pass set bits.

    passes: how often the whole tensor moved; None where neither the loops of the tool nor the count tell.
    """

    accesses: int
    access_bits: int
    tensor_bytes: int
    ones_per_pass: int
    passes: int | None

    @property
    def moved_bytes(self) -> int:
        """Bytes moved, accesses that were not full included."""
        return self.accesses * self.access_bits // 8

    @property
    def rounding_bytes(self) -> int | None:
        """Bytes moved beyond whole passes: tiles that do not fill their last access."""
        return None if self.passes is None else self.moved_bytes - self.passes * self.tensor_bytes

    @property
    def ones(self) -> int | None:
        """Set bits over all passes, None where those are not known."""
        return None if self.passes is None else self.passes * self.ones_per_pass


def count_tensor(tensor: np.ndarray, accesses: int, access_bits: int, *, passes: int | None = None) -> CountedTraffic:
    """Return the traffic of so many accesses to a tensor, whose bytes are those in memory order.

    passes: how often the whole tensor moves by the tool's loops; without it, a count that is a whole number of tensors
    is taken for that many passes. Tools round up per tile, so give it where you have it.
    Raises InputError for an empty tensor, accesses that are no whole bytes, or fewer bytes than the passes need.
    """
    data = np.ascontiguousarray(tensor).view(np.uint8).reshape(-1)
    if not len(data):
        raise InputError("the tensor is empty")
    if accesses < 0 or access_bits < 8 or access_bits % 8:
        raise InputError(f"{accesses} accesses of {access_bits} bits: give a count and a whole number of bytes")
    moved = int(accesses) * int(access_bits) // 8
    if passes is None:
        passes = None if moved % len(data) else moved // len(data)
    elif passes < 0 or passes * len(data) > moved:
        raise InputError(f"{passes} passes of {len(data)} bytes are more than the {moved} bytes that were counted")
    return CountedTraffic(int(accesses), int(access_bits), len(data), int(np.unpackbits(data).sum()), passes)


def read_counts(path: str | Path, tensors: Mapping[str, np.ndarray]) -> list[tuple[TensorTraffic, CountedTraffic]]:
    """Return the traffic of a table of counts, walked linearly, with what is exact of each.

    path: CSV with a header and the columns layer (from 0), tensor (ifmap, filter, ofmap; also I, W, O), dram_reads,
    dram_writes (accesses), access_bits, and where known passes and layer_cycles (clocks of the layer, over which the
    accesses are spread; without it they are offered at once). A line with reads and writes makes two. tensors: as for
    `read_run`. Whole passes move the tensor whole; without passes the walk covers the bytes counted.
    Raises InputError naming file and line.
    """
    walked = []
    try:
        rows = list(csv.DictReader(io.StringIO(read_within(Path(path), 100).decode("utf-8"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    columns = {"layer", "tensor", "dram_reads", "dram_writes", "access_bits"}
    if not rows or not columns <= set(rows[0]):
        raise InputError(f"{path}: a table of counts has a header with {', '.join(sorted(columns))}, and lines")
    for line, row in enumerate(rows, 2):
        where = f"{path}:{line}"
        layer, reads, writes, bits = (
            _whole(row, name, where) for name in ("layer", "dram_reads", "dram_writes", "access_bits")
        )
        name = str(row["tensor"]).strip().lower()
        tensor = _SAME.get(name, name)
        if tensor not in TENSORS:
            raise InputError(f"{where}: tensor {row['tensor']!r} is none of {', '.join(TENSORS)}")
        if f"layer{layer}_{tensor}" not in tensors:
            raise InputError(f"{where}: the tensors lack 'layer{layer}_{tensor}'")
        data = np.ascontiguousarray(tensors[f"layer{layer}_{tensor}"]).view(np.uint8).reshape(-1)
        passes, cycles = (
            _whole(row, name, where) if (row.get(name) or "").strip() else None for name in ("passes", "layer_cycles")
        )
        for accesses, is_write in ((reads, False), (writes, True)):
            if not accesses:
                continue
            try:
                counted = count_tensor(data, accesses, bits, passes=passes if not (reads and writes) else None)
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            walked.append((_walk(layer, tensor, is_write, data, counted, cycles or 0, where), counted))
    return walked


def _walk(
    layer: int, tensor: str, is_write: bool, data: np.ndarray, counted: CountedTraffic, cycles: int, where: str
) -> TensorTraffic:
    n = counted.moved_bytes if counted.passes is None else counted.passes * len(data)
    if n > _MOST_WALKED:
        raise InputError(f"{where}: a walk of {n} bytes, more than {_MOST_WALKED}: count layers apart")
    claim(_BYTES_A_WORD * n, where, "the walk")
    word = np.arange(n, dtype=np.int64) % len(data)
    access = np.arange(n, dtype=np.int64) // (counted.access_bits // 8)
    cycle = access * cycles // max(1, int(access[-1]) + 1 if n else 1)
    return TensorTraffic(layer, tensor, is_write, len(data), cycle, access, word, data[word])


def _whole(row: Mapping[str, str], name: str, where: str) -> int:
    text = (row.get(name) or "").strip()
    try:
        value = float(text)
        if value != int(value) or not 0 <= value < 2**53:
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {name} is {text!r}: a whole number from 0 is needed") from None
    return int(value)
