"""The moves of a network's order, as a scratchpad makes them."""

from hwmodel.fastmemory.iomodel import Moves, moves_of
from traces.networks.processing import processing_arrays


def io_moves(network, order=None, *, memory: int, policy: str = "min", pinning: str = "literal") -> Moves:
    sources, targets = processing_arrays(network, order)
    return moves_of(sources, targets, network.is_output, memory=memory, policy=policy, pinning=pinning)
