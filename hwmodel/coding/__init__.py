"""Encoders between memory and bus: what a stage is, chains of them, and encoding with counts of the wires.

The members are the modules of hwmodel.encoders.
"""
