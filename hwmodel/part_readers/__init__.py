"""Readers of other simulators' memory specifications: a file becomes a part file, one reader a module."""
