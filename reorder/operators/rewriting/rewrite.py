"""Identity graph rewriting (Ahn et al. 2020, section 3.3): other graphs that compute the same and need less memory.

The patterns, each a switch, are those of docs/concepts/operator-schedules.md, applied in this order: fold-concat,
channel-wise, kernel-wise, absorb-add; views and in-place share storage and leave the operators as they are. For
quantised models all but absorb-add are exact, which leaves out the rounding of its two operands.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

from traces.base.errors import unknown_name
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor

PATTERNS = ("fold-concat", "channel-wise", "kernel-wise", "absorb-add")
VIEWS = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST", "FLATTEN", "UNSQUEEZE")  # the last two are ONNX's
IN_PLACE = ("ADD", "SUB", "MUL", "DIV", "SOFTMAX")
STORAGE = {"views": VIEWS, "in-place": (*VIEWS, *IN_PLACE)}
SCALAR_BYTES = 4  # and below: TensorFlow Lite does not share them where data change
CONCAT, CONV, DEPTHWISE, ADD = "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "ADD"
PARTIAL_CONV, PARTIAL_DEPTHWISE = "PARTIAL_CONV_2D", "PARTIAL_DEPTHWISE_CONV_2D"
GATHERING = (CONV, DEPTHWISE, CONCAT)  # kernels that can read one operand from several places


def rewrite_graph(
    graph: OpGraph, patterns: Sequence[str] | str = "all", *, whole: Container[str] = frozenset()
) -> OpGraph:
    """Return `graph` with patterns ('all', or some of PATTERNS and STORAGE) applied; it computes the same.

    channel-wise and kernel-wise see through concatenations (they fold those that they use up).
    whole: operators that are neither split nor absorbed; concatenations that they read stay.
    Raises InputError for an unknown pattern.
    """
    listed = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    rules = tuple(dict.fromkeys(name for given in listed for name in (PATTERNS if given == "all" else (given,))))
    for name in rules:
        if name not in PATTERNS and name not in STORAGE:
            raise unknown_name("rewriting pattern", name, (*PATTERNS, *STORAGE, "all"))
    if not rules:
        return graph
    rewriter = _Rewriter(graph, whole)
    rewriter.fold_concats(
        GATHERING if "fold-concat" in rules else tuple(op for op, name in _TAKES_APART if name in rules)
    )
    if "kernel-wise" in rules:
        rewriter.split_depthwise(take_apart="channel-wise" in rules)
    if "channel-wise" in rules:
        rewriter.split_convolutions()
    if "absorb-add" in rules:
        rewriter.absorb_adds()
    for name in STORAGE:
        if name in rules:
            rewriter.share_storage(STORAGE[name])
    return rewriter.result(rules)


_TAKES_APART = ((CONV, "channel-wise"), (DEPTHWISE, "kernel-wise"))


def channel_axis(node: Operator) -> int:
    """Return the axis of the channels of a node's tensors (last, unless the reader says otherwise)."""
    return int(node.attributes.get("channel_axis", -1))


def gathered(node: Operator) -> tuple[str, ...]:
    """Return the tensors that make up the first operand, in order (with repetitions), of a node that gathers it.

    A convolution that lists its operands has weights that are computed: they are not part of the first one.
    """
    listed: Sequence[str] = node.inputs
    if node.op == CONCAT or "operands" in node.attributes:
        listed = node.operands if node.op == CONCAT else node.operands[:1]
    return tuple(node.attributes.get("gather", listed))


