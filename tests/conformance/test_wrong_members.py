"""Members of somebody else's that do not keep what their kind promises: named, and no kernel reads by what they say."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.plugins import (
    CACHE_POLICIES,
    ENCODERS,
    FORMATS,
    ORDERINGS,
    Coded,
    Ordering,
    Policy,
    Role,
    Stage,
    packed_flags,
)
from traces.generators.networks import random_layered

NETWORK = random_layered(n_layers=2, width=8, density=0.5)
W = NETWORK.n_connections
PLAIN = np.arange(W)
DATA = np.arange(256, dtype=np.uint8)


@pytest.fixture(autouse=True)
def registries():
    """Leave the registries as they were."""
    every = (CACHE_POLICIES, ENCODERS, FORMATS, ORDERINGS)
    for each in every:
        each.loadable()  # loads the members that come with this program, which would be lost afterwards
    before = [dict(each._entries) for each in every]
    yield
    for each, entries in zip(every, before, strict=True):
        each._entries = entries


def misses(**body):
    CACHE_POLICIES.register("wrong", summary="wrong")(type("Wrong", (Policy,), body))
    where = 64 * np.random.default_rng(0).integers(0, 64, 200)
    return ew.simulate_cache(0, where, 4, size_bytes=512, line_bytes=64, ways=4, policy="wrong").misses


class CPolicy(ctypes.Structure):
    """edgewatt_policy of cache/policy.h."""

    _fields_ = [("version", ctypes.c_int32), ("flags", ctypes.c_int32)] + [
        (name, ctypes.c_int64) for name in ("bytes_per_way", "bytes_per_set", "shared_bytes", "hit", "fill", "victim")
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 0}, "of version 0 of cache/policy.h: build it again for 1"),
        ({"version": 2}, "of version 2 of cache/policy.h: build it again for 1"),
        ({"version": 1}, "without `victim`"),
        ({"version": 1, "flags": 4}, "without `victim`"),
        ({"version": 1, "flags": 1, "bytes_per_way": -8}, "negative size"),
        ({"version": 1, "flags": 1, "shared_bytes": -(2**63)}, "negative size"),
        ({"version": 1, "flags": 1, "bytes_per_set": 2**63 - 1}, "too big|does not fit"),
        ({"version": 1, "flags": 1, "shared_bytes": 2**62}, "too big|does not fit"),
    ],
)
def test_a_compiled_policy_that_cannot_be_one(fields, message):
    """Without `victim` and without a flag that says which line goes, the level called address 0."""
    structure = CPolicy(**fields)
    with pytest.raises(ew.InputError, match=message):
        misses(kernel=ctypes.addressof(structure))


@pytest.mark.parametrize("kernel", [True, False, 1, -1, 4097, 2**63, 2**64, 1.5, [], b"lru", "nosuch", object()])
def test_what_is_no_compiled_policy(kernel):
    """True was taken for the address 1."""
    with pytest.raises(ew.InputError, match=r"cache policy 'wrong'.*(no address|no compiled policy)"):
        misses(kernel=kernel)


def test_a_policy_may_say_ways_as_numpy_does():
    assert misses(victim=lambda self, set_: np.int64(2)) == misses_of_two()


def misses_of_two():
    CACHE_POLICIES._entries.pop("wrong")
    return misses(victim=lambda self, set_: 2)


@pytest.mark.parametrize("way", [None, -1, 4, 10**30, 1.0, "0", np.nan, np.array([1, 2]), np.uint64(2**63)])
def test_a_way_that_is_none(way):
    with pytest.raises(ValueError, match="not a way from 0 to 3"):
        misses(victim=lambda self, set_: way)


@pytest.mark.parametrize("made", [None, PLAIN, {"edges": PLAIN}])
def test_an_ordering_method_that_returns_something_else(made):
    ORDERINGS.register("wrong", summary="wrong")(lambda network, task, parameters: made)
    with pytest.raises(ew.InputError, match=r"returned .*, no Ordering"):
        ew.order(NETWORK, "wrong", memory=8)


@pytest.mark.parametrize(
    "edges",
    [
        None, PLAIN[:-1], np.r_[PLAIN, 0], np.r_[PLAIN[1:], 1], np.r_[-1, PLAIN[1:]], np.r_[2**62, PLAIN[1:]],
        PLAIN[::-1],
        PLAIN.astype(float), PLAIN.astype(bool), PLAIN.astype(str), PLAIN.reshape(1, -1), np.full(W, np.nan),
    ],
)  # fmt: skip
def test_an_order_that_is_none(edges):
    ORDERINGS.register("wrong", summary="wrong")(lambda network, task, parameters: Ordering(edges, "wrong"))
    with pytest.raises(ew.InputError, match="order"):
        ew.order(NETWORK, "wrong", memory=8)


def encoded(make, role=Role.BUS_CODE, **declared):
    body = {"role": role, "encode": lambda self, coded, offset, state: (make(coded), state), **declared}
    ENCODERS.register("wrong", summary="wrong")(type("Wrong", (Stage,), body))
    return ew.encode(DATA, "wrong", element_bytes=1)


WRONG_BYTES = {
    "one short": lambda data: data[:-1],
    "twice": lambda data: np.r_[data, data],
    "none": lambda data: data[:0],
    "floats": lambda data: data.astype(float),
    "signed": lambda data: data.astype(np.int8),
    "a table": lambda data: data.reshape(1, -1),
    "a list": lambda data: data.tolist(),
    "bytes": lambda data: data.tobytes(),
}


@pytest.mark.parametrize("how", WRONG_BYTES)
@pytest.mark.parametrize("which", ["data", "flags", "extra"])
def test_an_encoder_that_makes_other_bytes(which, how):
    def make(coded):
        parts = {"data": coded.data, "flags": packed_flags(len(coded.data)), "extra": np.zeros_like(coded.data)}
        return Coded(**{**parts, which: WRONG_BYTES[how](parts[which])})

    with pytest.raises(ew.InputError, match=rf"encoder 'wrong' made .* as its {which}, not uint8\[(256|32)\]"):
        encoded(make, flag_wires=2)


@pytest.mark.parametrize(("wires", "has"), [(0, "flags"), (1, "extra"), (1, None), (2, "flags")])
def test_an_encoder_that_drives_other_wires_than_it_declares(wires, has):
    def make(coded):
        flags = packed_flags(len(coded.data)) if has else None
        return Coded(coded.data, flags, np.zeros_like(coded.data) if has == "extra" else None)

    with pytest.raises(ew.InputError, match=f"encoder 'wrong' declares {wires} flag wires and made"):
        encoded(make, flag_wires=wires)


@pytest.mark.parametrize("declared", [
    {"flag_wires": -1}, {"flag_wires": 10}, {"flag_wires": 1.5}, {"flag_wires": "2"}, {"flag_wires": None},
    {"latency_cycles": -1}, {"latency_cycles": float("nan")}, {"latency_cycles": 2**40}, {"latency_cycles": "1"},
    {"element_sizes": "1"}, {"element_sizes": None}, {"element_sizes": 5},
])  # fmt: skip
def test_an_encoder_that_declares_what_cannot_be(declared):
    with pytest.raises(
        ew.InputError, match=f"(encoder Wrong|chain 'wrong') declares .*{next(iter(declared)).split('_')[0]}"
    ):
        encoded(lambda coded: coded, **declared)


def test_the_checks_stand_without_asserts():
    """python -O removes assert statements: a short result was then counted as it came."""
    code = (
        "import numpy as np, edgewatt as ew\n"
        "from edgewatt.plugins import *\n"
        "body = {'role': Role.BUS_CODE, 'encode': lambda self, c, o, s: (Coded(c.data[:-1]), s)}\n"
        "ENCODERS.register('wrong', summary='wrong')(type('Wrong', (Stage,), body))\n"
        "try:\n    ew.encode(np.zeros(64, np.uint8), 'wrong', element_bytes=1)\n"
        "except ew.InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert done.stdout == "encoder 'wrong' made uint8[63] as its data, not uint8[64]\n", done.stderr


@pytest.mark.parametrize("registry", [CACHE_POLICIES, ENCODERS, FORMATS], ids=lambda registry: registry.what)
@pytest.mark.parametrize("member", [5, "a text", object, len], ids=repr)
def test_what_is_no_member_of_a_kind(registry, member):
    with pytest.raises(TypeError, match=f"{registry.what} 'wrong' must be a.* of"):
        registry.register("wrong", summary="wrong")(member)
