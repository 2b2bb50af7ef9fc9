"""Layouts: where each array of a sparse network lies in memory. One module per member, see `traces.layout.kind`."""
