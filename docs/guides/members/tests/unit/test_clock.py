import numpy as np

import edgewatt as ew


def misses(lines: list[int], policy: str) -> int:
    n = len(lines)
    cache = {"size_bytes": 128, "line_bytes": 64, "ways": 2, "policy": policy}
    return ew.simulate_cache(np.zeros(n, np.uint8), 64 * np.array(lines), np.full(n, 4), **cache).misses


def test_a_line_that_was_used_again_stays_once() -> None:
    assert misses([0, 1, 0, 2, 0], "clock") == 3, "0 has its second chance, 1 goes"
    assert misses([0, 1, 0, 2, 0], "fifo") == 4, "0 is the oldest and goes"
