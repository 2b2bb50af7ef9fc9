"""Configuration: strict YAML with positions, the models it fills, and the points it expands to."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
