"""Tuple orders of a whole model's weights: streamed from shards, matrix by matrix and group by group, into shards."""

from reorder.tuples.shards.matrix_orders import MatrixOrder, order_weights

__all__ = ["MatrixOrder", "order_weights"]
