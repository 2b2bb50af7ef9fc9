"""A trace through the machine: engine side, cache levels, bursts on the wires, DRAM."""

from hwmodel.replay.bus_traffic import ChannelWires, Traffic, Wires, wire_traffic
from hwmodel.replay.play import ReplayResult, check_conservation, replay

__all__ = ["ChannelWires", "ReplayResult", "Traffic", "Wires", "check_conservation", "replay", "wire_traffic"]
