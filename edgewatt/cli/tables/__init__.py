"""Results as cells on a terminal."""
