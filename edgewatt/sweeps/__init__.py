"""Sweeps: many points, on processes or machines, until all are there."""
