"""Orders for the wires, and what is on them, beside `encode`, `decode` and `order_tuples` of `edgewatt`."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