class _Rewriter:
    """The graph while it changes: operators by name, and who reads and writes what. `slots` keeps the file's order:
    slot i holds the names of what has become of the i-th operator."""

    def __init__(self, graph: OpGraph, whole: Container[str]) -> None:
        self.graph, self.whole = graph, whole
        self.nodes: dict[str, Operator] = {}
        self.slots: list[list[str]] = [[] for _ in graph.nodes]
        self.slot_of: dict[str, int] = {}
        self.tensors: dict[str, Tensor] = {}
        self.readers: dict[str, dict[str, None]] = {}
        self.writers: dict[str, dict[str, None]] = {}
        self.outputs: dict[str, tuple[str, ...]] = {name: (name,) for name in graph.outputs}
        for i, node in enumerate(graph.nodes):
            self._add(node, i)

    def result(self, patterns: Sequence[str]) -> OpGraph:
        return replace(
            self.graph,
            name=f"{self.graph.name} ({', '.join(p for p in (*PATTERNS, *STORAGE) if p in patterns)})",
            nodes=tuple(self.nodes[name] for slot in self.slots for name in slot),
            outputs=tuple(name for names in self.outputs.values() for name in names),
        )

    def _add(self, node: Operator, slot: int) -> None:
        self.nodes[node.name] = node
        self.slots[slot].append(node.name)
        self.slot_of[node.name] = slot
        self._link(node)

    def _link(self, node: Operator) -> None:
        for name in node.inputs:
            self.readers.setdefault(name, {})[node.name] = None
        for t in node.outputs:
            self.tensors[t.name] = t
            self.writers.setdefault(t.buffer, {})[node.name] = None

    def _unlink(self, node: Operator) -> None:
        for name in node.inputs:
            self.readers[name].pop(node.name, None)
        for t in node.outputs:
            self.tensors.pop(t.name)
            self.writers[t.buffer].pop(node.name)

    def _put(self, node: Operator) -> None:
        self._unlink(self.nodes[node.name])
        self.nodes[node.name] = node
        self._link(node)

    def _remove(self, node: Operator) -> None:
        self._unlink(node)
        self.slots[self.slot_of.pop(node.name)].remove(node.name)
        del self.nodes[node.name]

    def _of_kind(self, op: str) -> Iterator[Operator]:
        """Yield the operators of a kind that there are now, each as it is when its turn comes."""
        for name in [name for slot in self.slots for name in slot if self.nodes[name].op == op]:
            yield self.nodes[name]

    def _reading(self, tensor: str) -> list[Operator]:
        return [self.nodes[name] for name in self.readers.get(tensor, ())]

    def _is_output(self, tensor: str) -> bool:
        return any(tensor in names for names in self.outputs.values())

    def _place(self, name: str) -> tuple[int, int]:
        slot = self.slot_of[name]
        return slot, self.slots[slot].index(name)

    # -- concatenations --

    def fold_concats(self, takers: Sequence[str]) -> None:
        """Remove every concatenation along the channels all of whose consumers are `takers` of one operand."""
        for concat in self._of_kind(CONCAT):
            whole = concat.output.name
            readers = self._reading(whole)
            if (
                self._is_output(whole)
                or not readers
                or concat.constants
                or not self._along_channels(concat)
                or concat.attributes.get("activation", "NONE") != "NONE"
                or any(node.op not in takers or len(gathered(node)) < len(node.inputs) for node in readers)
                or any(node.name in self.whole for node in readers)
            ):
                continue
            parts = gathered(concat)
            for node in readers:
                spread = tuple(part for name in gathered(node) for part in (parts if name == whole else (name,)))
                attributes = {**node.attributes, "gather": spread}
                self._put(replace(node, inputs=tuple(dict.fromkeys(spread)), attributes=attributes))
            self._remove(concat)

    def _along_channels(self, concat: Operator) -> bool:
        axis, rank = concat.attributes.get("axis", -1), len(concat.output.shape)
        return bool(axis % rank == channel_axis(concat) % rank) if isinstance(axis, int) and rank else False

    # -- partitioning --

    def _channel_ranges(self, node: Operator) -> list[tuple[str, int, int]] | None:
        """Return (tensor, first channel, last channel + 1) of the gathered operand; None if it is not to be split."""
        parts = gathered(node)
        if node.name in self.whole or len(parts) < 2 or len(set(parts)) < 2:
            return None
        ranges, at = [], 0
        for name in parts:
            shape = self.tensors[name].shape
            if not shape:
                return None
            width = shape[channel_axis(node)]
            ranges.append((name, at, at + width))
            at += width
        return ranges

    def split_convolutions(self) -> None:
        for node in self._of_kind(CONV):
            ranges = self._channel_ranges(node) if node.attributes.get("groups", 1) == 1 else None
            if ranges is None or node.output.buffer != node.output.name:
                continue
            pieces = []
            for k, (name, first, last) in enumerate(ranges):
                piece = f"{node.name}#part{k}"
                pieces.append(
                    replace(
                        node,
                        name=piece,
                        op=PARTIAL_CONV,
                        inputs=(name,),
                        outputs=(replace(node.output, name=piece),),
                        constants=node.constants if k == 0 else node.constants[:1],  # the bias is added once
                        attributes=_partial(node, channels=(first, last)),
                    )
                )
            self._replace(node, pieces, {node.output.name: (pieces[-1].name,)})

    def split_depthwise(self, take_apart: bool) -> None:
        for node in self._of_kind(DEPTHWISE):
            ranges = self._channel_ranges(node)
            out, axis = node.output, channel_axis(node)
            if ranges is None or out.buffer != out.name or not out.shape:
                continue
            multiplier, rest = divmod(out.shape[axis], ranges[-1][2])
            if rest or not multiplier or len(ranges) != len({name for name, _, _ in ranges}):
                continue
            readers = self._reading(out.name)
            apart = (
                take_apart
                and not self._is_output(out.name)
                and bool(readers)
                and all(reader.op == CONV and len(gathered(reader)) == len(reader.inputs) for reader in readers)
                and not any(reader.name in self.whole for reader in readers)
            )
            pieces = []
            for k, (name, first, last) in enumerate(ranges):
                piece = f"{node.name}#part{k}"
                tensor = replace(out, name=piece)
                attributes = _partial(node, channels=(first, last), all_channels=ranges[-1][2])
                if apart:
                    shape = list(out.shape)
                    shape[axis] = (last - first) * multiplier
                    n_bytes = out.n_bytes * (last - first) // ranges[-1][2]
                    tensor = Tensor(piece, tuple(shape), max(1, n_bytes), piece, out.dtype)
                else:
                    attributes["slice"] = (first * multiplier, last * multiplier)
                pieces.append(
                    replace(
                        node, name=piece, op=PARTIAL_DEPTHWISE, inputs=(name,), outputs=(tensor,), attributes=attributes
                    )
                )
            names = tuple(piece.name for piece in pieces) if apart else (pieces[-1].name,)
            self._replace(node, pieces, {out.name: names})

    # -- additions --

    def absorb_adds(self) -> None:
        for add in self._of_kind(ADD):
            if len(add.inputs) != 2 or add.constants or add.output.buffer != add.output.name or add.name in self.whole:
                continue
            operands = [self.tensors[name] for name in add.inputs]
            writers = [[self.nodes[name] for name in self.writers[t.buffer]] for t in operands]
            if (
                not all(self._absorbable(t, w, add) for t, w in zip(operands, writers, strict=True))
                or operands[0].buffer == operands[1].buffer
            ):
                continue
            attributes = {"activation": add.attributes.get("activation", "NONE")}
            for node in (*writers[0], *writers[1]):
                self._put(
                    replace(
                        node,
                        op=PARTIAL_CONV,
                        outputs=(replace(node.output, buffer=add.output.name, shape=add.output.shape),),
                        attributes={**_partial(node), **attributes},
                    )
                )
            last = max((*writers[0], *writers[1]), key=lambda node: self._place(node.name))
            self._replace(add, [], {add.output.name: (last.output.name,)})

    def _absorbable(self, tensor: Tensor, writers: Sequence[Operator], add: Operator) -> bool:
        names = [t.name for node in writers for t in node.outputs if t.buffer == tensor.buffer]
        return (
            {node.name for name in names for node in self._reading(name)} == {add.name}
            and tensor.n_bytes == add.output.n_bytes
            and not any(self._is_output(name) for name in names)
            and all(
                node.op in (CONV, PARTIAL_CONV)
                and node.attributes.get("activation", "NONE") == "NONE"
                and tensor.buffer not in {self.tensors[name].buffer for name in node.inputs}
                for node in writers
            )
        )

    # -- storage --

    def share_storage(self, kinds: Sequence[str]) -> None:
        """Let results of these operators take the storage of an operand that is not needed any more."""
        for name in [name for slot in self.slots for name in slot]:
            node = self.nodes[name]
            if node.op not in kinds or len(node.outputs) != 1 or node.output.buffer != node.output.name:
                continue
            if self._is_output(node.output.name) or (node.op not in VIEWS and node.output.n_bytes <= SCALAR_BYTES):
                continue
            listed = node.attributes.get("operands", node.inputs)
            for given in listed[:1] if node.op in VIEWS or node.op == "SOFTMAX" else listed[:2]:
                if given in self.tensors and self._free_for(self.tensors[given], node):
                    self._put(replace(node, outputs=(replace(node.output, buffer=self.tensors[given].buffer),)))
                    break

    def _free_for(self, tensor: Tensor, node: Operator) -> bool:
        """Whether a node may write where a tensor is: the last one that was written there, and read by no one else."""
        chain = [self.nodes[name] for name in self.writers[tensor.buffer]]
        return (
            tensor.n_bytes == node.output.n_bytes
            and [reader.name for reader in self._reading(tensor.name)] == [node.name]
            and not self._is_output(tensor.name)
            and all(writer.op != INPUT and not writer.op.startswith("PARTIAL_") for writer in chain)
            and any(writer.output.name == tensor.name and len(writer.outputs) == 1 for writer in chain)
            and all(
                t.buffer != tensor.buffer or t.name == tensor.name or self._reading(t.name)
                for w in chain
                for t in w.outputs
            )
        )

    # -- replacing --

    def _replace(self, node: Operator, pieces: list[Operator], names: dict[str, tuple[str, ...]]) -> None:
        """Put `pieces` in the place of `node`; whoever read a tensor of `names` reads the given ones instead."""
        slot = self.slot_of[node.name]
        readers = [other for name in names for other in self._reading(name)]
        self._remove(node)
        for piece in pieces:
            self._add(piece, slot)

        def spread(given: Sequence[str]) -> tuple[str, ...]:
            return tuple(new for name in given for new in names.get(name, (name,)))

        for reader in dict.fromkeys(other.name for other in readers):
            other = self.nodes[reader]
            attributes = dict(other.attributes)
            if "gather" in attributes or any(len(names.get(name, ())) > 1 for name in other.inputs):
                attributes["gather"] = spread(gathered(other))
            elif "operands" in attributes:
                attributes["operands"] = spread(attributes["operands"])
            self._put(replace(other, inputs=tuple(dict.fromkeys(spread(other.inputs))), attributes=attributes))
        self.outputs = {name: spread(given) for name, given in self.outputs.items()}


def _partial(node: Operator, **more: Any) -> dict[str, Any]:
    """Attributes of a part of an operator `like` that one; a convolution that is not split takes all channels."""
    return {"like": node.name, **{key: value for key, value in node.attributes.items() if key != "gather"}, **more}
