"""Reference rows of the cache, and what it refuses."""

import csv
import dataclasses

import numpy as np
import pytest
from oracles.levels import simulate_levels

from hwmodel.caches.cache import CacheCounts, CacheLevel, simulate_cache
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine
from traces.base.errors import InputError

COUNTS = [field.name for field in dataclasses.fields(CacheCounts)][:10]


def test_every_reference_row(reference):
    folder = reference / "cache"
    rows = list(csv.DictReader((folder / "results.csv").open()))
    assert len(rows) > 50
    for row in rows:
        with np.load(folder / f"{row['trace']}.npz", allow_pickle=False) as data:
            address = np.cumsum(data["addr_delta"].astype(np.int64))
            counts = simulate_cache(
                data["op"],
                address,
                data["size"],
                **{name: int(row[name]) for name in ("size_bytes", "line_bytes", "ways")},
                policy=row["policy"],
            )
        assert {name: getattr(counts, name) for name in COUNTS} == {name: int(row[name]) for name in COUNTS}, row


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_bytes": 0}, "size_bytes must be a whole number of at least 1"),
        ({"line_bytes": 48}, "power of two"),
        ({"size_bytes": 1024 + 32}, "not a multiple of line_bytes"),
        ({"size_bytes": 3 * 256}, "sets must be a power of two"),
        ({"ways": 32}, "exceed its 16 lines"),
        ({"ways": 0}, "ways must be a whole number"),
        ({"policy": "lur"}, "did you mean 'lru'"),
        ({"policy": "plru", "size_bytes": 64 * 12, "ways": 6}, "power of two of ways"),
        ({"write": "behind"}, "unknown cache write mode"),
        ({"seed": -1}, "seed"),
        ({"ways": True}, "ways: True is a bool, wanted: int"),
    ],
)
def test_geometry_is_refused(changes, message):
    geometry = {"size_bytes": 1024, "line_bytes": 64, "ways": 4} | changes
    with pytest.raises(InputError, match=message):
        simulate_cache([0], [0], [4], **geometry)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (([0], [2**63 - 4], [5]), "access 0 .5 bytes at address 0x7ffffffffffffffc.: it does not end below 2.63"),
        (([0], [2**63], [1]), "does not end below"),
        (([0, 0], np.array([0, 2**64 - 1], np.uint64), [1, 255]), "access 1 .* does not end below"),
        (([0], [-1], [1]), "access 0: address -1 is out of range"),
        (([0], [0], [0]), "touches no byte"),
        (([2], [0], [1]), "op is 2"),
        (([0], [0.5], [1]), "must hold whole numbers"),
        (([0, 1], [0], [1]), "differ in length"),
        (([0], [0], [70000]), "size 70000 is out of range"),
    ],
)
def test_accesses_are_refused(access, message):
    op, address, size = access
    with pytest.raises(InputError, match=message):
        simulate_cache(op, address, size, size_bytes=1024, line_bytes=64, ways=4)


def test_the_last_byte_below_2_to_the_63_is_an_address():
    for line in (1, 64):
        end = 2**63 - (line == 1)
        assert simulate_cache([1, 0], [end - 4] * 2, [4, 4], size_bytes=1024, line_bytes=line, ways=4).store_line_misses


def test_levels_feed_each_other():
    rng = np.random.default_rng(1)
    address = rng.integers(0, 65536, 20000)
    small, large = CacheSpec(1024, 32, 2), CacheSpec(16384, 64, 8)
    first, second = simulate_levels(rng.integers(0, 2, 20000), address, np.full(20000, 4), [small, large])
    assert second.loads == first.fills == first.misses
    assert second.stores == first.writebacks


def test_min_without_a_future_is_refused():
    with pytest.raises(ValueError, match="no future"):
        CacheLevel(CacheSpec(1024, 64, 4, "min")).access([0], [0], [4])


def test_a_machine_whose_lines_shrink_is_refused():
    with pytest.raises(InputError, match="must not shrink"):
        Machine((CacheSpec(1024, 64, 2), CacheSpec(4096, 32, 2)))


def test_many_ways_of_a_policy_that_was_told_no_future():
    """The kernel read next uses that it had not been given: a signal."""
    from cython_ext.cache.level import CacheKernel

    counted = []
    for future in (False, True):
        kernel = CacheKernel(1, 80, 6, "min", future, False, True, 0)
        kernel.set_future(np.zeros(200, np.int64))
        address = np.arange(200, dtype=np.uint64) % 100 * 64
        kernel.access(np.zeros(200, np.uint8), address, np.full(200, 4, np.uint8), False)
        counted.append((kernel.load_misses, kernel.evictions))
    assert counted[0] == counted[1]
