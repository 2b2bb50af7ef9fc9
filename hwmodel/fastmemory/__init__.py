"""The fast memory of the I/O model."""
