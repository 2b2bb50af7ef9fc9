"""Compact Growth by hand: which values an order needs in fast memory at once, connection by connection."""

from collections.abc import Sequence

Connection = tuple[int, int]


def is_legal(connections: Sequence[Connection]) -> bool:
    """Whether every connection into a neuron comes before every one out of it."""
    used: set[int] = set()
    for source, target in connections:
        if target in used:
            return False
        used.add(source)
    return True


def largest_bag(connections: Sequence[Connection]) -> int:
    """Return how many values are between their first and their last connection at the same time, at most."""
    most = 0
    for now in range(len(connections)):
        before = {v for pair in connections[: now + 1] for v in pair}
        after = {v for pair in connections[now:] for v in pair}
        most = max(most, len(before & after))
    return most


def most_at_the_bound(widths: Sequence[int], memory: int) -> int:
    """Return the most connections that layers can have with W + N + S I/Os, over all orders: exhaustive, tiny widths.

    A value enters the bag, meets whom it may, and leaves for good. A neuron is complete once it is first used as a
    source; then it takes no more inputs.
    """
    layer = [k for k, n in enumerate(widths) for _ in range(n)]
    n, known = len(layer), {}

    def best(waiting: frozenset[int], bag: frozenset[tuple[int, frozenset[int]]]) -> int:
        """bag: (neuron, sources it has); a neuron complete once used has None in them."""
        state = (waiting, bag)
        if state in known:
            return known[state]
        known[state] = 0
        inside = dict(bag)
        found = 0
        for u, v in ((u, v) for u in inside for v in inside if layer[v] == layer[u] + 1):
            if u in inside[v] or None in inside[v]:
                continue
            later = {**inside, v: inside[v] | {u}, u: inside[u] | {None}}  # type: ignore[arg-type]
            found = max(found, 1 + best(waiting, frozenset(later.items())))
        for v in inside:
            found = max(found, best(waiting, frozenset((w, s) for w, s in bag if w != v)))
        if len(inside) < memory - 1:
            for v in waiting:
                found = max(found, best(waiting - {v}, bag | {(v, frozenset())}))
        known[state] = found
        return found

    return best(frozenset(range(n)), frozenset())
