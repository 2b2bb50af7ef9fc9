"""Bus codes and wire counts."""
