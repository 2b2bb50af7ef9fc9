"""Identity graph rewriting (Ahn et al. 2020, section 3.3): other graphs that compute the same and need less memory.

Patterns, applied in this order, each a switch:

* ``fold-concat``: a CONCATENATION whose consumers can gather their operand from several tensors disappears.
* ``channel-wise``: a convolution of k concatenated tensors becomes k partial convolutions that accumulate into one
  buffer, in any order (equations 3 to 6).
* ``kernel-wise``: a depthwise convolution of k concatenated tensors becomes k depthwise convolutions. Where
  channel-wise partitioning takes the result apart again they write k buffers, else k slices of one (equations 7, 8).
* ``absorb-add``: an ADD of convolutions that nobody else reads disappears; their sums accumulate in its buffer.

A buffer that accumulates has the size of the result, as in the paper; a kernel that keeps wider sums needs more. For
quantised models channel-wise and kernel-wise are exact (the sum is rounded once, as before), absorb-add is not: it
leaves out the rounding of the two operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from traces.errors import unknown_name
from traces.opgraph import Operator, OpGraph, Tensor

PATTERNS = ("fold-concat", "channel-wise", "kernel-wise", "absorb-add")
CONCAT, CONV, DEPTHWISE, ADD = "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "ADD"
PARTIAL_CONV, PARTIAL_DEPTHWISE = "PARTIAL_CONV_2D", "PARTIAL_DEPTHWISE_CONV_2D"
GATHERING = (CONV, DEPTHWISE, CONCAT)  # kernels that can read one operand from several places


def rewrite_graph(graph: OpGraph, patterns: Sequence[str] | str = "all") -> OpGraph:
    """Apply patterns ('all', or some of PATTERNS) wherever they match; the result computes the same.

    channel-wise and kernel-wise see through concatenations (they fold those that they use up).
    Raises InputError for an unknown pattern.
    """
    wanted = PATTERNS if patterns == "all" else (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for name in wanted:
        if name not in PATTERNS:
            raise unknown_name("rewriting pattern", name, (*PATTERNS, "all"))
    if not wanted:
        return graph
    rewriter = _Rewriter(graph)
    folded = {name for name in wanted if name in ("fold-concat", "channel-wise", "kernel-wise")}
    if folded:
        rewriter.fold_concats(
            GATHERING if "fold-concat" in wanted else tuple(op for op, name in _TAKES_APART if name in wanted)
        )
    if "kernel-wise" in wanted:
        rewriter.split_depthwise(take_apart="channel-wise" in wanted)
    if "channel-wise" in wanted:
        rewriter.split_convolutions()
    if "absorb-add" in wanted:
        rewriter.absorb_adds()
    return rewriter.result(wanted)


_TAKES_APART = ((CONV, "channel-wise"), (DEPTHWISE, "kernel-wise"))


def channel_axis(node: Operator) -> int:
    """Return the axis of the channels of a node's tensors (last, unless the reader says otherwise)."""
    return int(node.attributes.get("channel_axis", -1))


def gathered(node: Operator) -> tuple[str, ...]:
    """Return the tensors that make up the first operand, in order (with repetitions), of a node that gathers it."""
    listed = node.attributes.get("operands", node.inputs) if node.op == CONCAT else node.inputs
    return tuple(node.attributes.get("gather", listed))


