"""DRAM: parts, controller, timing, commands, wires, and what they cost."""
