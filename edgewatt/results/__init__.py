"""Records of finished points: stored, compared, collected."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
