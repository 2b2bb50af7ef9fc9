"""clock: a hand goes round the ways and passes over, once, each line looked up since it came by (Corbató 1968)."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("clock", summary="second chance: a hand goes round the ways of a set")
class Clock(Policy):
    """One bit a line and one hand a set."""

    def __init__(self, sets: int, ways: int, seed: int) -> None:
        super().__init__(sets, ways, seed)
        self.used = [[False] * ways for _ in range(sets)]
        self.hand = [0] * sets

    def hit(self, set_: int, way: int, next_use: int) -> None:
        """Give the line its second chance."""
        self.used[set_][way] = True

    def fill(self, set_: int, way: int, next_use: int) -> None:
        """A new line has none yet."""
        self.used[set_][way] = False

    def victim(self, set_: int) -> int:
        """Move the hand to the first line without a second chance."""
        used = self.used[set_]
        while used[self.hand[set_]]:
            used[self.hand[set_]] = False
            self.hand[set_] = (self.hand[set_] + 1) % self.ways
        way = self.hand[set_]
        self.hand[set_] = (way + 1) % self.ways
        return way
