"""The encoders; hwmodel.coding is what they are made with, and its names are handed on here."""

from hwmodel.coding import ENCODERS, Bytes, Chain, Coded, Encoded, Geometry, decode, encode, parse_chain

__all__ = ["ENCODERS", "Bytes", "Chain", "Coded", "Encoded", "Geometry", "decode", "encode", "parse_chain"]
