"""Compiled placement of buffers in an arena."""
