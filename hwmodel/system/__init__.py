"""The machine in time (SimPy)."""
