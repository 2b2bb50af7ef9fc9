"""Operator graphs: schedules, arenas, energy, and what commands say of them."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
