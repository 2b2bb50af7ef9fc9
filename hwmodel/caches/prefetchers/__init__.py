"""The prefetchers of the first cache level, one file each."""
