"""Depths and repeated connections of any graph, cyclic ones included, against the plainest way to find them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_ext.network.graph import depth_and_repeats


def plain_depth(pairs: list[tuple[int, int]], n: int) -> list[int]:
    """Longest path from neurons without incoming connections, by relaxation until nothing changes; -1 behind cycles."""
    before = {t: [s for s, x in pairs if x == t] for t in range(n)}
    depth: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for t in range(n):
            if t not in depth and all(s in depth for s in before[t]):
                depth[t] = max((depth[s] + 1 for s in before[t]), default=0)
                changed = True
    return [depth.get(t, -1) for t in range(n)]


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.lists(
    st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))))  # fmt: skip
def test_depth_and_repeats(made: tuple[int, list[tuple[int, int]]]) -> None:
    n, pairs = made
    ids = np.array(pairs, np.int64).reshape(-1, 2)
    depth, repeated = depth_and_repeats(np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1]), n)
    assert depth.dtype == np.int64 and depth.tolist() == plain_depth(pairs, n)
    assert repeated == (len(set(pairs)) < len(pairs))
