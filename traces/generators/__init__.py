"""Synthetic networks and operator graphs."""
