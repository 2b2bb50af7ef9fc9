__version__ = "0.3.0"

COUNTS_VERSION = 11
"""Raised with every change of counts, energies or times of a point whose hash stays (**breaking** in CHANGELOG.md).

Records say it in their provenance; those without it are of version 1. A sweep computes older ones again.
"""
