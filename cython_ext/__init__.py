"""Compiled kernels: typed arrays in, integer counts out. Nothing but numpy and libc."""
