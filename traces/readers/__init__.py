"""Readers of networks and operator graphs, one module per kind of file; see `traces.readers.reader`."""

from traces.readers.loading import KINDS, load, reader_name
from traces.readers.reader import NETWORK_READERS, MatrixReader, NetworkReader, ReadOptions

__all__ = ["KINDS", "NETWORK_READERS", "MatrixReader", "NetworkReader", "ReadOptions", "load", "reader_name"]
