"""The policies that are compiled: cython_ext/cache/policies has the file of each, and says how it decides."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy

for _name, _summary in (
    ("brrip", "bimodal re-reference interval prediction, one line in 32 kept longer (Jaleel et al. 2010)"),
    ("drrip", "static or bimodal re-reference interval prediction by set dueling (Jaleel et al. 2010)"),
    ("fifo", "first in, first out"),
    ("lru", "least recently used"),
    ("random", "seeded random way"),  # the seed of the cache decides, with splitmix64
    ("srrip", "static re-reference interval prediction, two bits (Jaleel et al. 2010)"),
):
    CACHE_POLICIES.register(_name, summary=_summary)(type(_name, (Policy,), {"kernel": _name}))


@CACHE_POLICIES.register("min", summary="Belady's MIN: the line used furthest in the future (offline)")
class Min(Policy):
    """Belady 1966. Ties go to the lowest way."""

    kernel = "min"
    needs_future = True


@CACHE_POLICIES.register("plru", summary="tree pseudo-LRU")
class TreePlru(Policy):
    """A binary tree over the ways points away from what was looked up last."""

    kernel = "plru"

    @classmethod
    def objection(cls, ways: int) -> str | None:
        """The tree is a whole one."""
        return f"needs a power of two of ways, not {ways}" if ways & (ways - 1) else None


@CACHE_POLICIES.register("rr", summary="round robin over the ways of a set")
class RoundRobin(Policy):
    """The ways of a set are filled in turn, which is what fifo does."""

    kernel = "fifo"
