"""Masks of a layered network with which a small fast memory reads and writes no more than it must."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import MIN
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import Ordering
from reorder.order import order as make_order
from traces.base.checks import check_seed, whole_number
from traces.base.errors import InputError, shown
from traces.base.memory import claim
from traces.base.reprs import OneLineRepr
from traces.networks.checks import checked_memory, policy_codes
from traces.networks.network import Network
from traces.networks.prune import prune_magnitude
from traces.pruning.assignment import arranged, strongest
from traces.pruning.layers import Layers, layers_of
from traces.pruning.selection import Candidates, Mask, choose
from traces.pruning.windows import Windows, fit, least_memory, memory_for, mixed, pairs_of, tiled

TRIES = 8  # of smaller windows, for LRU and RR; four end most searches
NEAR = 64  # windows are not tried again for less than this part more memory
QUICK = 200_000  # connections up to which constructions are tried beside the windows' own order
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # targets, sources


@dataclass(frozen=True, eq=False)
class MemoryMask(OneLineRepr):
    """Which connections to keep for a memory, and the order that belongs to them.

    masks: bool[outputs, inputs] of each layer. network: with these connections, layer by layer; their weights are the
    given network's, or none. order: of its connections. total: its I/Os with M = `memory` under `policy`. bound: what
    every order needs (Theorem 1), W + N + S; both None where `values` were given. windows: all connections that the
    memory allows, of which `masks` are some (`windows.allowed()`); any others of them do as well. free: I/Os of
    magnitude pruning to as many connections, in the best order known without a search; None without weights. advice: a
    sentence where free pruning is as good, or windows did not fit.
    """

    masks: list[Mask]
    network: Network
    order: Ordering
    memory: int
    policy: str
    total: int | None
    bound: int | None
    windows: Windows
    free: int | None = None
    advice: str = ""

    __repr__ = OneLineRepr.__repr__

    @property
    def proved(self) -> bool:
        """Whether the total is the bound: no order, and no other mask of as many neurons, needs less."""
        return self.windows.memory <= self.memory if self.total is None else self.total == self.bound

    @property
    def above(self) -> int:
        return 0 if self.total is None or self.bound is None else self.total - self.bound

    def _repr_fields(self) -> dict[str, object]:
        return {
            "widths": "-".join(map(str, self.windows.widths)), "memory": self.memory, "policy": self.policy,
            "connections": self.network.n_connections, "total": self.total, "bound": self.bound, "proved": self.proved,
            "windows": self.windows.sizes, "free": self.free, "advice": self.advice or None,
        }  # fmt: skip


def memory_mask(
    network: Network | Sequence[int],
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    connections: int | None = None,
    density: float | None = None,
    neurons: int | None = None,
    block: int = 1,
    groups: tuple[int, int] | None = None,
    extra: int = 0,
    values: Sequence[int] | None = None,
    seed: int = 0,
) -> MemoryMask:
    """Return masks with so many connections that a memory needs as few I/Os as there can be.

    network: widths of the layers, inputs first (then the connections kept are random), or a layered network: its
    heaviest connections stay, and its neurons take the places at which windows keep the most weight.
    memory: M of the I/O model. connections: how many to keep, or density, their share.
    neurons: how many may have connections, in all layers; None: for a network as many as magnitude pruning leaves, so
    that the total is at most that of any order of the freely pruned network; for widths as many as do.
    block: consecutive outputs with the same connections; groups: (2, 4) keeps at most 2 of 4 consecutive inputs of an
    output. extra: I/Os above the bound that may be spent: on inputs read again, where memory has no room for all of
    them, and on a network's strongest connections outside the windows. values: how many values a neuron of each layer
    stands for, where widths are channels: the pixels of its map; `connections` then counts pairs of channels, and
    `order_in` orders the unrolled network. With LRU and RR the windows are made smaller until the bound is reached.
    Where the memory has no room for the connections at the bound, they get the windows of the least memory that has,
    and `total` says what this one needs. Raises InputError naming the nearest M or number of connections.
    """
    _check_options(connections, neurons, (policy, pinning), groups, values, seed)
    sees_future = policy_codes(policy, pinning)[0] == MIN
    layers = layers_of(network) if isinstance(network, Network) else None
    widths = layers.widths if layers is not None else _widths(network)
    memory = checked_memory(memory)
    dense = len(layers.layer) if layers is not None else sum(a * b for a, b in pairs_of(widths))
    target = target_of(connections, density, dense)
    whole_number(block, "block", 1, max(widths))
    claim(8 * sum(a * b for a, b in pairs_of(widths)), f"layers of {shown(widths)} neurons", "a score for each pair")
    rng, free = np.random.default_rng(seed), None
    counted: Any = {"memory": memory, "policy": policy, "pinning": pinning}
    scores: list[Any] = [rng.random((b, a), dtype=np.float32) for a, b in pairs_of(widths)]
    if layers is not None and layers.network.weights is not None:
        scores = layers.matrices(np.abs(layers.network.weights))
        pruned = prune_magnitude(layers.network, n_connections=target)
        free = count_io(pruned, make_order(pruned, "auto", moves=0, **counted), **counted).total
        if neurons is None:
            neurons = int(pruned.touched.sum()) + int((pruned.in_degree[pruned.outputs] > 0).sum()) - widths[-1]
    room = target if groups is None else min(-(-target * groups[1] // groups[0]), dense)
    maps = tuple(values or ())
    if maps and (len(maps) != len(widths) or min(maps) < 1 or layers is not None or not sees_future):
        raise InputError(f"values are {len(widths)} whole numbers of at least 1, for widths and policy 'min' alone")
    shapes, near = fitting(widths, memory, room, block, maps, extra)
    if maps and near:
        raise InputError(near)

    def made(windows: Windows, outside: int = 0) -> MemoryMask:
        masks = masks_of(windows, scores, target, layers=layers, neurons=neurons, groups=groups, outside=outside)
        kept, parts = _kept(widths, masks, layers)
        if maps:  # what connections of channels cost is their kernels' matter; that the bound is reached is not
            order = Ordering(windows.order(*_of_layers(kept, widths)), "memory-mask", {"memory": memory}, seed)
            return MemoryMask(masks, kept, order, memory, policy, None, None, windows)
        edges = order_in(windows, kept, parts)
        total, bound = count_io(kept, edges, **counted).total, io_bounds(kept).lower_total
        if (near or total > bound + extra) and not outside and sees_future and kept.n_connections <= QUICK:
            found = make_order(kept, "auto", seed=seed, moves=0, **counted).edges
            least = count_io(kept, found, **counted).total
            total, edges = (least, found) if least < total else (total, edges)
        order = Ordering(edges, "memory-mask", {"memory": memory, "policy": policy}, seed)
        return MemoryMask(masks, kept, order, memory, policy, total, bound, windows, free, near)

    def at_places(windows: Windows) -> Windows:
        return mixed(windows, seed) if free is None else placed(windows, scores, target, seed)[0]

    if free is None:
        best = made(at_places(shapes[0]))
    else:
        best = made(max((placed(each, scores, target, seed) for each in shapes), key=lambda found: found[1])[0])
    if maps:
        return best
    if best.above > extra and not near:  # a policy that does not see the future needs room to spare
        best = _with_room_to_spare(lambda windows: made(at_places(windows)), best, room)
        if not best.proved:
            advice = f"with {policy} no windows tried reach the bound: {best.above} I/Os are above it"
            best = replace(best, advice=advice)
    if extra and free is not None:
        best = _with_outside(lambda outside: made(best.windows, outside), best, extra)
    if free is not None and best.total is not None and free <= best.total:
        advice = f"prune freely here: magnitude pruning needs {free} I/Os, with windows it is {best.total}"
        return replace(best, advice=advice)
    return best


def _with_outside(made: Any, best: MemoryMask, extra: int) -> MemoryMask:
    """Return the mask with the most of the strongest connections outside its windows that stay within `extra` I/Os."""
    low, high = 0, best.network.n_connections
    while high - low > max(1, high // 100):
        middle = (low + high + 1) // 2
        tried = made(middle)
        if tried.above <= extra:
            low, best = middle, tried
        else:
            high = middle
    return best


def masks_of(
    windows: Windows,
    scores: Sequence[npt.NDArray[np.floating]],
    connections: int,
    *,
    layers: Layers | None = None,
    neurons: int | None = None,
    groups: tuple[int, int] | None = None,
    outside: int = 0,
) -> list[Mask]:
    """Return the best masks in windows; of the connections of `layers` alone where they are given.

    outside: how many of the strongest connections that windows do not allow may stay as well; more where the windows
    hold too few of the network's own.
    """
    inside = [windows.pairs(k) for k in range(len(windows.sizes))]
    if layers is not None:
        there = layers.matrices(np.ones(len(layers.layer), bool))
        inside = [(t[on], s[on]) for (t, s), each in zip(inside, there, strict=True) for on in (each[t, s],)]
    while True:
        pairs = inside if not outside else _with_strongest(inside, scores, outside)
        try:
            candidates = Candidates(windows.widths, pairs, scores, block=windows.block, groups=groups)
            return choose(candidates, connections, neurons=neurons)
        except InputError:  # windows hold too few of a sparse network's connections
            if layers is None or sum(len(t) for t, _ in pairs) >= len(layers.layer):
                raise
            outside = 2 * outside + max(1, len(layers.layer) // 64)


def _with_strongest(inside: Sequence[Pairs], scores: Sequence[npt.NDArray[np.floating]], outside: int) -> list[Pairs]:
    """Return the pairs and the strongest others, so many in all layers together."""
    beyond = [np.array(score) for score in scores]
    for score, (t, s) in zip(beyond, inside, strict=True):
        score[t, s] = 0
    ranked = np.sort(np.concatenate([score[score > 0] for score in beyond]))
    least = ranked[max(0, len(ranked) - outside)] if len(ranked) else np.inf
    more = [np.nonzero(score >= least) for score in beyond]
    return [(np.concatenate((t, u)), np.concatenate((s, v))) for (t, s), (u, v) in zip(inside, more, strict=True)]


def placed(
    windows: Windows, scores: Sequence[npt.NDArray[np.floating]], connections: int, seed: int
) -> tuple[Windows, float]:
    """Return windows whose neurons stand where the most of the largest scores is allowed, and the share allowed."""
    total = sum(score.size for score in scores)
    large = strongest(scores, [min(score.size, 2 * connections * score.size // total + 1) for score in scores])
    return arranged(windows, large, seed=seed)


def order_in(windows: Windows, network: Network, layers: Layers | None = None) -> npt.NDArray[np.int64]:
    """Return the order of work of a network whose connections lie in windows: int64[W].

    layers: of the network; None: its neurons are numbered layer by layer. A neuron of `values` > 1 (a channel) stands
    for as many consecutive neurons of the network, the pixels of its map.
    """
    if layers is not None:
        return windows.order(layers.layer, layers.target, layers.source)
    values = np.array(windows.values or (1,) * len(windows.widths))
    layer, target, source = _of_layers(network, (np.array(windows.widths) * values).tolist())
    return windows.order(layer, target // values[layer + 1], source // values[layer])


def _of_layers(network: Network, widths: Sequence[int]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the layer, target and source of each connection, the latter two inside their layers."""
    first = np.cumsum((0, *widths))
    layer = np.searchsorted(first, network.targets, side="right") - 2
    return layer, network.targets - first[layer + 1], network.sources - first[layer]


