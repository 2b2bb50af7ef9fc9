"""Configuration: strict YAML with positions, the models it fills, and the points it expands to.

Names are loaded on first use: a worker process needs `edgewatt.config.kinds` without the models, whose library takes a
third of its start.
"""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
