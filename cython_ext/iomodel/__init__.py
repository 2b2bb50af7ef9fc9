"""I/Os of a fast memory."""
