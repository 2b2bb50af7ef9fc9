"""Compressed columns: values, row ids and column pointers."""

from traces.layout.kind import LAYOUTS, LayoutKind


class Csc(LayoutKind):
    runs_of = "source"
    ids = ("target",)
    pointers = True


LAYOUTS.register("csc", summary="values, row ids, column pointers")(Csc())
