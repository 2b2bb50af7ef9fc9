"""Compressed columns: values, row ids and column pointers."""

from traces.layouts.kind import LAYOUTS, LayoutKind, Loads, Space, Stored, row_pointers


class Csc(LayoutKind):
    runs_of = "source"
    ids = ("target",)

    def structure(self, stored: Stored, space: Space) -> Loads:
        return row_pointers(stored, space, self.run_name)


LAYOUTS.register("csc", summary="values, row ids, column pointers")(Csc())
