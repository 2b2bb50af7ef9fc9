"""What a replacement policy of a line cache is: a class that registers in CACHE_POLICIES in `policies/`.

A policy is compiled (a file cython_ext/cache/policies/policy_NAME.h, or an `edgewatt_policy` structure of another
library; the signature is in cython_ext/cache/policy.h) or plain Python: the methods below, called once per decision,
some hundred times slower.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traces.base.registry import Registry


class Policy:
    """One level's decisions. A set has ways 0 to ways - 1; empty ways are filled first, in order, without asking.

    kernel: the name of a compiled policy, the address (int) of an `edgewatt_policy` or a PyCapsule
    "edgewatt.cache_policy" that holds one; None: the methods of this class decide.
    needs_future: it gets the next use of each line, so the whole run is looked through first (8 bytes a
    look-up), several engines are refused.
    """

    kernel: ClassVar[Any] = None
    needs_future: ClassVar[bool] = False

    @classmethod
    def objection(cls, ways: int) -> str | None:
        """Return what this policy needs that a cache of so many ways lacks, as the end of a sentence; None: it fits."""
        return None

    def __init__(self, sets: int, ways: int, seed: int) -> None:
        self.sets, self.ways, self.seed = sets, ways, seed

    def hit(self, set_: int, way: int, next_use: int) -> None:
        """Note a look-up of the line in a way. next_use: position of its next look-up, a large number for never; 0
        for policies that do not need the future."""

    def fill(self, set_: int, way: int, next_use: int) -> None:
        """Note that a way holds another line now."""

    def victim(self, set_: int) -> int:
        """Return the way whose line goes; every way holds one."""
        raise NotImplementedError(f"{type(self).__name__} has neither a kernel nor a method `victim`")


CACHE_POLICIES: Registry[type[Policy]] = Registry(
    "cache policy", "edgewatt.cache_policies", folder="hwmodel.caches.policies", subclasses_of=Policy
)
