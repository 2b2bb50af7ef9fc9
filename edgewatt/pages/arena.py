"""The map of an arena: address over time, as a self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edgewatt.pages.html.page import Page, asset, text

Int64Array = npt.NDArray[np.int64]
NUMBER = ' class="number"'
LISTED = 12  # buffers at the peak that the sentence names


@dataclass(frozen=True)
class BankShown:
    """One memory of the map. height: highest end. size: its capacity, None where there is none."""

    name: str
    height: int
    size: int | None = None


@dataclass(frozen=True, eq=False)
class ArenaMap:
    """Placed buffers: int64[n] each, half-open lifetimes. bank: of each, an index into `banks`.

    steps: what happens at time 0, 1, 2, ... (operators), None where times have no names.
    """

    title: str
    names: Sequence[str]
    lower: Int64Array
    upper: Int64Array
    size: Int64Array
    offset: Int64Array
    bank: Int64Array
    banks: Sequence[BankShown]
    steps: Sequence[str] | None = None

    @cached_property
    def times(self) -> Int64Array:
        """The steps that are shown: of operators all, else every time at which a buffer begins or ends."""
        if self.steps is not None:
            return np.arange(len(self.steps))
        ends = np.unique(np.concatenate((self.lower, self.upper)))
        return ends[:-1] if len(ends) else np.zeros(1, np.int64)

    @cached_property
    def live(self) -> Int64Array:
        begin, end = np.argsort(self.lower), np.argsort(self.upper)
        came = np.concatenate(([0], np.cumsum(self.size[begin])))
        went = np.concatenate(([0], np.cumsum(self.size[end])))
        return (
            came[np.searchsorted(self.lower[begin], self.times, side="right")]
            - went[np.searchsorted(self.upper[end], self.times, side="right")]
        )

    @cached_property
    def at_peak(self) -> Int64Array:
        at = self.times[int(self.live.argmax())]
        there = np.flatnonzero((self.lower <= at) & (at < self.upper))
        return there[np.lexsort((self.offset[there], self.bank[there]))]

    def words(self) -> list[str]:
        k = int(self.live.argmax())
        at = self.times[k]
        runs = (
            f"while {self.steps[k]!r} runs (step {at}, of 0 to {len(self.steps) - 1})"
            if self.steps
            else f"at time {at}"
        )
        names = [f"{self.names[i]} ({self.size[i]:,} B)" for i in self.at_peak.tolist()]
        shown = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
        sentences = [f"Peak of {self.live[k]:,} B {runs}. Live then: {shown or 'nothing'}."]
        for bank in self.banks:
            room = "" if bank.size is None else f" of {bank.size:,} B"
            sentences.append(f"{bank.name}: {bank.height:,} B{room} used.")
        return sentences


def arena_page(shown: ArenaMap) -> str:
    columns = ("buffer", "bytes", "offset", "from", "to", *(("bank",) if len(shown.banks) > 1 else ()))
    rows = []
    for i in shown.at_peak.tolist():
        cells = [f"<td>{text(shown.names[i])}</td>"]
        numbers = (shown.size[i], shown.offset[i], shown.lower[i], shown.upper[i])
        cells += [f"<td{NUMBER}>{v:,}</td>" for v in numbers]
        cells += [f"<td>{text(shown.banks[shown.bank[i]].name)}</td>"] if len(shown.banks) > 1 else []
        rows.append(f"<tr>{''.join(cells)}</tr>")
    parts = (shown.lower, shown.upper, shown.offset, shown.size, shown.bank)
    data = {
        "times": shown.times.tolist(),
        "end": int(shown.upper.max(initial=int(shown.times[-1]) + 1)),
        "live": shown.live.tolist(),
        "peak": int(shown.live.argmax()),
        "steps": None if shown.steps is None else list(shown.steps),
        "banks": [{"name": b.name, "height": b.height, "size": b.size} for b in shown.banks],
        "buffers": [list(row) for row in zip(shown.names, *(p.tolist() for p in parts), strict=True)],
    }
    body = asset(__file__, "arena.html").format(
        words="".join(f"<p>{text(line)}</p>" for line in shown.words()),
        head="".join(f"<th{NUMBER if 0 < k < 5 else ''}>{name}</th>" for k, name in enumerate(columns)),
        rows="".join(rows),
    )
    style, script = asset(__file__, "arena.css"), asset(__file__, "arena.js")
    return Page(shown.title, body, style=style, data=data, script=script).html()
