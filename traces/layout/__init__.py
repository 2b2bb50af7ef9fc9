"""Layouts: where each array of a sparse network lies in memory. One module per member, see `traces.layout.kind`."""

from traces.layout.kind import LAYOUTS, LayoutKind, Stored
from traces.layout.settings import AUTO, NEURON_FORMATS, Layout

__all__ = ["AUTO", "LAYOUTS", "NEURON_FORMATS", "Layout", "LayoutKind", "Stored"]
