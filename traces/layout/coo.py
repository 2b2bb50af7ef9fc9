"""Coordinates: values, row ids and column ids in three arrays."""

from traces.layout.kind import LAYOUTS, LayoutKind


class Coo(LayoutKind):
    ids = ("source", "target")
    same_bytes = True


LAYOUTS.register("coo", summary="values, row ids, column ids")(Coo())
