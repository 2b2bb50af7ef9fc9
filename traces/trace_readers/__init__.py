"""Readers of address traces."""
