"""Orderings of a network's connections, one file per method."""
