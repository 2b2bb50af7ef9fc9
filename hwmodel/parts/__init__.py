"""DRAM parts as data: what a part is, and how a part file is read and checked."""
