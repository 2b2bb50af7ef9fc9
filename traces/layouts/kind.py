"""What a layout declares, and the registry of layouts.

A member is a `LayoutKind` registered under its name, one module of this folder each. Most members are declarations:
what must be one run of the order, which ids lie beside the weights, and the structure read at the start of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from traces.base.registry import Registry
from traces.layouts.space import Element, Loads, Space
from traces.layouts.steps import Int64Array, Steps, one_run_each
from traces.work.network import Network

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
        from traces.formats import pack

        shared = self.stored_bits is not None
        values = self.in_slots(self.bits) if self.stored_bits is None else self.stored_bits
        packed = np.asarray(pack(values, self.value_format), np.uint8)
        return Element(space.add("values", packed), self.value_bits, "values", by_weight=shared)


class LayoutKind:
    """One layout. Subclasses declare:

    runs_of: 'target' (rows), 'source' (columns), whose connections must be one run of the order; None holds any order.
    ids: the ends whose id is stored with each connection. ids_per_layer: whether ids count from the lowest neuron of
    the connection's layer where the network is layered, unless the user says otherwise.
    same_bytes: every order that it holds reads the same bytes of connections.
    """

    runs_of: ClassVar[End | None] = None
    ids: ClassVar[tuple[End, ...]] = ("target", "source")
    ids_per_layer: ClassVar[bool] = True
    same_bytes: ClassVar[bool] = False

    @property
    def has_rows(self) -> bool:
        """Whether connections are stored in rows (or columns) that can be aligned."""
        return self.runs_of is not None

    @property
    def run_name(self) -> str:
        """What a run is called in names and messages."""
        return "column" if self.runs_of == "source" else "row"

    def holds(self, network: Network, edges: Int64Array) -> bool:
        """Return whether the layout can store the connections in the order `edges` (int64[W])."""
        if self.runs_of is None:
            return True
        return one_run_each((network.sources if self.runs_of == "source" else network.targets)[edges])

    def steps(self, network: Network, edges: Int64Array) -> Steps:
        """Return the steps of the walk: one per connection, unless the layout pads."""
        return Steps.of(network, edges, self.runs_of or "target")

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        """Add the layout's arrays to the space, in the order they lie in memory.

        Returns the arrays read at each step, in the order they are read, and the loads before steps.
        """
        elements = []
        for end in sorted(self.ids):
            packed = stored.in_slots(stored.ids[end].astype(f"<u{stored.id_bytes}"))
            elements.append(Element(space.add(_ID_ARRAYS[end], packed.view(np.uint8)), 8 * stored.id_bytes, "ids"))
        elements.append(stored.values_array(space))
        return elements, self.structure(stored, space)

    def structure(self, stored: Stored, space: Space) -> Loads:
        """Add the arrays that say where rows start, and return their loads. The default has none."""
        return Loads.none()


LAYOUTS: Registry[LayoutKind] = Registry("layout", "edgewatt.layouts", folder="traces.layouts", instances_of=LayoutKind)
