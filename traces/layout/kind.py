"""What a layout declares, and the registry of layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from traces.base.registry import Registry
from traces.formats import pack
from traces.networks.network import Network

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Element:
    """An array that is read at every step: where it starts (image offset), bits of one element, stream name.

    by_weight: its elements are found by the stored weight of a step, which several steps may share, not by the step.
    """

    offset: int
    bits: int
    stream: str
    by_weight: bool = False


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads of structure (pointers, row names) before a step, steps ascending: image offset, bytes, stream name."""

    step: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.uint8]
    stream: npt.NDArray[np.str_]

    @classmethod
    def of(cls, step: npt.NDArray[np.int64], offset: npt.NDArray[np.int64], size: npt.ArrayLike, stream: str) -> Loads:
        sizes = np.broadcast_to(np.asarray(size, np.uint8), step.shape).copy()
        return cls(step, offset, sizes, np.full(step.shape, stream))

    @classmethod
    def none(cls) -> Loads:
        return cls.of(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, "row_pointers")

    @classmethod
    def merge(cls, first: Loads, second: Loads) -> Loads:
        """Return both by step; at one step those of `first` come first."""
        by_step = np.argsort(np.concatenate((first.step, second.step)), kind="stable")
        columns = ((getattr(each, name) for each in (first, second)) for name in ("step", "offset", "size", "stream"))
        return cls(*(np.concatenate(tuple(column))[by_step] for column in columns))


