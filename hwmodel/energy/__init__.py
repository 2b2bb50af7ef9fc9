"""Counts become picojoules."""
