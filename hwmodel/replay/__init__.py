"""A trace through the machine: engine side, cache levels, bursts on the wires, DRAM."""

from hwmodel.replay.bus_traffic import Traffic, Wires, channel_wires, wire_traffic
from hwmodel.replay.play import ReplayResult, check_conservation, replay

__all__ = ["ReplayResult", "Traffic", "Wires", "channel_wires", "check_conservation", "replay", "wire_traffic"]
