"""DRAM: parts, controller, timing, commands, wires."""
