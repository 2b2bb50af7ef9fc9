"""Traces and profiles of caches, beside `build_trace` and `simulate_cache` of `edgewatt`."""

from edgewatt.names import public

__getattr__, __all__ = public(__name__)
