"""The wires of a sequential stream, recounted: each burst goes to its channel, each byte to its lane, bit by bit."""

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
