"""The passes over accesses, bursts and moves that a replay is made of, against the plainest Python of each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_ext.dram.in_flight import Held
from cython_ext.trace import accesses
from cython_ext.trace.transfers import first_loads
from traces.trace.chunks import NEVER, next_uses, touched_lines

quick = settings(max_examples=60, deadline=None)
LOAD, LIVE, OUTPUT = 0, 1, 2


@st.composite
def columns(draw, widest=700):
    """Return (op, stream, size, address) of up to 80 accesses."""
    n = draw(st.integers(0, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = np.uint8 if widest < 256 else draw(st.sampled_from((np.uint8, np.uint16)))
    most = min(widest, np.iinfo(kind).max)
    near = draw(st.sampled_from((0, 1000, 2**62)))
    return (
        rng.integers(0, 2, n).astype(np.uint8),
        rng.integers(0, 18, n).astype(np.uint8),
        rng.integers(1, most + 1, n).astype(kind),
        (near + rng.integers(0, 3000, n)).astype(np.uint64),
    )


@quick
@given(columns())
def test_accesses_are_counted_by_direction_and_stream(chunk):
    op, stream, size, _ = chunk
    want = np.zeros((2, 2, 18), np.int64)
    for o, s, n in zip(op.tolist(), stream.tolist(), size.tolist(), strict=True):
        want[o, 0, s] += 1
        want[o, 1, s] += n
    assert (accesses.count_accesses(op, stream, size, 18) == want).all()
    assert accesses.count_values(stream, 18).tolist() == want[:, 0].sum(axis=0).tolist()
    if len(stream):
        with pytest.raises(ValueError, match="below n_values"):
            accesses.count_values(stream, int(stream.max()))


@quick
@given(columns(), st.sampled_from((1, 3, 16, 32, 48, 64, 4096)))
def test_blocks_touched_are_those_of_the_bytes(chunk, block_bytes):
    op, stream, size, address = chunk
    want = [
        (block, k)
        for k, (at, n) in enumerate(zip(address.tolist(), size.tolist(), strict=True))
        for block in range(at // block_bytes, (at + n - 1) // block_bytes + 1)
    ]
    for sizes in (size, size.astype(np.int64), size.astype(np.int32)):
        lines, access = touched_lines(address, sizes, block_bytes)
        assert list(zip(lines.tolist(), access.tolist(), strict=True)) == want
    origin = np.arange(len(op)) * 7
    at, ops, streams, came = accesses.cut(address, size, op, stream, origin, block_bytes)
    assert at.tolist() == [block * block_bytes for block, _ in want]
    rows = list(zip(ops.tolist(), streams.tolist(), came.tolist(), strict=True))
    assert rows == [(op[k], stream[k], 7 * k) for _, k in want]


@quick
@given(st.lists(st.integers(0, 40), max_size=120), st.sampled_from((1, 1000, 2**40)), st.sampled_from((0, 2**50)))
def test_next_uses_near_and_far_apart(lines, apart, first):
    lines = [first + apart * line for line in lines]
    later = [next((j for j in range(k + 1, len(lines)) if lines[j] == lines[k]), NEVER) for k in range(len(lines))]
    assert next_uses(np.array(lines, np.uint64)).tolist() == later


@quick
@given(columns(), st.integers(0, 2000), st.integers(0, 5000))
def test_accesses_outside_a_memory_and_offsets_that_do_not_fit(chunk, base, total):
    _, _, size, address = chunk
    fits = [base <= a and a + n <= base + total for a, n in zip(address.tolist(), size.tolist(), strict=True)]
    assert accesses.first_outside(address, size, base, total) == (fits.index(False) if False in fits else -1)
    offset = np.cumsum(np.append(3, size.astype(np.int64)))
    end = int(offset[-1])
    assert accesses.offsets_hold(offset, size, end)
    assert not accesses.offsets_hold(offset, size, end - 1)
    assert not accesses.offsets_hold(offset - 4, size, end)
    assert not accesses.offsets_hold(offset[:-1], size, end)
    if len(size):
        offset[len(size) // 2] += 1
        assert not accesses.offsets_hold(offset, size, end + 1)


@quick
@given(st.data(), st.sampled_from((0, 8, 24, 32, 64)))
def test_requests_in_flight_leave_in_any_order(data, block_bytes):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    held, model, total = Held(block_bytes), {}, 0
    for step in range(data.draw(st.integers(1, 12))):
        n = int(rng.integers(0, 40))
        stream, write = rng.integers(0, 18, n).astype(np.uint8), rng.integers(0, 2, n).astype(np.uint8)
        block = rng.integers(0, 256, n * block_bytes, dtype=np.uint8)
        assert held.add(stream, write, block, step) == total
        for k in range(n):
            model[total + k] = (stream[k], write[k], step, block[k * block_bytes : (k + 1) * block_bytes].tolist())
        total += n
        leave = rng.permutation(sorted(model))[: int(rng.integers(0, len(model) + 1))].astype(np.int64)
        if rng.random() < 0.5:
            leave.sort()
        some = len(leave) // 3
        held.drop(leave[:some])
        taken = held.take(leave[some:])
        assert taken[3].shape == (len(leave) - some, block_bytes)
        rows = [tuple(column[k].tolist() for column in taken) for k in range(len(leave) - some)]
        assert rows == [model[number] for number in leave[some:].tolist()]
        for number in leave.tolist():
            del model[number]
        assert len(held) == len(model) and held.total == total
        for bad in (-1, total, *leave[:1].tolist()):
            with pytest.raises(ValueError, match="served twice or never asked for"):
                held.take(np.array([bad]))


@quick
@given(st.integers(1, 6), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_first_loads_and_what_is_wrong_with_moves(neurons, n, seed):
    rng = np.random.default_rng(seed)
    step, neuron = np.sort(rng.integers(0, 5, n)).astype(np.int32), rng.integers(0, neurons, n).astype(np.int32)
    kind = rng.choice((LOAD, LIVE, OUTPUT), n).astype(np.uint8)
    source, target = rng.integers(0, neurons, (2, 5)).astype(np.int32)
    first, wrong = first_loads(step, neuron, kind, source, target, neurons, LOAD, LIVE)
    seen: dict[int, int] = {}
    used = kept = True
    for k in range(n):
        who, what = int(neuron[k]), int(kind[k])
        if what == LOAD:
            assert first[k] == (who not in [int(neuron[j]) for j in range(k) if kind[j] == LOAD])
            used = used and who in (source[step[k]], target[step[k]])
        kept = kept and not (seen.get(who) == LIVE and what != LOAD)
        seen[who] = what
    kept = kept and LIVE not in seen.values()
    whole = "" if kept else "a live row was stored and never loaded again"
    assert wrong == (whole if used else "a row was loaded and not used")
