"""A trace through the machine: engine side, cache levels, bursts on the wires, DRAM."""

from hwmodel.replay.play import ReplayResult, check_conservation, replay

__all__ = ["ReplayResult", "check_conservation", "replay"]
