"""Readers of networks and operator graphs, one module per kind of file; see `traces.readers.reader`."""

from traces.readers.loading import KINDS, load
from traces.readers.reader import NETWORK_READERS, MatrixReader, NetworkReader, ReadOptions

__all__ = ["KINDS", "NETWORK_READERS", "MatrixReader", "NetworkReader", "ReadOptions", "load"]
