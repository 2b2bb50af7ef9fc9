"""The sparse network: an immutable list of weighted connections between neurons."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, shown, unknown_name
from traces.base.memory import claim
from traces.base.reprs import OneLineRepr

MAX_NEURONS = MAX_CONNECTIONS = 2**31 - 1  # the kernels number both with 32 bits
_BYTES_PER_NEURON = 32  # while a network is checked (24 measured): a file of one line must not fill the memory
COMPILED_ACTIVATIONS = ("identity", "relu", "clipped-relu")
"""What inference kernels, C files and int8 know; clipped-relu: the Graph Challenge's min(max(z, 0), 32)."""

ACTIVATIONS = (*COMPILED_ACTIVATIONS, "leaky-relu", "tanh", "sigmoid", "silu", "gelu", "hard-swish", "relu6")
"""In the order of the codes of cython_ext/trace/values.h. The slope of leaky-relu is .01, PyTorch's default, unless
`slopes` says otherwise; gelu is x / 2 * (1 + erf(x / sqrt 2)), hard-swish x * clip(x / 6 + 1/2, 0, 1)."""
MIXED = "mixed"
"""The activation of a network whose neurons have each their own (`activations`)."""

_TABLES = {"batch": "(B, I)", "positions": "(N, 3)"}

Int64Array = npt.NDArray[np.int64]


