"""Orders of a network's connections: methods, bounds, what they cost and whether they pay."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