def _kept(widths: Sequence[int], masks: Sequence[Mask], layers: Layers | None) -> tuple[Network, Layers | None]:
    if layers is not None:
        kept = layers.at(masks).astype(bool)
        part = (layers.layer[kept], layers.target[kept], layers.source[kept])
        return layers.only(kept), replace(layers, layer=part[0], target=part[1], source=part[2])
    first = np.cumsum((0, *widths))
    ends = [np.nonzero(mask) for mask in masks]
    return Network(
        np.concatenate([s + first[k] for k, (_, s) in enumerate(ends)]),
        np.concatenate([t + first[k + 1] for k, (t, _) in enumerate(ends)]),
        n_neurons=int(first[-1]),
        inputs=np.arange(widths[0]),
        outputs=np.arange(first[-2], first[-1]),
        layer=np.repeat(np.arange(len(masks)), [len(t) for t, _ in ends]),
        name="-".join(map(str, widths)),
    ), None


def fitting(
    widths: Sequence[int], memory: int, connections: int, block: int = 1, values: Sequence[int] = (), extra: int = 0
) -> tuple[list[Windows], str]:
    """Return windows with room for the connections, and a sentence where that takes a larger memory ('' if not).

    First those in which training keeps the most accuracy: tiles that `extra` I/Os pay for (one is free if it stays with
    all of a single hidden layer).
    """
    dense = sum(a * b for a, b in pairs_of(widths))
    whole_number(extra, "extra", 0)
    if connections > dense:
        raise InputError(f"{connections} connections are more than the {dense} of {'-'.join(map(str, widths))}")
    shape: Any = {"block": block, "values": values}
    most = room_in(widths, memory, **shape)
    fits = [fit(widths, memory, connections=connections, **shape)] if most >= connections else []
    whole = bool(fits) and list(fits[0].sizes) == fits[0].staying
    if (extra or len(widths) == 3) and block == 1 and not values and not whole:
        fits = [found for found in (tiled(widths, memory, connections, extra),) if found] + fits
    if fits:
        return fits, ""
    least = memory_for(widths, connections, **shape)
    return [fit(widths, least, connections=connections, **shape)], (
        f"M = {memory} has room for {most} connections at the bound, a density of {100 * most / dense:.3g} %: windows "
        f"for {connections} need M = {least}"
    )


