"""Writers of memory traces."""
