"""Records of (source, target, weight), which hold any order."""

from __future__ import annotations

import numpy as np

from traces.layout.kind import LAYOUTS, Element, LayoutKind, Loads, Space, Stored


class Tuples(LayoutKind):
    ids = ("source", "target")
    ids_per_layer = False
    same_bytes = True

    def store(self, stored: Stored, space: Space) -> tuple[list[Element], Loads]:
        """Little-endian, packed: source id, target id, weight bits."""
        value_bytes = max(stored.value_bits // 8, 1)
        fields = [*((end, stored.ids[end], stored.id_bytes) for end in self.ids), ("weight", stored.bits, value_bytes)]
        records = np.empty(len(stored.bits), [(name, f"<u{size}") for name, _, size in fields])
        for name, values, _ in fields:
            records[name] = values
        return [Element(space.add("tuples", records.view(np.uint8)), 8 * records.itemsize, "tuples")], Loads.none()


LAYOUTS.register("tuples", summary="(source, target, weight) records")(Tuples())