def room_in(widths: Sequence[int], memory: int, *, block: int = 1, values: Sequence[int] = ()) -> int:
    """Return the most connections that windows allow; 0 where they need a larger memory."""
    if memory < least_memory(widths, block=block, values=values):
        return 0
    return fit(widths, memory, spread=0.0, block=block, values=values).capacity


def _with_room_to_spare(made: Any, best: MemoryMask, connections: int) -> MemoryMask:
    """Return the mask of about the largest windows that reach the bound, or of those that come nearest.

    What LRU needs grows about in proportion to the windows' memory, so the next ones have as much less, or more. What
    RR needs does not: below windows that are too large the middle is next.
    """
    widths, block, proved, tried = best.windows.widths, best.windows.block, None, best
    low, high = memory_for(widths, connections, block=block), best.memory
    for _ in range(TRIES):
        memory = tried.windows.memory * best.memory // _memory_to_reach_the_bound(tried)
        if low >= high or (proved is not None and memory < low + low // NEAR):
            break
        memory = min(max(memory, low if proved else (low + high) // 2), high - 1)
        tried = made(fit(widths, memory, connections=connections, block=block))
        best = min(best, tried, key=lambda mask: mask.above)
        if tried.proved:
            proved, low = tried, memory + 1
        else:
            high = memory
    return proved or best


def _memory_to_reach_the_bound(mask: MemoryMask) -> int:
    def reaches(memory: int) -> bool:
        return count_io(mask.network, mask.order, memory=memory, policy=mask.policy).total == mask.bound

    return bisect_left(range(mask.network.n_neurons + 1), True, lo=3, key=reaches)


def _widths(given: Any) -> tuple[int, ...]:
    widths = tuple(whole_number(int(n) if isinstance(n, np.integer) else n, "a layer's width", 1) for n in given)
    if len(widths) < 2:
        raise InputError(f"a network needs the widths of two layers at least, not {list(widths)}")
    return widths


def _check_options(connections: Any, neurons: Any, names: tuple[Any, ...], groups: Any, values: Any, seed: Any) -> None:
    for what, number in (("connections", connections), ("neurons", neurons)):
        if number is not None:
            whole_number(number, what, 1)
    check_seed(seed)
    for name in names:
        if not isinstance(name, str | None):
            raise InputError(f"policy and pinning are names, not {shown(name)}")
    for what, given in (("groups", groups), ("values", values)):
        if not isinstance(given, tuple | list | None):
            raise InputError(f"{what} are whole numbers, not {shown(given)}")
        for number in given or ():
            whole_number(number, what, 1)
    if groups is not None and (len(groups) != 2 or groups[0] > groups[1]):
        raise InputError(f"groups are (kept, of), not {shown(groups)}")


def target_of(connections: int | None, density: float | None, dense: int) -> int:
    if (connections is None) == (density is None):
        raise InputError("give connections or density, one of them")
    if density is not None:
        if isinstance(density, bool) or not isinstance(density, int | float) or not 0 < density <= 1:
            raise InputError(f"density is the share to keep, above 0 and at most 1, not {shown(density)}")
        return max(1, round(density * dense))
    assert connections is not None
    if not 1 <= connections <= dense:
        raise InputError(f"{connections} connections cannot be kept of {dense}")
    return connections
