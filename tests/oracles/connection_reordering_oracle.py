"""Connection Reordering (Gleinig et al. 2023, section IV) on plain lists, as the paper words it."""

from __future__ import annotations

from collections.abc import Callable

Connection = tuple[int, int]


class SplitMix64:
    """The project's stated generator (Steele et al. 2014)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def unit(self) -> float:
        """A double in [0, 1)."""
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return (z >> 11) / 2**53


def moved(order: list[int], connections: list[Connection], first: int, extra: int, left: bool) -> list[int]:
    """Return the order after moving the window that starts at connection `first`."""
    order = list(order)
    start = order.index(first)
    window = order[start : start + extra + 1]
    for edge in window if left else reversed(window):
        a, b = connections[edge]
        at = order.index(edge)
        order.pop(at)
        if left:
            while at > 0 and connections[order[at - 1]][0] != a and connections[order[at - 1]][1] != a:
                at -= 1
        else:
            while at < len(order) and connections[order[at]][1] != b and connections[order[at]][0] != b:
                at += 1
        order.insert(at, edge)
    return order


def anneal(
    connections: list[Connection],
    cost: Callable[[list[Connection]], float],
    *,
    iterations: int,
    window: int,
    sigma: float,
    seed: int,
) -> tuple[list[int], list[float]]:
    """Return the best order met and the cost after each iteration."""
    random = SplitMix64(seed)
    order = list(range(len(connections)))
    current = best = cost(connections)
    best_order, costs = order, []
    for t in range(1, iterations + 1):
        first = int(random.unit() * len(connections))
        extra = int(random.unit() * window)
        left = random.unit() < 0.5
        chance = random.unit()
        candidate = moved(order, connections, first, extra, left)
        new = cost([connections[edge] for edge in candidate])
        if new < current or chance < 2 ** (-(new - current) * t**sigma):
            order, current = candidate, new
        if current < best:
            best = current
        if current == best:
            best_order = order
        costs.append(current)
    return best_order, costs
