"""Compressed rows: values, column ids and row pointers."""

from traces.layout.kind import LAYOUTS, LayoutKind


class Csr(LayoutKind):
    runs_of = "target"
    ids = ("source",)
    pointers = True


LAYOUTS.register("csr", summary="values, column ids, row pointers")(Csr())