class _Rewriter:
    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.nodes = list(graph.nodes)
        self.outputs = list(graph.outputs)
        self._index()

    def _index(self) -> None:
        self.tensors = {t.name: t for node in self.nodes for t in node.outputs}
        self.readers: dict[str, list[Operator]] = {name: [] for name in self.tensors}
        self.writers: dict[str, list[Operator]] = {}
        for node in self.nodes:
            for name in node.inputs:
                self.readers[name].append(node)
            for t in node.outputs:
                self.writers.setdefault(t.buffer, []).append(node)

    def result(self, patterns: Sequence[str]) -> OpGraph:
        return replace(
            self.graph,
            name=f"{self.graph.name} ({', '.join(p for p in PATTERNS if p in patterns)})",
            nodes=tuple(self.nodes),
            outputs=tuple(self.outputs),
        )

    # -- concatenations ------------------------------------------------------------------------------------------------

    def fold_concats(self, takers: Sequence[str]) -> None:
        """Remove every concatenation along the channels all of whose consumers are `takers` of one operand."""
        for concat in [node for node in self.nodes if node.op == CONCAT]:
            readers = self.readers[concat.output.name]
            if (
                concat.output.name in self.outputs
                or not readers
                or concat.constants
                or not self._along_channels(concat)
                or concat.attributes.get("activation", "NONE") != "NONE"
                or any(node.op not in takers or len(gathered(node)) < len(node.inputs) for node in readers)
            ):
                continue
            parts = gathered(self._current(concat))
            for node in readers:
                now = self._current(node)
                spread = tuple(
                    part for name in gathered(now) for part in (parts if name == concat.output.name else (name,))
                )
                attributes = {**now.attributes, "gather": spread}
                self._put(replace(now, inputs=tuple(dict.fromkeys(spread)), attributes=attributes))
            self.nodes = [node for node in self.nodes if node.name != concat.name]
            self._index()

    def _current(self, node: Operator) -> Operator:
        return next(other for other in self.nodes if other.name == node.name)

    def _put(self, node: Operator) -> None:
        self.nodes[next(i for i, other in enumerate(self.nodes) if other.name == node.name)] = node

    def _along_channels(self, concat: Operator) -> bool:
        axis, rank = concat.attributes.get("axis", -1), len(concat.output.shape)
        return bool(axis % rank == channel_axis(concat) % rank) if isinstance(axis, int) and rank else False

    # -- partitioning --------------------------------------------------------------------------------------------------

    def _channel_ranges(self, node: Operator) -> list[tuple[str, int, int]] | None:
        """Return (tensor, first channel, last channel + 1) of the gathered operand; None if it is not to be split."""
        parts = gathered(node)
        if len(parts) < 2 or len(set(parts)) < 2:
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
        for node in [node for node in self.nodes if node.op == CONV]:
            node = self._current(node)
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
        for node in [node for node in self.nodes if node.op == DEPTHWISE]:
            node = self._current(node)
            ranges = self._channel_ranges(node)
            out, axis = node.output, channel_axis(node)
            if ranges is None or out.buffer != out.name or not out.shape:
                continue
            multiplier, rest = divmod(out.shape[axis], ranges[-1][2])
            if rest or not multiplier or len(ranges) != len({name for name, _, _ in ranges}):
                continue
            readers = self.readers[out.name]
            apart = (
                take_apart
                and out.name not in self.outputs
                and bool(readers)
                and all(reader.op == CONV and len(gathered(reader)) == len(reader.inputs) for reader in readers)
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

    # -- additions -----------------------------------------------------------------------------------------------------

    def absorb_adds(self) -> None:
        for add in [node for node in self.nodes if node.op == ADD]:
            add = self._current(add)
            if len(add.inputs) != 2 or add.constants or add.output.buffer != add.output.name:
                continue
            operands = [self.tensors[name] for name in add.inputs]
            writers = [self.writers[t.buffer] for t in operands]
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

    def _place(self, name: str) -> int:
        return next(i for i, node in enumerate(self.nodes) if node.name == name)

    def _absorbable(self, tensor: Tensor, writers: Sequence[Operator], add: Operator) -> bool:
        users = {node.name for t in self.tensors.values() if t.buffer == tensor.buffer for node in self.readers[t.name]}
        return (
            users == {add.name}
            and tensor.n_bytes == add.output.n_bytes
            and not any(t.name in self.outputs for t in self.tensors.values() if t.buffer == tensor.buffer)
            and all(
                node.op in (CONV, PARTIAL_CONV)
                and node.attributes.get("activation", "NONE") == "NONE"
                and tensor.buffer not in {self.tensors[name].buffer for name in node.inputs}
                for node in writers
            )
        )

    # -- replacing -----------------------------------------------------------------------------------------------------

    def _replace(self, node: Operator, pieces: list[Operator], names: dict[str, tuple[str, ...]]) -> None:
        """Put `pieces` in the place of `node`; whoever read a tensor of `names` reads the given ones instead."""
        at = self._place(node.name)
        self.nodes[at : at + 1] = pieces
        for i, other in enumerate(self.nodes):
            if any(name in names for name in other.inputs):
                spread = lambda given: tuple(new for name in given for new in names.get(name, (name,)))  # noqa: E731
                attributes = dict(other.attributes)
                if "gather" in attributes or any(len(names.get(name, ())) > 1 for name in other.inputs):
                    attributes["gather"] = spread(gathered(other))
                elif "operands" in attributes:
                    attributes["operands"] = spread(attributes["operands"])
                self.nodes[i] = replace(other, inputs=tuple(dict.fromkeys(spread(other.inputs))), attributes=attributes)
        self.outputs = [new for name in self.outputs for new in names.get(name, (name,))]
        self._index()


def _partial(node: Operator, **more: Any) -> dict[str, Any]:
    """Attributes of a part; a convolution that is not split takes all channels."""
    return {**{key: value for key, value in node.attributes.items() if key != "gather"}, **more}
