"""Searches over edge orders."""
