"""Compressed rows: values, column ids and row pointers."""

from traces.layouts.kind import LAYOUTS, LayoutKind, Loads, Space, Stored, row_pointers


class Csr(LayoutKind):
    runs_of = "target"
    ids = ("source",)

    def structure(self, stored: Stored, space: Space) -> Loads:
        return row_pointers(stored, space, self.run_name)


LAYOUTS.register("csr", summary="values, column ids, row pointers")(Csr())
