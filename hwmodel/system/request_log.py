"""Every request of a run, kept as it is made, completed and served (simulate(keep=True))."""

from __future__ import annotations

import numpy as np

from hwmodel.replay.hierarchy import Bursts
from hwmodel.system.results import Requests


class RequestLog:
    """Collects blocks of requests in whatever order they come; `requests` sorts them by number."""

    def __init__(self, n_channels: int) -> None:
        empty, byte = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self._made: list[tuple[np.ndarray, ...]] = [(empty, empty.astype(np.uint64), byte, byte)]
        self._done: list[tuple[np.ndarray, ...]] = [(empty, empty, empty)]
        self._served: list[list[np.ndarray]] = [[empty] for _ in range(n_channels)]

    def made(self, number: np.ndarray, bursts: Bursts) -> None:
        """Note requests with the numbers they were given."""
        self._made.append((number, bursts.address, bursts.is_write, bursts.stream))

    def done(self, number: np.ndarray, accepted: np.ndarray, done: np.ndarray) -> None:
        """Note the cycles at which requests were accepted and completed."""
        self._done.append((number, accepted, done))

    def served(self, number: np.ndarray, channel: np.ndarray) -> None:
        """Note bursts in the order in which they were on the wires of their channels."""
        for c, blocks in enumerate(self._served):
            blocks.append(number[channel == c])

    def requests(self) -> Requests:
        """Return all of them by number."""
        number, address, write, stream = (np.concatenate(column) for column in zip(*self._made, strict=True))
        order = np.argsort(number, kind="stable")
        done_number, accepted, done = (np.concatenate(column) for column in zip(*self._done, strict=True))
        done_order = np.argsort(done_number, kind="stable")
        ids = number[order]
        assert np.array_equal(ids, done_number[done_order]), "a request was lost or made up"
        served = tuple(np.searchsorted(ids, np.concatenate(blocks)) for blocks in self._served)
        return Requests(
            address[order], write[order], stream[order], accepted[done_order], done[done_order], served
        )  # fmt: skip
