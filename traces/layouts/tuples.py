"""Records of (source, target, weight), which hold any order."""

from __future__ import annotations

import numpy as np

from traces.layouts.kind import LAYOUTS, LayoutKind, Stored
from traces.layouts.space import Element, Loads, Space


class Tuples(LayoutKind):
    ids = ("source", "target")
    ids_per_layer = False
    same_bytes = True

    def bytes_per_connection(self, value_bits: int, id_bytes: int) -> float:
        return 2 * id_bytes + max(value_bits // 8, 1)  # a weight smaller than a byte takes one

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        """Little-endian, packed: source id, target id, weight bits."""
        width = stored.id_bytes
        fields = [stored.ids[end].astype(f"<u{width}").view(np.uint8).reshape(-1, width) for end in self.ids]
        value_bytes = max(stored.value_bits // 8, 1)
        fields.append(stored.bits.astype(f"<u{value_bytes}").view(np.uint8).reshape(-1, value_bytes))
        records = np.concatenate(fields, axis=1)
        return [Element(space.add("tuples", records.reshape(-1)), 8 * records.shape[1], "tuples")], Loads.none()


LAYOUTS.register("tuples", summary="(source, target, weight) records")(Tuples())
