"""Orders of work: edges of a network, tuples of a sparse matrix, operators of a graph; and bounds on their cost."""
