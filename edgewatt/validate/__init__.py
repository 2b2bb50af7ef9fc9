"""Does it hold? Orderings, matrices, configurations and our own models, checked against definitions and theory."""
