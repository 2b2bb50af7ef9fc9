"""Placing buffers with fixed lifetimes in one arena: `allocate`, allocators (one file each), files."""
