"""Orders of tuples."""
