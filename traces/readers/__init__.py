"""Readers of networks and operator graphs, one module per kind of file; see `traces.readers.reader`."""

from traces.readers.reader import KINDS, NETWORK_READERS, MatrixReader, NetworkReader, ReadOptions, load, reader_name

__all__ = ["KINDS", "NETWORK_READERS", "MatrixReader", "NetworkReader", "ReadOptions", "load", "reader_name"]
