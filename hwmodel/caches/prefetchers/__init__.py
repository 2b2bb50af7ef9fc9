"""The prefetchers of the first cache level."""
