"""Inversion flags that travel inside a burst (LPDDR6): which shares of its data to invert, what the wires carry then.

A flag covers a share of a burst's data, two bytes on four wires in LPDDR6. The encoders that invert decide for shares
instead of bytes; nothing else has wires of its own there.
"""

from __future__ import annotations

import numpy as np

from cython_ext.wires.in_burst import cheapest_shares, invert_far_shares
from hwmodel.bus import Bytes, WireCosts
from hwmodel.parts.burst_cells import BurstCells
from hwmodel.parts.part import Part, cached_on
from traces.base.errors import InputError

MOST_FLAGS = 16  # that dbi-opt decides together
FINEST_COST = 1 << 20  # costs as whole numbers, so that every exact method finds the same least


def burst_cells(part: Part) -> BurstCells | None:
    cells = part.interface.cells
    return BurstCells(cells, part.organisation, part.interface.dbi) if cells else None


def share_flags(part: Part, metadata: int = 0) -> ShareFlags | None:
    """Return how a part's bursts carry metadata and inversion flags, None where they carry data alone."""
    cells = cached_on(part, burst_cells)
    return None if cells is None else ShareFlags(cells, metadata)


class ShareFlags:
    """How the shares of a part's bursts are flagged. cells: of the part. metadata: what every burst carries."""

    def __init__(self, cells: BurstCells, metadata: int = 0) -> None:
        self.cells, self.metadata = cells, metadata
        self.source, self.given = cells.source, cells.given((metadata,))
        self.share_bits = 8 * cells.share_bytes

    @property
    def size(self) -> int:
        return self.cells.beats * self.cells.lanes

    @property
    def wires(self) -> int:
        """Wires of the data bus, those that fill up its last byte lane included."""
        return int(self.source.shape[1])

    def split(self, data: Bytes) -> Bytes:
        """Return whole bursts, uint8[n, burst_bytes]."""
        return np.ascontiguousarray(data).reshape(-1, self.cells.burst_bytes)

    def inverted(self, data: Bytes, flags: Bytes) -> tuple[Bytes, Bytes]:
        """Return (bytes as sent, flags beside each byte as `Coded` has them) of bursts whose shares are flagged."""
        each = np.repeat(flags, self.cells.share_bytes, axis=1)
        return (self.split(data) ^ (each * np.uint8(255))).reshape(-1), np.packbits(each, bitorder="little")

    def on_wires(self, data: Bytes, flags: Bytes | None) -> Bytes:
        """Return what the wires carry, lane by lane and beat by beat, of bursts as `inverted` returns them."""
        bursts = self.split(data)
        shares = np.zeros((len(bursts), self.cells.flags), np.uint8)
        if flags is not None:
            each = np.unpackbits(flags, bitorder="little", count=bursts.size).reshape(bursts.shape)
            shares = np.ascontiguousarray(each[:, :: self.cells.share_bytes])
        packed = self.cells.pack(bursts, shares, (self.metadata,), as_sent=True)
        sent: Bytes = (packed["D"] | packed["M"] | packed["I"]).reshape(-1)
        return sent

    def far(self, data: Bytes, level: Bytes) -> Bytes:
        """Flag shares that would flip more than half of the wires they begin on; level uint8[wires] is updated."""
        entries, start = self.entries()
        bursts = self.split(data)
        flags = np.zeros((len(bursts), self.cells.flags), np.uint8)
        invert_far_shares(bursts, flags, self.source, self.given, self.share_bits, start, entries, level)
        return flags

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return int32[m, 2] (beat, wire) at which bits of a share begin on a wire, and where each share's start."""
        share = np.where(self.source >= 0, self.source // self.share_bits, -1)
        before = np.vstack((np.full((1, self.wires), -2), share[:-1]))
        beat, wire = np.nonzero((share >= 0) & (share != before))
        order = np.argsort(share[beat, wire], kind="stable")
        counts = np.bincount(share[beat, wire], minlength=self.cells.flags)
        entries = np.stack((beat, wire), axis=1)[order].astype(np.int32)
        return entries, np.concatenate(([0], np.cumsum(counts))).astype(np.int32)


class LeastCost:
    """The flags of least cost of a burst, exactly: bucket elimination over the flags that meet on a wire."""

    def __init__(self, shares: ShareFlags, costs: WireCosts) -> None:
        n = shares.cells.flags
        if n > MOST_FLAGS:
            raise InputError(f"dbi-opt decides at most {MOST_FLAGS} inversion flags of a burst together, not {n}")
        self.shares = shares
        self.one, self.zero, self.edge = whole_costs(costs)
        self.pair, pairs = self._pairs()
        self._eliminate(n, pairs)

    def flags(self, data: Bytes, level: Bytes) -> Bytes:
        """Return uint8[n, flags] of bursts sent from level uint8[wires], which is updated."""
        s = self.shares
        bursts = s.split(data)
        flags = np.zeros((len(bursts), s.cells.flags), np.uint8)
        cheapest_shares(
            bursts, flags, s.source, s.given, s.share_bits, level, self.one, self.zero, self.edge, self.pair,
            self.step, self.scope, self.term, self.row, np.zeros(s.cells.flags + self.n_pairs, np.int64),
            np.zeros(self.rows, np.int64), np.zeros(self.rows, np.uint8),
        )  # fmt: skip
        return flags

    def _pairs(self) -> tuple[np.ndarray, dict[tuple[int, int], int]]:
        s = self.shares
        flag = np.where(s.source >= 0, s.source // s.share_bits, np.where(s.source == -1, -1, -2 - s.source))
        pair, pairs = np.full(flag.shape, -1, np.int32), dict[tuple[int, int], int]()
        for beat in range(1, len(flag)):
            for wire, (a, b) in enumerate(zip(flag[beat - 1].tolist(), flag[beat].tolist(), strict=True)):
                if a != b and min(a, b) >= 0:
                    pair[beat, wire] = pairs.setdefault((min(a, b), max(a, b)), len(pairs))
        return pair, pairs

    def _eliminate(self, n: int, pairs: dict[tuple[int, int], int]) -> None:
        """Plan which flag goes when: always one that meets the fewest others."""
        near: dict[int, set[int]] = {c: set() for c in range(n)}
        for a, b in pairs:
            near[a].add(b)
            near[b].add(a)
        step, scope, term, row = [], list[int](), list[tuple[int, int, int]](), list[int]()
        tables: list[tuple[int, list[int]]] = []  # where an earlier step's starts, and its flags
        used, self.rows, self.n_pairs = set[int](), 0, len(pairs)
        while near:
            flag = min(near, key=lambda c: (len(near[c]), c))
            others = sorted(near.pop(flag))
            first = len(term)
            for at, other in enumerate(others):
                key = (min(flag, other), max(flag, other))
                if key in pairs:
                    term.append((0, pairs[key], at))
            for number, (start, flags) in enumerate(tables):
                if number not in used and flag in flags:
                    used.add(number)
                    term.append((1, start, len(row)))
                    for setting in range(1 << len(others)):
                        for value in (0, 1):
                            known = {other: setting >> at & 1 for at, other in enumerate(others)} | {flag: value}
                            row.append(sum(known[c] << at for at, c in enumerate(flags)))
            step.append((flag, len(scope), len(scope) + len(others), first, len(term)))
            scope += others
            tables.append((self.rows, others))
            self.rows += 1 << len(others)
            for other in others:
                near[other] = (near[other] | set(others)) - {other, flag}
        self.step, self.scope = np.array(step, np.int32), np.array(scope, np.int32)
        self.term, self.row = np.array(term, np.int32).reshape(-1, 3), np.array(row, np.int32)


def whole_costs(costs: WireCosts) -> tuple[int, int, int]:
    """Return a unit interval at 1, one at 0 and an edge in either direction (half a rising one) as whole numbers."""
    most = max(costs.one_pj, costs.zero_pj, costs.rise_pj / 2) or 1.0
    one, zero, edge = (round(FINEST_COST * c / most) for c in (costs.one_pj, costs.zero_pj, costs.rise_pj / 2))
    return one, zero, edge
