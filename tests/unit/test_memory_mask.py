"""Masks for a memory reach the bound where they say so, feed every neuron, and never cost more than free pruning."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.windows_oracle import is_legal, largest_bag, most_at_the_bound

import edgewatt as ew
from edgewatt.prune.mask import order_in
from traces.base.errors import InputError
from traces.networks.prune import prune_magnitude
from traces.pruning.assignment import arranged, share_kept
from traces.pruning.windows import capacity, fit, least_memory, memory_for, pairs_of
from traces.readers.parts.layers import dense_layer, from_layers
from traces.readers.parts.model_network import Unrolled, Window

DIGITS = Path(__file__).parents[2] / "configs" / "examples" / "networks" / "digits_small.npz"
WIDTHS = st.lists(st.integers(1, 12), min_size=2, max_size=6)


def trained(widths: list[int], seed: int = 0) -> ew.Network:
    rng = np.random.default_rng(seed)
    layers = [dense_layer(rng.normal(size=(b, a)), f"layer {k}") for k, (a, b) in enumerate(pairs_of(widths))]
    return from_layers(layers, name="dense")


@settings(deadline=None, max_examples=60)
@given(widths=WIDTHS, more=st.integers(0, 12), spread=st.floats(0, 1), block=st.sampled_from([1, 4]))
def test_all_that_windows_allow_reaches_the_bound(widths: list[int], more: int, spread: float, block: int) -> None:
    memory = least_memory(widths, block=block) + more
    windows = fit(widths, memory, spread=spread, block=block)
    first = np.cumsum((0, *widths))
    layer, target, source = (
        np.concatenate(each)
        for each in zip(
            *((np.full(len(t), k), t, s) for k in range(len(widths) - 1) for t, s in (windows.pairs(k),)), strict=True
        )
    )
    order = windows.order(layer, target, source)
    connections = [(int(first[layer[e]] + source[e]), int(first[layer[e] + 1] + target[e])) for e in order]
    assert len(set(connections)) == len(connections) == windows.capacity
    assert is_legal(connections)
    assert largest_bag(connections) + 1 <= windows.memory <= memory


@settings(deadline=None, max_examples=80)
@given(widths=WIDTHS, more=st.integers(0, 20), share=st.floats(0.02, 1), seed=st.integers(0, 99), data=st.data())
def test_a_mask_has_the_connections_asked_for_and_feeds_every_neuron(
    widths: list[int], more: int, share: float, seed: int, data: st.DataObject
) -> None:
    memory = least_memory(widths) + more
    room = capacity(widths, memory).windows
    connections = max(1, round(share * room))
    try:
        mask = ew.memory_mask(widths, memory=memory, connections=connections, seed=seed)
    except InputError as error:
        assert "cannot feed" in str(error)
        return
    assert sum(int(m.sum()) for m in mask.masks) == connections == mask.network.n_connections
    assert mask.proved and mask.total == ew.count_io(mask.network, mask.order, memory=memory).total
    assert mask.bound == ew.io_bounds(mask.network).lower_total
    for into, out in pairs_of(mask.masks):
        assert (into.any(axis=1) == out.any(axis=0)).all()
    assert mask.masks[-1].any(axis=1).all()
    for own, allowed in zip(mask.masks, mask.windows.allowed(), strict=True):
        assert not (own & ~allowed).any()


@pytest.mark.parametrize("widths", [[2, 2], [2, 3], [1, 2, 1], [2, 2, 2], [1, 3, 1]])
@pytest.mark.parametrize("memory", [3, 4, 5])
def test_capacity_lies_below_what_any_order_holds(widths: list[int], memory: int) -> None:
    held, most = capacity(widths, memory), most_at_the_bound(widths, memory)
    assert max(held.windows, held.blocks_of_16, held.two_of_four) <= most <= held.most


def test_the_shape_of_the_concept_page() -> None:
    narrow = fit((64, 256, 128, 256, 10), 119)
    assert narrow.sizes == (64, 53, 53, 10) and narrow.live == (64, 256, 53, 256, 10)
    held = capacity((64, 256, 128, 256, 10), 36)
    assert held.windows == 17_408 and held.most == 23_681


def test_tiles_read_inputs_again_so_that_every_neuron_may_see_all() -> None:
    widths = (40, 256, 128, 256, 10)
    tiles = ew.memory_mask(widths, memory=34, density=0.1, extra=1200)
    assert tiles.windows.allowed()[0].all() and tiles.windows.tile == 10 and 0 < tiles.above <= 1200
    assert tiles.total == ew.count_io(tiles.network, tiles.order, memory=34).total
    block = ew.memory_mask((24, 96, 24), memory=20, density=0.2, extra=150)  # outputs are written again as well
    assert block.windows.live == (24, 54, 24) and 0 < block.above <= 150


@pytest.mark.parametrize("policy", ["min", "lru"])
def test_policies_that_reach_the_bound(policy: str) -> None:
    mask = ew.memory_mask((64, 256, 128, 256, 10), memory=119, density=0.1, policy=policy)
    assert mask.proved and ew.count_io(mask.network, mask.order, memory=119, policy=policy).total == mask.bound


def test_a_policy_without_a_bound_says_how_far_it_is() -> None:
    mask = ew.memory_mask((16, 64, 10), memory=40, density=0.3, policy="rr")
    assert not mask.proved and f"{mask.total - mask.bound} I/Os are above" in mask.advice


def test_below_the_room_for_the_connections_the_total_is_stated() -> None:
    mask = ew.memory_mask((64, 256, 128, 256, 10), memory=36, density=0.25)
    assert not mask.proved and "M = 36 has room for 17408 connections" in mask.advice
    assert mask.total == ew.count_io(mask.network, mask.order, memory=36).total
    least = memory_for((64, 256, 128, 256, 10), mask.network.n_connections)
    assert f"need M = {least}" in mask.advice


def test_blocks_and_groups() -> None:
    mask = ew.memory_mask((64, 128, 64), memory=90, density=0.2, block=16)
    assert mask.proved
    for own in mask.masks:
        assert (own.reshape(-1, 16, own.shape[1]).all(axis=1) == own.reshape(-1, 16, own.shape[1]).any(axis=1)).all()
    mask = ew.memory_mask((64, 128, 64), memory=90, density=0.2, groups=(2, 4))
    assert mask.proved and all(own.reshape(len(own), -1, 4).sum(axis=2).max() <= 2 for own in mask.masks)


def test_a_machine_gives_the_memory() -> None:
    mask = ew.memory_mask((64, 256, 256, 10), machine="scratchpad-64k", lanes=128, connections=8000)
    assert mask.memory == 127 and mask.proved


@pytest.mark.parametrize("density", [0.05, 0.3])
@pytest.mark.parametrize("memory", [20, 60, 200])
def test_a_network_is_never_worse_than_pruned_freely(density: float, memory: int) -> None:
    network = trained([20, 50, 30, 8])
    mask = ew.memory_mask(network, memory=memory, density=density)
    free = prune_magnitude(network, n_connections=mask.network.n_connections)
    best = ew.count_io(free, ew.order(free, "auto", memory=memory, moves=20_000), memory=memory).total
    assert mask.total <= best
    assert mask.free is not None and ("prune freely" in mask.advice) == (mask.free <= mask.total)
    assert set(mask.network.weights.tolist()) <= set(network.weights.tolist())  # type: ignore[union-attr]


def test_io_spent_outside_the_windows_keeps_more_weight() -> None:
    network = trained([20, 50, 30, 8])
    strict = ew.memory_mask(network, memory=24, density=0.2)
    loose = ew.memory_mask(network, memory=24, density=0.2, extra=40)
    assert strict.proved and strict.bound < loose.total <= loose.bound + 40
    kept = [float(np.abs(each.network.weights).sum()) for each in (strict, loose)]
    assert kept[1] > kept[0] and strict.network.n_connections == loose.network.n_connections
    ew.count_io(loose.network, loose.order, memory=24)  # a legal order


def test_a_sparse_network_keeps_its_own_connections() -> None:
    network = ew.load(DIGITS)
    mask = ew.memory_mask(network, memory=60, density=0.5)
    pairs = set(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    own = set(zip(mask.network.sources.tolist(), mask.network.targets.tolist(), strict=True))
    assert own < pairs and len(own) == 4000


def test_the_assignment_keeps_more_than_chance_and_changes_no_output() -> None:
    rng, widths = np.random.default_rng(0), [12, 40, 12]
    scores = [rng.random((b, a)) ** 8 for a, b in pairs_of(widths)]
    windows = fit(widths, 14)
    better, share = arranged(windows, scores)
    assert share == pytest.approx(share_kept(better, scores) / sum(map(np.sum, scores)))
    assert share_kept(better, scores) > 1.2 * share_kept(windows, scores)


def test_convolutions_are_windows_of_channels() -> None:
    channels, side, rng = (3, 8, 4), 5, np.random.default_rng(0)
    values = [side * side] * 3
    mask = ew.memory_mask(channels, memory=250, connections=20, values=values)
    made = Unrolled("conv")
    ids = [made.image(channels[0], side, side)]
    for own in mask.masks:
        kernel = rng.normal(size=(*own.shape, 3, 3)).astype(np.float32) * own[..., None, None]
        ids.append(made.convolution(ids[-1], kernel, Window(padding=(1, 1, 1, 1)), "conv"))
    network = made.network(ids[0], ids[-1].ravel(), activation="relu", name="conv")
    edges = order_in(mask.windows, network)
    assert ew.count_io(network, edges, memory=250).total == ew.io_bounds(network).lower_total


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"memory": 3, "density": 0.5}, "M = 3 has room for 0 connections at the bound"),
        ({"memory": 20}, "give connections or density"),
        ({"memory": 20, "density": 1.5}, "density is the share to keep"),
        ({"memory": 20, "connections": 10**6}, "1000000 connections cannot be kept of"),
        ({"density": 0.5}, "give memory"),
        ({"memory": 20, "density": 0.5, "policy": "fifo"}, "unknown policy"),
        ({"memory": 20, "connections": 3}, "3 connections cannot feed the 8 outputs"),
    ],
)
def test_bad_input_is_named(asked: dict[str, object], said: str) -> None:
    if "room for 0" in said:
        assert said in ew.memory_mask((10, 20, 8), **asked).advice  # type: ignore[arg-type]
        return
    with pytest.raises(InputError, match=said):
        ew.memory_mask((10, 20, 8), **asked)  # type: ignore[arg-type]


def test_networks_that_are_no_chain_are_refused() -> None:
    skip = ew.Network([0, 0, 1], [1, 2, 2], n_neurons=3, inputs=[0], outputs=[2])
    with pytest.raises(InputError, match="does not lead from a layer to the next one"):
        ew.memory_mask(skip, memory=4, density=1.0)


@pytest.mark.parametrize(
    "options",
    [{"density": "a"}, {"connections": 1.5}, {"connections": "3"}, {"policy": {}}, {"block": None},
     {"block": 10**12}, {"groups": -1}, {"groups": [1]}, {"values": 3}, {"neurons": "x"}, {"seed": -1}, {"extra": -1},
     {"extra": 1.5}],
)  # fmt: skip
def test_options_of_another_type_are_refused(options: dict) -> None:
    """Each was a traceback or taken as it was; blocks of 10^12 outputs did not end."""
    given = options if {"density", "connections"} & set(options) else {"density": 0.5, **options}
    with pytest.raises(ew.InputError):
        ew.memory_mask([6, 5, 4], memory=5, **given)


def test_layers_without_end() -> None:
    with pytest.raises(ew.InputError, match="a score for each pair would take"):
        ew.memory_mask([10**6] * 3, memory=5, density=0.01)
    assert ew.memory_mask([1] * 1500, memory=5, density=1.0).total >= 0  # one call in another for each layer