def _frozen(values: Any, dtype: type, name: str) -> np.ndarray:
    try:
        given = np.asarray(values)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    if given.ndim != (2 if name in _TABLES else 1):
        shape = f"two-dimensional, {_TABLES[name]}" if name in _TABLES else "one-dimensional"
        raise InputError(f"{name} must be {shape}, not of shape {given.shape}")
    if np.issubdtype(dtype, np.integer):
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise InputError(f"{name} must hold integers, not {given.dtype}")
        if given.dtype == np.uint64 and given.size and given.max() > np.iinfo(np.int64).max:
            raise InputError(f"{name} holds a value above 2^63 - 1")
    elif given.size and not is_real(given.dtype):
        raise InputError(f"{name} must hold real numbers, not {given.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold becomes infinite and is refused below
        array: np.ndarray = np.array(given, dtype=dtype, order="C", copy=True)
    return _read_only(array)


def _same_shapes(used: Int64Array) -> None:
    """Check that layers which share stored weights share all of them; used: int64[2, n], each (layer, id) once."""
    layer, ids = used
    layers, start = np.unique(layer, return_index=True)
    sets = dict(zip(layers.tolist(), np.split(ids, start[1:]), strict=True))
    owner: dict[int, int] = {}
    shared = np.flatnonzero(np.bincount(ids) > 1)
    for number, own in sets.items():
        for weight in own[np.isin(own, shared)].tolist():
            other = owner.setdefault(weight, number)
            if other != number and not np.array_equal(sets[other], own):
                raise InputError(
                    f"layers {other} and {number} share the stored weight {weight}, but layer {other} has "
                    f"{len(sets[other])} stored weights and layer {number} {len(own)}, not the same: only layers of "
                    "one shape can share their weights"
                )


def _read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def is_real(dtype: np.dtype) -> bool:
    if dtype.kind == "V" and dtype.names is None:  # ml_dtypes' small floats
        return np.can_cast(dtype, np.float32)
    return dtype.kind in "iuf"


class ReadOnlyCopies:
    """What holds arrays that never change: those of its copies, by pickle or deepcopy, do not either."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)


@dataclass(frozen=True, eq=False, repr=False)
class Network(ReadOnlyCopies, OneLineRepr):
    """A feed-forward sparse network. Connection k goes from ``sources[k]`` to ``targets[k]``; W connections, N neurons.

    The order of the arrays is the network's own order of work. All arrays are copied and read-only.

    sources, targets: int64[W], neuron ids in [0, n_neurons).
    inputs, outputs: int64 ids. Inputs have no incoming connection. A neuron may be both only if it is isolated.
    weights: float32[W] or None. biases: float32[N] or None (0 where absent).
    layer: int64[W] layer of each connection, below N, or None where the network is not layered.
    activation: one of ACTIVATIONS, applied to every neuron with incoming connections that is not an
        output (outputs are left linear), except 'clipped-relu', which applies to outputs too (Graph Challenge); or
        'mixed', where `activations` has the one of each.
    batch: float32[B, I] input vectors in the order of `inputs`, or None.
    weight_ids: int64[W], which stored weight each connection has, or None where each has its own. Connections of one id
        have one weight (a convolution's); ids count from 0, and their order is the order in storage.
    positions: int64[N, 3] (layer, y, x) of each neuron, or None. The layer counts from the inputs (0) and is below N;
        y and x are -1 where a layer has no image.
    activations: uint8[N], index in ACTIVATIONS of what each neuron with incoming connections has, outputs too, where
        the activation is 'mixed' (not clipped-relu), else None.
    slopes: float32[N], the factor of leaky-relu below zero, or None (.01).
    notes: what a reader has to say of the network, one sentence each.

    Raises InputError naming the connection or neuron at fault.
    """

    sources: Int64Array
    targets: Int64Array
    n_neurons: int
    inputs: Int64Array
    outputs: Int64Array
    weights: npt.NDArray[np.float32] | None = None
    biases: npt.NDArray[np.float32] | None = None
    layer: Int64Array | None = None
    activation: str = "relu"
    batch: npt.NDArray[np.float32] | None = None
    name: str = field(default="network", kw_only=True)
    weight_ids: Int64Array | None = field(default=None, kw_only=True)
    positions: Int64Array | None = field(default=None, kw_only=True)
    activations: npt.NDArray[np.uint8] | None = field(default=None, kw_only=True)
    slopes: npt.NDArray[np.float32] | None = field(default=None, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    depth: Int64Array = field(init=False, repr=False)
    """int64[N]: connections on the longest path from a neuron without incoming ones."""

    def _repr_fields(self) -> dict[str, object]:
        layers = None if self.layer is None else len(np.unique(self.layer))
        return {
            "name": self.name, "connections": len(self.sources), "neurons": self.n_neurons, "layers": layers,
            "inputs": len(self.inputs), "outputs": len(self.outputs), "activation": self.activation,
            "weights": "none" if self.weights is None else None,
        }  # fmt: skip

    def __post_init__(self) -> None:
        put: Any = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 - the class is frozen
        for name in ("sources", "targets", "inputs", "outputs"):
            put(name, _frozen(getattr(self, name), np.int64, name))
        given = (
            (("weights", "biases", "batch", "slopes"), np.float32),
            (("layer", "weight_ids", "positions"), np.int64),
            (("activations",), np.uint8),
        )
        for name, dtype in ((name, dtype) for names, dtype in given for name in names):
            if getattr(self, name) is not None:
                put(name, _frozen(getattr(self, name), dtype, name))
        if not isinstance(self.notes, Iterable):
            raise InputError(f"notes: sentences are wanted, not {shown(self.notes)}")
        put("notes", tuple(self.notes))
        try:
            put("n_neurons", operator.index(self.n_neurons))
        except TypeError:
            raise InputError(f"n_neurons must be an integer, not {shown(self.n_neurons)}") from None
        self._validate()

    def _validate(self) -> None:
        n, w = self.n_neurons, len(self.sources)
        if n < 1 or w < 1:
            raise InputError(f"the network is empty: {shown(n)} neurons, {w} connections")
        if n > MAX_NEURONS or w > MAX_CONNECTIONS:
            raise InputError(f"{shown(n)} neurons and {w} connections are too many: 2^31 - 1 of each can be numbered")
        claim(_BYTES_PER_NEURON * n, f"network {shown(self.name)}", f"its {n} neurons")
        if len(self.targets) != w:
            raise InputError(f"{w} sources but {len(self.targets)} targets")
        for name in ("sources", "targets", "inputs", "outputs"):
            ids = getattr(self, name)
            bad = np.flatnonzero((ids < 0) | (ids >= n))
            if bad.size:
                what = f"connection {bad[0]}: {name[:-1]}" if name in ("sources", "targets") else f"{name}[{bad[0]}]:"
                raise InputError(f"{what} neuron {ids[bad[0]]} does not exist (ids are 0 to {n - 1})")
        for name in ("inputs", "outputs"):
            unique, counts = np.unique(getattr(self, name), return_counts=True)
            if (counts > 1).any():
                raise InputError(f"{name}: neuron {unique[counts > 1][0]} is named twice")
        if not isinstance(self.activation, str):
            raise InputError(f"activation must be a name, not {shown(self.activation)}")
        if self.activation not in (*ACTIVATIONS, MIXED):
            raise unknown_name("activation", self.activation, ACTIVATIONS)
        if (self.activations is not None) != (self.activation == MIXED):
            raise InputError(f"activations, one of each neuron, go with the activation {MIXED}: give both or neither")
        self._validate_edges()
        of_neurons = ("biases", n), ("positions", n), ("activations", n), ("slopes", n)
        for name, length in (("weights", w), ("layer", w), ("weight_ids", w), *of_neurons):
            values = getattr(self, name)
            if values is not None and len(values) != length:
                raise InputError(f"{name} has {len(values)} values, expected {length}")
        if self.layer is not None and self.layer.min() < 0:
            raise InputError(f"connection {int(np.argmax(self.layer < 0))}: its layer is negative")
        if self.layer is not None and self.layer.max() >= n:  # arrays of a place a layer stay small
            k = int(np.argmax(self.layer))
            raise InputError(f"connection {k}: its layer is {self.layer[k]}, but {n} neurons have layers 0 to {n - 1}")
        codes = self.activations
        if codes is not None and ((codes >= len(ACTIVATIONS)) | (codes == ACTIVATIONS.index("clipped-relu"))).any():
            raise InputError(f"activations are indices of {', '.join(ACTIVATIONS)}, without clipped-relu")
        for name in ("weights", "biases", "batch", "slopes"):
            values = getattr(self, name)
            if values is not None and not np.isfinite(values).all():
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
                k = where[0]
                connection = f"connection {k} ({self.sources[k]} -> {self.targets[k]}): " if name == "weights" else ""
                raise InputError(f"{connection}{name}{list(where)} is {values[where]}: only finite numbers can be used")
        n_inputs = len(self.inputs)
        if self.batch is not None and self.batch.shape[1] != n_inputs:
            raise InputError(f"batch has shape {self.batch.shape}, expected (B, {n_inputs}): one column per input")
        if self.positions is not None:
            self._validate_positions(self.positions)
        self._validate_sharing()

    def _validate_positions(self, positions: Int64Array) -> None:
        if positions.shape[1] != 3:
            raise InputError(f"positions has shape {positions.shape}, expected (N, 3): layer, y and x of each neuron")
        layer = positions[:, 0]
        low = np.flatnonzero((positions < (0, -1, -1)).any(axis=1))
        if low.size:
            where = tuple(positions[low[0]].tolist())
            raise InputError(
                f"positions do not fit: neuron {low[0]} lies at (layer, y, x) = {where}, but layers count from 0, "
                "and so do y and x (-1: no image)"
            )
        if layer.max() >= len(layer):
            v, n = int(np.argmax(layer)), len(layer)
            raise InputError(
                f"positions do not fit: neuron {v} lies in layer {layer[v]}, but {n} neurons have layers 0 to {n - 1}"
            )
        back = np.flatnonzero(layer[self.sources] >= layer[self.targets])
        if back.size:
            k, s, t = int(back[0]), self.sources[back[0]], self.targets[back[0]]
            raise InputError(
                f"positions do not fit: connection {k} goes from neuron {s} in layer {layer[s]} to neuron {t} in layer "
                f"{layer[t]}, but layers count up from the inputs"
            )

    def _validate_sharing(self) -> None:
        ids = self.weight_ids
        if ids is None:
            return
        if self.weights is None:
            raise InputError("weight_ids say where weights are stored, but the network has no weights")
        if ids.min() < 0 or ids.max() >= len(ids):
            raise InputError(
                f"weight_ids must count stored weights from 0, at most one per connection, not {ids.max()}"
            )
        first = np.zeros(int(ids.max()) + 1, np.int64)
        first[ids[::-1]] = np.arange(len(ids))[::-1]  # the last assignment to an index stays
        other = np.flatnonzero(self.weights != self.weights[first[ids]])
        if other.size:
            k, j = int(other[0]), int(first[ids[other[0]]])
            raise InputError(
                f"connections {j} and {k} share the stored weight {ids[k]}, but weigh {self.weights[j]} and "
                f"{self.weights[k]}"
            )
        if self.layer is not None and (self.layer != self.layer[first[ids]]).any():
            span = int(ids.max()) + 1
            _same_shapes(np.stack(np.divmod(np.unique(self.layer.astype(np.int64) * span + ids), span)))

    def _validate_edges(self) -> None:
        s, t = self.sources, self.targets
        loops = np.flatnonzero(s == t)
        if loops.size:
            raise InputError(f"connection {loops[0]}: neuron {s[loops[0]]} feeds itself")
        is_input = np.zeros(self.n_neurons, bool)
        is_input[self.inputs] = True
        fed = np.flatnonzero(is_input[t])
        if fed.size:
            raise InputError(f"connection {fed[0]} ({s[fed[0]]} -> {t[fed[0]]}) goes into an input neuron")
        from cython_ext.network.graph import depth_and_repeats

        depth, repeated = depth_and_repeats(s, t, self.n_neurons)  # depth: -1 on and behind cycles
        if repeated:
            by_pair = np.lexsort((t, s))
            same = np.flatnonzero((np.diff(s[by_pair]) == 0) & (np.diff(t[by_pair]) == 0))
            repeats = np.stack((by_pair[same], by_pair[same + 1]), axis=1)  # lexsort is stable: the earlier one first
            first, second = repeats[np.argmin(repeats[:, 1])]
            raise InputError(f"connection {second} repeats connection {first} ({s[first]} -> {t[first]})")
        object.__setattr__(self, "depth", _read_only(depth))
        both = np.flatnonzero(is_input & self.is_output & self.touched)
        if both.size:
            raise InputError(f"neuron {both[0]} is an input and an output and has connections: it can be only one")
        if (self.depth < 0).any():
            raise InputError(f"the network has a cycle through connection {self._edge_on_cycle()}")

    def _edge_on_cycle(self) -> str:
        # Every neuron left without a depth has a predecessor without one: walking back must meet itself.
        cyclic = np.flatnonzero((self.depth[self.sources] < 0) & (self.depth[self.targets] < 0))
        into = dict(zip(self.targets[cyclic].tolist(), cyclic.tolist(), strict=True))
        seen: set[int] = set()
        neuron = int(self.targets[cyclic[0]])
        while neuron not in seen:
            seen.add(neuron)
            neuron = int(self.sources[into[neuron]])
        edge = into[neuron]
        return f"{edge} ({self.sources[edge]} -> {self.targets[edge]})"

    # -- sizes and structure --

    @property
    def n_connections(self) -> int:
        return len(self.sources)

    @cached_property
    def ends(self) -> npt.NDArray[np.int32]:
        """int32[W, 2]: source and target of each connection side by side, as kernels read them in any order."""
        return _read_only(np.stack((self.sources, self.targets), axis=1, dtype=np.int32, casting="same_kind"))

    @cached_property
    def in_degree(self) -> Int64Array:
        """int64[N]: connections into each neuron."""
        return _read_only(np.bincount(self.targets, minlength=self.n_neurons))

    @cached_property
    def out_degree(self) -> Int64Array:
        """int64[N]: connections out of each neuron."""
        return _read_only(np.bincount(self.sources, minlength=self.n_neurons))

    @cached_property
    def touched(self) -> npt.NDArray[np.bool_]:
        """bool[N]: the neuron has at least one connection. Isolated neurons count in none of the I/O figures."""
        return _read_only((self.in_degree + self.out_degree) > 0)

    @cached_property
    def is_output(self) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.n_neurons, bool)
        mask[self.outputs] = True
        return _read_only(mask)

    @cached_property
    def codes(self) -> npt.NDArray[np.uint8]:
        """uint8[N]: index in ACTIVATIONS of what finishes each neuron that has incoming connections."""
        if self.activations is not None:
            return self.activations
        codes = np.full(self.n_neurons, ACTIVATIONS.index(self.activation), np.uint8)
        if self.activation != "clipped-relu":
            codes[self.outputs] = 0
        return _read_only(codes)

    @cached_property
    def used_activations(self) -> list[str]:
        return [ACTIVATIONS[code] for code in np.unique(self.codes[self.in_degree > 0]).tolist()]

    # -- changed copies --

    def with_(self, **changes: Any) -> Self:
        """Return a validated copy with some fields replaced; another activation takes the place of mixed ones."""
        if changes.get("activation", MIXED) != MIXED:
            changes = {"activations": None, "slopes": None, **changes}
        return replace(self, **changes)

    def in_order(self, edges: npt.ArrayLike) -> Self:
        """Return the same network with its connections stored in the order `edges` (a permutation of 0..W-1)."""
        edges = np.asarray(edges)
        if edges.shape != self.sources.shape or not np.array_equal(np.sort(edges), np.arange(self.n_connections)):
            raise InputError(f"an order of connections is a permutation of 0 to {self.n_connections - 1}")
        pick: Any = lambda values: None if values is None else values[edges]  # noqa: E731
        columns = ("sources", "targets", "weights", "layer", "weight_ids")
        return self.with_(**{name: pick(getattr(self, name)) for name in columns})


def renumbered(network: Network, number: npt.ArrayLike) -> Network:
    """Return the network with neuron v called number[v]; it computes the same outputs from the same inputs.

    number: int[N], a permutation that keeps every neuron among the ids of its depth (its layer, in a layered network).
    Connections keep their places, so an order of the one is an order of the other; inputs and outputs are still listed
    in the same sequence. Raises InputError naming the first neuron at fault.
    """
    given, n = np.asarray(number), network.n_neurons
    if given.shape != (n,) or not np.issubdtype(given.dtype, np.integer):
        kind = f"{given.dtype} of shape {given.shape}"
        raise InputError(f"a numbering has one integer per neuron, {n} in all, not {kind}")
    new = given.astype(np.int64)
    bad = np.flatnonzero((new < 0) | (new >= n))
    if bad.size:
        raise InputError(f"numbering: neuron {bad[0]} would become {new[bad[0]]}: ids are 0 to {n - 1}")
    old = np.full(n, -1, np.int64)
    old[new] = np.arange(n)
    if (old < 0).any():
        twice = int(np.flatnonzero(old[new] != np.arange(n))[0])
        raise InputError(f"numbering: neurons {twice} and {old[new[twice]]} would both become {new[twice]}")
    moved = np.flatnonzero(network.depth[new] != network.depth)
    if moved.size:
        v = int(moved[0])
        raise InputError(
            f"numbering: neuron {v} of depth {network.depth[v]} would take the id {new[v]} of depth "
            f"{network.depth[new[v]]}: neurons change places inside their layer only"
        )
    pick: Any = lambda values: None if values is None else values[old]  # noqa: E731
    return network.with_(
        sources=new[network.sources],
        targets=new[network.targets],
        inputs=new[network.inputs],
        outputs=new[network.outputs],
        biases=pick(network.biases),
        activations=pick(network.activations),
        slopes=pick(network.slopes),
        positions=pick(network.positions),
    )


def weights_of(network: Network, what: str) -> npt.NDArray[np.float32]:
    if network.weights is None:
        raise InputError(
            f"the network {network.name!r} has no weights, and {what} needs them: give each connection one, in Python "
            "with network.with_(weights=...), in a network file as the array 'weights'"
        )
    return network.weights
