"""A trace through the machine: engine side, cache levels, bursts on the wires, DRAM."""

from hwmodel.replay.play import (
    ReplayResult,
    Traffic,
    Wires,
    check_conservation,
    replay,
    wire_traffic,
)

__all__ = ["ReplayResult", "Traffic", "Wires", "check_conservation", "replay", "wire_traffic"]
