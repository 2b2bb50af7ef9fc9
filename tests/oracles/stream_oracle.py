"""A sequential stream, recounted: each burst goes to its channel, each byte to its lane, bit by bit; rows by rules."""

from collections.abc import Iterable, Iterator

import numpy as np


def recount(bursts: np.ndarray, channel: np.ndarray, lanes: int, *, dbi: bool) -> tuple[int, ...]:
    """Return ones and toggles of the data wires, ones and toggles of the DBI wires, from wires at 0.

    bursts: uint8[n, burst_bytes]. channel: int[n]. dbi: bytes with five or more ones are sent inverted, with a flag.
    """
    total = np.zeros(4, np.int64)
    for c in np.unique(channel):
        beats = bursts[channel == c].reshape(-1, lanes)
        bits = np.unpackbits(beats, axis=1).reshape(len(beats), lanes, 8)
        flags = (bits.sum(axis=2) > 4).astype(np.uint8) if dbi else np.zeros((len(beats), lanes), np.uint8)
        sent = bits ^ flags[:, :, None]
        for at, wires in ((0, sent.reshape(len(beats), -1)), (2, flags)):
            before = np.vstack((np.zeros((1, wires.shape[1]), np.uint8), wires[:-1]))
            total[at] += wires.sum(dtype=np.int64)
            total[at + 1] += (wires ^ before).sum(dtype=np.int64)
    return tuple(int(n) for n in total)


def recount_rows(served: Iterable[tuple[str, tuple[int, ...], int]]) -> tuple[int, int]:
    """Return rows opened and closed where rows stay open until another one of their bank is wanted, or a refresh comes.

    served: (RD, WR or REFab; bank; row) of one channel, in order.
    """
    rows: dict[tuple[int, ...], int] = {}
    opened = closed = 0
    for command, bank, row in served:
        if command == "REFab":
            closed += len(rows)
            rows.clear()
        elif rows.get(bank) != row:
            closed += bank in rows
            opened += 1
            rows[bank] = row
    return opened, closed


def places(bursts: int, burst_bytes: int, fields: str) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Yield (channel, bank, row) of bursts one after the other. fields: of an address map, least significant first."""
    for burst in range(bursts):
        left, place = burst * burst_bytes, {name: "0" for name in ("channel", "rank", "bank_group", "bank", "row")}
        for name, bits in (field.split(":") for field in fields.split()):
            place[name] = f"{left % (1 << int(bits)):0{bits}b}" + place.get(name, "")  # a name may come again: above
            left >>= int(bits)
        number = {name: int(digits, 2) for name, digits in place.items()}
        yield number["channel"], (number["rank"], number["bank_group"], number["bank"]), number["row"]
