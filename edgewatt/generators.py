"""Networks and operator graphs made from a seed."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