class Space:
    """Arrays one after another, each from an aligned base.

    base: the first aligned address; offsets (of the memory image) count from it. parts: (name, offset, bytes) of each
    array. end: bytes so far.
    """

    def __init__(self, base_address: int, alignment: int) -> None:
        self.base = -(-base_address // alignment) * alignment
        self.alignment = alignment
        self.parts: list[tuple[str, int, Bytes]] = []
        self.end = 0

    def add(self, name: str, data: Bytes) -> int:
        offset = -(-self.end // self.alignment) * self.alignment
        self.parts.append((name, offset, data))
        self.end = offset + len(data)
        return offset

    def image(self) -> Bytes:
        """Return uint8[end], the memory with all arrays in place, read-only."""
        image = np.zeros(self.end, np.uint8)
        for _, offset, data in self.parts:
            image[offset : offset + len(data)] = data
        image.setflags(write=False)
        return image


Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Steps:
    """K steps: the connections in the order of work, with the padding a layout adds.

    source, target: int64[K] neurons. layer: int64[K] or None. origin: int64[K], the position in the order each step
    comes from (padding repeats the one before). is_padding: bool[K].
    major: the neurons whose runs are the rows: source or target. run_start: int64[rows + 1], first step of each row.
    """

    source: Int64Array
    target: Int64Array
    layer: Int64Array | None
    origin: Int64Array
    is_padding: npt.NDArray[np.bool_]
    major: Int64Array
    run_start: Int64Array

    @classmethod
    def of(cls, network: Network, edges: Int64Array, by: str = "target", repeats: Int64Array | None = None) -> Steps:
        """Return the steps of an order of work. by: 'target' or 'source', whose runs are the rows. repeats: int64[W]
        steps per connection, those behind the first being padding; None is one each."""
        origin = np.arange(len(edges)) if repeats is None else np.repeat(np.arange(len(edges)), repeats)
        is_padding = np.zeros(len(edges), bool) if repeats is None else np.r_[False, origin[1:] == origin[:-1]]
        at = edges[origin]
        source, target = network.sources[at], network.targets[at]
        major = target if by == "target" else source
        layer = network.layer[at] if network.layer is not None else None
        return cls(source, target, layer, origin, is_padding, major, run_starts(major))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values per connection of the order as values per step; padding gets zero."""
        if len(self.origin) == len(values):
            return values
        spread = values[self.origin]
        spread[self.is_padding] = 0
        return spread

    def aligned_slots(self, unit: int) -> Int64Array:
        """Return int64[K]: the element index of each step where every row starts at a multiple of `unit` elements."""
        lengths = np.diff(self.run_start)
        start = np.r_[0, np.cumsum(-(-lengths // unit) * unit)][:-1]
        return np.asarray(np.arange(len(self.source)) + np.repeat(start - self.run_start[:-1], lengths))


def run_starts(neurons: Int64Array) -> Int64Array:
    return np.asarray(np.r_[np.flatnonzero(np.r_[True, np.diff(neurons) != 0]), len(neurons)])


End = Literal["source", "target"]

_ID_ARRAYS = {"source": "column_ids", "target": "row_ids"}


@dataclass(frozen=True, eq=False)
class Stored:
    """What a layout is given to place: the steps and what is stored for each.

    ids: int64[K] per end ('source', 'target'), as stored. id_bytes: bytes of one id. bits: uint[K] weights in the value
    format. value_bits: bits of one weight. value_format: its name. slot: int64[K] element index of each step.
    weight_slot: int64[K] index of each step's weight where steps share stored weights, or None; then stored_bits holds
    each stored weight once.
    """

    steps: Steps
    ids: dict[str, Int64Array]
    id_bytes: int
    bits: npt.NDArray[np.unsignedinteger]
    value_bits: int
    value_format: str
    slot: Int64Array
    weight_slot: Int64Array | None = None
    stored_bits: npt.NDArray[np.unsignedinteger] | None = None

    def in_slots(self, values: np.ndarray) -> np.ndarray:
        """Return the values at their slots; slots between rows stay zero."""
        n = int(self.slot[-1]) + 1
        if len(self.slot) == n:
            return values
        placed = np.zeros(n, values.dtype)
        placed[self.slot] = values
        return placed

    def values_array(self, space: Space) -> Element:
        """Add the array of packed weights: one for each step's slot or, where steps share them, each stored once."""
        values = self.in_slots(self.bits) if self.stored_bits is None else self.stored_bits
        offset = space.add("values", pack(values, self.value_format))
        return Element(offset, self.value_bits, "values", by_weight=self.stored_bits is not None)


class LayoutKind:
    """One layout. Subclasses declare:

    runs_of: 'target' (rows), 'source' (columns), whose connections must be one run of the order; None holds any order.
    ids: the ends whose id is stored with each connection. ids_per_layer: whether ids count from the lowest neuron of
    the connection's layer where the network is layered, unless the user says otherwise.
    pointers: where rows start is stored.
    """

    runs_of: ClassVar[End | None] = None
    ids: ClassVar[tuple[End, ...]] = ("target", "source")
    ids_per_layer: ClassVar[bool] = True
    pointers: ClassVar[bool] = False

    @property
    def has_rows(self) -> bool:
        return self.runs_of is not None

    @property
    def run_name(self) -> str:
        return "column" if self.runs_of == "source" else "row"

    def holds(self, network: Network, edges: Int64Array) -> bool:
        """Return whether the layout can store the connections in the order `edges` (int64[W])."""
        if self.runs_of is None:
            return True
        ends = (network.sources if self.runs_of == "source" else network.targets)[edges]
        rows = ends[run_starts(ends)[:-1]]
        return len(np.unique(rows)) == len(rows)

    def steps(self, network: Network, edges: Int64Array) -> Steps:
        """Return the steps of the walk: one per connection, unless the layout pads."""
        return Steps.of(network, edges, self.runs_of or "target")

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        elements = []
        for end in sorted(self.ids):
            packed = stored.in_slots(stored.ids[end].astype(f"<u{stored.id_bytes}"))
            elements.append(Element(space.add(_ID_ARRAYS[end], packed.view(np.uint8)), 8 * stored.id_bytes, "ids"))
        elements.append(stored.values_array(space))
        return elements, self.structure(stored, space)

    def structure(self, stored: Stored, space: Space) -> Loads:
        """Add the arrays that say where rows start, and return their loads: by default none but `pointers`."""
        return row_pointers(stored, space, self.run_name) if self.pointers else Loads.none()


LAYOUTS: Registry[LayoutKind] = Registry("layout", "edgewatt.layouts", folder="traces.layout", instances_of=LayoutKind)


def named_rows(stored: Stored, space: Space, name: str) -> Loads:
    """Store the neuron of each row in `name`; each is loaded once, before the row."""
    first = stored.steps.run_start[:-1]
    rows = stored.steps.major[first]
    width = max(stored.id_bytes, 2 if int(rows.max()) < 2**16 else 4)
    offset = space.add(name, rows.astype(f"<u{width}").view(np.uint8))
    return Loads.of(first, offset + width * np.arange(len(rows)), width, "row_pointers")


def row_pointers(stored: Stored, space: Space, what: str) -> Loads:
    """Store where each row starts and return the loads this costs. what: 'row' or 'column'.

    Rows whose neurons ascend are stored as plain CSR: one pointer per row of the range, empty rows included, each
    loaded once (the end of a row is the start of the next one). In any other row order the rows are named: an id and
    a pointer per row that exists (doubly compressed, DCSR).
    """
    first = stored.steps.run_start[:-1]
    rows = stored.steps.major[first]
    named = None
    if (np.diff(rows) < 0).any():
        named = named_rows(stored, space, f"{what}_index")
        row = np.arange(len(rows))
    else:
        row = rows - rows[0]
    n_rows = int(row[-1]) + 1
    at = np.searchsorted(row, np.arange(n_rows))  # an empty row starts where the next one does
    start = np.append(stored.slot[first[at]], stored.slot[-1] + 1)
    width = 4 if int(start[-1]) < 2**32 else 8
    offset = space.add(f"{what}_pointers", start.astype(f"<u{width}").view(np.uint8))
    # Pointer r + 1 is loaded when row r begins; an empty row costs its pointer before the next row's.
    loads = Loads.of(np.r_[0, first[at]], offset + width * np.arange(n_rows + 1), width, "row_pointers")
    return loads if named is None else Loads.merge(named, loads)
