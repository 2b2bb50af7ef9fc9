"""Layouts: where each array of a sparse network lies in memory. One module per member, see `traces.layouts.kind`."""

from traces.layouts.kind import LAYOUTS, LayoutKind, Stored
from traces.layouts.layout import AUTO, NEURON_FORMATS, Layout, choose_kind

__all__ = ["AUTO", "LAYOUTS", "NEURON_FORMATS", "Layout", "LayoutKind", "Stored", "choose_kind"]
