"""Readers of networks and operator graphs, one module per kind of file; see `traces.readers.reader`."""

from traces.readers.reader import NETWORK_READERS, MatrixReader, NetworkReader, load, reader_name

__all__ = ["NETWORK_READERS", "MatrixReader", "NetworkReader", "load", "reader_name"]
