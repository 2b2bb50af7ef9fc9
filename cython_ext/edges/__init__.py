"""Constructions of edge orders."""
