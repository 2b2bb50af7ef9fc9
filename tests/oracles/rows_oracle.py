"""Items in a row so that few are there at a time, with Python's sets."""

from __future__ import annotations


def fewest_at_a_time(pairs: list[tuple[int, int]], n: int, moved: bool = True) -> list[int]:
    """Return the row that `cython_ext.edges.rows.fewest_at_a_time` finds. pairs: (group, item)."""
    members: dict[int, set[int]] = {}
    for group, item in pairs:
        members.setdefault(group, set()).add(item)
    needs = [set().union(*(members[group] for group, item in pairs if item == k)) for k in range(n)]
    row: list[int] = []
    there: set[int] = set()
    while len(row) < n:
        row.append(min(set(range(n)) - set(row), key=lambda k: (len(needs[k] - there), k)))
        there |= needs[row[-1]]
    before: list[int] = []
    while moved and before != row:
        before = list(row)
        for k in before:
            others = [other for other in row if other != k]
            rows = [[*others[:to], k, *others[to:]] for to in range(n)]
            best = min(rows, key=lambda one: mean_there(one, needs))
            if mean_there(best, needs) < mean_there(row, needs):
                row = best
    return row


def mean_there(row: list[int], needs: list[set[int]]) -> int:
    """Return the sum, over the row, of how many have come when each is done."""
    there: set[int] = set()
    return sum(len(there := there | needs[k]) for k in row)
