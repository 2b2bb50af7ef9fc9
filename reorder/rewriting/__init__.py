"""Identity rewriting: other graphs that compute the same, and those graphs in operators that model files have."""
