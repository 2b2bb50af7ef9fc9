"""What holds for every cache policy of the registry: a new one is tested by being there."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outside import run_with, write_distribution

from hwmodel.caches.cache import CacheLevel
from hwmodel.caches.policy import CACHE_POLICIES, Policy
from hwmodel.caches.spec import CacheSpec

ROOT = Path(__file__).parents[2]
quick = settings(max_examples=30, deadline=None)


@st.composite
def runs(draw, ways=None):
    """Whole-line accesses of one cache: sets, ways, op, address."""
    sets, ways = 2 ** draw(st.integers(0, 3)), ways or draw(st.integers(1, 18))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 400))
    lines = rng.integers(0, draw(st.sampled_from((1, 2, 4))) * sets * ways + 1, n)
    return sets, ways, rng.integers(0, 2, n), lines * 16 + rng.integers(0, 8, n)


def play(policy, case, step=10_000, **more):
    sets, ways, op, address = case
    level = CacheLevel(CacheSpec(sets * ways * 16, 16, ways, policy, **more))
    if level.spec.policy_type.needs_future:
        level.set_future(level.lines(address, np.full(len(op), 8)))
    for start in range(0, len(op), step):
        part = slice(start, start + step)
        level.access(op[part], address[part], np.full(len(op[part]), 8))
    return level.counts


@pytest.mark.parametrize("policy", list(CACHE_POLICIES))
@quick
@given(st.data())
def test_a_policy_keeps_lines_and_misses_no_less_than_belady(policy, data):
    kind = CACHE_POLICIES[policy].item
    ways = data.draw(st.sampled_from([n for n in range(1, 19) if kind.objection(n) is None]))
    case = data.draw(runs(ways))
    counts = play(policy, case)  # asserts itself that no line is lost or made up
    assert counts == play(policy, case, step=7), "state is kept between chunks"
    assert counts.misses >= play("min", case, allocate=True).misses
    distinct = len(np.unique(case[3] // 16))
    assert counts.misses >= distinct
    if distinct <= case[1]:  # every line fits into one set's ways, wherever it is mapped
        assert counts.misses == distinct


def test_every_member_states_its_facts():
    for name, entry in CACHE_POLICIES.items():
        decides = entry.item.kernel is not None or entry.item.victim is not Policy.victim
        assert entry.summary and decides, name


CLOCK = '''
"""The CLOCK policy of another author, in Python and in C."""
import ctypes, os
from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("clock", summary="second chance")
class Clock(Policy):
    """A hand goes round; a way used since it last came by is spared once."""

    def __init__(self, sets, ways, seed):
        super().__init__(sets, ways, seed)
        self.hand, self.used = [0] * sets, [[False] * ways for _ in range(sets)]

    def hit(self, set_, way, next_use):
        self.used[set_][way] = True

    fill = hit

    def victim(self, set_):
        while self.used[set_][self.hand[set_]]:
            self.used[set_][self.hand[set_]] = False
            self.hand[set_] = (self.hand[set_] + 1) % self.ways
        way = self.hand[set_]
        self.hand[set_] = (way + 1) % self.ways
        return way


library = ctypes.CDLL(os.environ["CLOCK_LIBRARY"]) if "CLOCK_LIBRARY" in os.environ else None


@CACHE_POLICIES.register("fast-clock", summary="second chance, compiled")
class FastClock(Policy):
    """The same in C."""

    kernel = ctypes.addressof(ctypes.c_char.in_dll(library, "clock_policy")) if library else None


@CACHE_POLICIES.register("broken", summary="chooses a way that is none")
class Broken(Policy):
    """It errs."""

    def victim(self, set_):
        return self.ways
'''
C_CLOCK = """
#include "cache/policy.h"
typedef struct { uint8_t hand, used[255]; } clock_set;
static void note(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    clock_set *c = edgewatt_set_state(sets, set);
    c->used[way] = 1;
}
static int64_t victim(edgewatt_sets *sets, uint64_t set) {
    clock_set *c = edgewatt_set_state(sets, set);
    for (; c->used[c->hand]; c->hand = (uint8_t)((c->hand + 1) % sets->ways)) c->used[c->hand] = 0;
    int64_t way = c->hand;
    c->hand = (uint8_t)((way + 1) % sets->ways);
    return way;
}
const edgewatt_policy clock_policy = {
    EDGEWATT_POLICY_VERSION, 0, 0, sizeof(clock_set), 0, note, note, victim};
"""
USE = """
import numpy as np, edgewatt as ew
from hwmodel.caches.cache import simulate_cache
from hwmodel.caches.policy import CACHE_POLICIES
rng = np.random.default_rng(3)
sizes = dict(size_bytes=1024, line_bytes=16, ways=8)
for _ in range(20):
    op, address = rng.integers(0, 2, 500), rng.integers(0, 4096, 500)
    slow = ew.simulate_cache(op, address, 4, policy="clock", **sizes)
    assert slow == ew.simulate_cache(op, address, 4, policy="fast-clock", **sizes)
    assert slow.misses >= simulate_cache(op, address, 4, policy="min", **sizes).misses
assert slow != simulate_cache(op, address, 4, policy="fifo", **sizes)
assert CACHE_POLICIES["clock"].origin.version == "0.1"
try:
    simulate_cache(op, address, 4, policy="broken", **sizes)
except ValueError as error:
    assert "not a way from 0 to 7" in str(error)
else:
    raise AssertionError("a way that is none was taken")
"""

YAML = """
network: {generate: {kind: random-layered, n_layers: 3, width: 16, density: 0.3, seed: 1}}
orderings: two-optimal
formats: fp32
system: edge
caches: [{size_bytes: 4096, line_bytes: 64, ways: 4, policy: clock}]
"""
FROM_YAML = """
import edgewatt as ew
[record] = ew.run("run.yaml")
[level] = record.canonical["results"]["cache"]
assert level["hits"] > 0
assert "others" in str(record.canonical), record.canonical.keys()
"""


@pytest.mark.application
def test_policies_of_another_distribution(tmp_path, monkeypatch):
    points = """[edgewatt.cache_policies]
clock = others_clock
fast-clock = others_clock
broken = others_clock
"""
    write_distribution(tmp_path, "others", "0.1", {"others_clock": CLOCK}, points)
    (tmp_path / "clock.c").write_text(C_CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'cython_ext'}", "-o", library, tmp_path / "clock.c"], check=True
    )
    monkeypatch.setenv("CLOCK_LIBRARY", str(library))
    ran = run_with(tmp_path, "-c", USE)
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "run.yaml").write_text(YAML)
    ran = run_with(tmp_path, "-c", FROM_YAML, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    listed = run_with(tmp_path, "-c", "from edgewatt.cli import main; main()", "list", "cache-policies")
    assert "second chance" in listed.stdout, listed.stderr
