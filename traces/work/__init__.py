"""The work: sparse networks, operator graphs, the forward pass."""
