"""Commutative data reordering: the order of a sparse matrix's tuples that sends few ones (Feinberg et al. 2020).

``order_tuples(matrix, value_format="fp16", stride=128)`` permutes tuples inside strides; ids travel with their values,
so the matrix stays the same and no index is added. Conventions: docs/concepts/tuple-orders.md.
"""

from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.matrix import LAYOUTS
from reorder.tuples.tuple_order import TupleOrder, order_tuples

__all__ = ["LAYOUTS", "TUPLE_ORDERS", "TupleOrder", "order_tuples"]
