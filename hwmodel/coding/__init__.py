"""Encoders between memory and bus: what a stage is, chains of them, and encoding with counts of the wires.

The members are the modules of hwmodel.encoders.
"""

from hwmodel.coding.chain import Chain, ChainFacts, chain_facts, parse_chain
from hwmodel.coding.codec import Encoded, decode, encode
from hwmodel.coding.coded import Bytes, Coded, WireCosts
from hwmodel.coding.stage import ENCODERS, Geometry, Stage
from hwmodel.coding.streams import StreamChain

__all__ = [
    "ENCODERS",
    "Bytes",
    "Chain",
    "ChainFacts",
    "Coded",
    "Encoded",
    "Geometry",
    "Stage",
    "StreamChain",
    "WireCosts",
    "chain_facts",
    "decode",
    "encode",
    "parse_chain",
]
