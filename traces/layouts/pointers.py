"""Row pointers and row names: the structure of layouts that are stored by rows or columns."""

from __future__ import annotations

import numpy as np

from traces.layouts.kind import Stored
from traces.layouts.space import Loads, Space


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
    start = np.zeros(n_rows + 1, np.int64)
    start[row] = stored.slot[first]
    start[-1] = stored.slot[-1] + 1
    filled = np.zeros(n_rows, bool)
    filled[row] = True
    # An empty row starts where the next one does; going backwards, starts never grow.
    start[:-1][~filled] = start[-1]
    start = np.minimum.accumulate(start[::-1])[::-1]
    width = 4 if int(start[-1]) < 2**32 else 8
    offset = space.add(f"{what}_pointers", start.astype(f"<u{width}").view(np.uint8))
    # Pointer r + 1 is loaded when row r begins; an empty row costs its pointer before the next row's.
    step_of_row = np.full(n_rows, len(stored.steps.source), np.int64)
    step_of_row[row] = first
    step_of_row = np.minimum.accumulate(step_of_row[::-1])[::-1]
    loads = Loads.of(np.r_[0, step_of_row], offset + width * np.arange(n_rows + 1), width, "row_pointers")
    return loads if named is None else Loads.merge(named, loads)
