"""Counts become picojoules: a replay on its DRAM (constants: hwmodel.dram.energy), on-chip memory, arithmetic."""
