"""Layouts of separate arrays: coordinates (coo), compressed columns (csc) and compressed rows (csr)."""

from traces.layout.kind import LAYOUTS, LayoutKind


class Coo(LayoutKind):
    ids = ("source", "target")
    same_bytes = True


class Csc(LayoutKind):
    runs_of = "source"
    ids = ("target",)
    pointers = True


class Csr(LayoutKind):
    runs_of = "target"
    ids = ("source",)
    pointers = True


LAYOUTS.register("coo", summary="values, row ids, column ids")(Coo())
LAYOUTS.register("csc", summary="values, row ids, column pointers")(Csc())
LAYOUTS.register("csr", summary="values, column ids, row pointers")(Csr())
