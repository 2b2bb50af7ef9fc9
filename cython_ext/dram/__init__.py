"""The timing of one DRAM channel."""
