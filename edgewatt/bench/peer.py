"""What a peer is: a library that computes a network layer by layer, and the registry of those we know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from edgewatt.bench.layers import Float32, MatrixLayer
from traces.base.errors import EdgewattError
from traces.base.registry import Registry

Step = Callable[[], object]


class MissingPeer(EdgewattError):
    """The library is not installed, or not for this machine; the text says what would install it."""


class Peer(Protocol):
    """Prepare all that can be prepared once, for a table of values; the result computes all layers in place.

    dense: it multiplies with the zeros too. Raises MissingPeer.
    """

    def __call__(self, layers: list[MatrixLayer], values: Float32) -> Step: ...


PEERS: Registry[Peer] = Registry("peer", "edgewatt.peers", folder="edgewatt.bench.peers")
