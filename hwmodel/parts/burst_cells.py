"""Bursts whose data wires carry more than data: metadata and inversion flags in cells of their own (LPDDR6, JESD209-6).

A part says for each four beats what each wire carries: D (data), M (metadata) or I (inversion flags). A cell is four
bits, lowest first; cells of a kind are filled beat group by beat group, wire by wire. Flag c says that the c-th equal
share of the data bits is sent inverted; metadata never is.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hwmodel.parts.part import Organisation

CELL_BEATS = 4
KINDS = "DMI"


def check_cells(cells: tuple[str, ...], organisation: Organisation, dbi: str) -> Iterable[str]:
    """Yield what is wrong with the cells of a part."""
    o = organisation
    rows = [row.split() for row in cells]
    if any(len(row) != o.dq_bits for row in rows):
        yield f"every text names one cell for each of the {o.dq_bits} data wires"
    elif any(cell not in KINDS for row in rows for cell in row):
        yield "a cell is D (data), M (metadata) or I (inversion flags)"
    elif o.burst_beats % (CELL_BEATS * len(rows)):
        yield f"{len(rows)} texts of {CELL_BEATS} beats do not divide a burst of {o.burst_beats} beats"
    else:
        blocks = o.burst_beats // (CELL_BEATS * len(rows))
        data, flags = (CELL_BEATS * sum(row.count(kind) for row in rows) for kind in "DI")
        if data * blocks != 8 * o.burst_bytes:
            yield f"a burst has {8 * o.burst_bytes} bits of data, the cells have {data * blocks}"
        if bool(flags) != (dbi != "none"):
            yield f"data bus inversion is {dbi!r}, and there are {flags} inversion flags"
        elif flags and data % (8 * flags):
            yield f"{flags} inversion flags do not divide {data} bits of data into whole bytes"
        if flags and dbi == "toggles":
            yield "flags inside a burst go with the rules ones and zeros"


class BurstCells:
    """The cells of a part as index arrays.

    flags: inversion flags of a burst, each for `share_bytes` bytes of its data (0 without flags). metadata_bits: of
    each of its blocks. beats, lanes: of the data wires; wires that fill up the last byte lane stay at 0.
    source int32[beats, 8 * lanes]: what each wire carries in each beat, k >= 0 for data bit k of the burst, -1 for a
    metadata bit or nothing, -2 - c for inversion flag c.
    """

    def __init__(self, cells: tuple[str, ...], organisation: Organisation, dbi: str) -> None:
        o = organisation
        self._dbi = dbi
        self.burst_bytes, self.lanes, self.beats, self._dq_bits = o.burst_bytes, o.byte_lanes, o.burst_beats, o.dq_bits
        self._blocks = o.burst_beats // (CELL_BEATS * len(cells))
        self._block_beats = CELL_BEATS * len(cells)
        self._block_bytes = o.burst_bytes // self._blocks
        positions: dict[str, list[int]] = {kind: [] for kind in KINDS}
        for group, row in enumerate(cells):
            for wire, kind in enumerate(row.split()):
                for beat in range(CELL_BEATS * group, CELL_BEATS * (group + 1)):
                    positions[kind].append(beat * 8 * self.lanes + wire)
        self._positions = {kind: np.array(at, np.int64) for kind, at in positions.items()}
        self.flags = self._blocks * len(positions["I"])
        self.share_bytes = o.burst_bytes // self.flags if self.flags else 0
        self.metadata_bits = len(positions["M"])
        source = np.full(o.burst_beats * 8 * self.lanes, -1, np.int32)
        for block in range(self._blocks):
            start = block * self._block_beats * 8 * self.lanes
            n_data, n_flags = (len(self._positions[kind]) for kind in "DI")
            source[start + self._positions["D"]] = block * n_data + np.arange(n_data)
            source[start + self._positions["I"]] = -2 - block * n_flags - np.arange(n_flags)
        self.source = source.reshape(o.burst_beats, 8 * self.lanes)

    @property
    def room(self) -> str:
        """What a burst has room for, in words."""
        held = f"of the {self.beats * self._dq_bits} bits of its burst {8 * self.burst_bytes} are data"
        if self.metadata_bits:
            held += f", {self._blocks * self.metadata_bits} metadata"
        if self.flags:
            held += f" and {self.flags} inversion flags, one for every {self.share_bytes} bytes"
        return held

    def given(self, metadata: tuple[int, ...]) -> np.ndarray:
        """Return uint8[beats, 8 * lanes]: what wires carry that is neither data nor a flag."""
        nothing = np.zeros((1, self.burst_bytes), np.uint8), np.zeros((1, self.flags), np.uint8)
        packed = self.pack(*nothing, metadata)["M"]
        return np.unpackbits(packed[0], bitorder="little").reshape(self.source.shape)

    def decide(self, data: np.ndarray, low: bool | None = None) -> np.ndarray:
        """Return uint8[bursts, flags] for data uint8[bursts, burst_bytes]: 1 where more than half of a share costs.

        low: 0 is the level that costs (None: as the part's rule says).
        """
        ones = np.bitwise_count(data).reshape(len(data), self.flags, self.share_bytes).sum(axis=2, dtype=np.int64)
        half = 4 * self.share_bytes
        low = self._dbi == "zeros" if low is None else low
        costly: np.ndarray = ones < half if low else ones > half
        return costly.astype(np.uint8)

    def pack(
        self, data: np.ndarray, flags: np.ndarray, metadata: tuple[int, ...], *, as_sent: bool = False
    ) -> dict[str, np.ndarray]:
        """Return what each kind of cell puts on the wires, uint8[bursts, beats x byte lanes] each.

        data uint8[bursts, burst_bytes], flags as of `decide`, metadata: a word per block, in turn.
        as_sent: shares in `data` are inverted already.
        """
        n = len(data)
        if self.flags and not as_sent:
            data = data ^ (np.repeat(flags, self.share_bytes, axis=1) * np.uint8(255))
        words = np.array([metadata[block % len(metadata)] for block in range(self._blocks)], np.uint64)
        width = len(self._positions["M"])
        meta = (words[:, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)).astype(np.uint8)
        bits = {
            "D": np.unpackbits(data.reshape(n, self._blocks, self._block_bytes), axis=2, bitorder="little"),
            "M": np.broadcast_to(meta, (n, self._blocks, width)),
            "I": flags.reshape(n, self._blocks, len(self._positions["I"])),
        }
        sent = {}
        for kind, values in bits.items():
            wires = np.zeros((n, self._blocks, self._block_beats * 8 * self.lanes), np.uint8)
            wires[:, :, self._positions[kind]] = values
            sent[kind] = np.packbits(
                wires.reshape(n, self._blocks * self._block_beats * 8 * self.lanes), axis=1, bitorder="little"
            )
        return sent
