"""A scratchpad: on-chip memory that software manages, carrying out the I/O model's own decisions.

Neuron rows move as the I/O model says, whole rows at a time, so the rows moved are those `count_io` counts with M =
(size_bytes - stream_bytes) // row_bytes + 1: that many rows, packed whatever lies between them in memory, and the
connection in hand. In int8 each has room for partial sums of 32 bits. Connections come through a double buffer of
stream_bytes, each read once a pass. The first load of a computed neuron brings its bias: a row, or a scalar of 4 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.iomodel.counts import LOAD, PINNING_CODES, POLICY_CODES, STORE_LIVE
from cython_ext.trace.transfers import first_loads, slots_of
from hwmodel.fastmemory.iomodel import Moves, moves_of
from hwmodel.parts.part import added_field
from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name
from traces.trace.chunks import Trace
from traces.trace.plan import Plan
from traces.trace.transfers import SCALAR_BYTES, Slots, plan_of, transfers

BIASES = ("row", "scalar")
ADDRESSINGS = ("ids", "slots")


@dataclass(frozen=True)
class ScratchpadSpec:
    """A scratchpad of size_bytes, of which stream_bytes are the double buffer of the connections.

    policy, pinning: which row makes room for another, as in `count_io`. bias: what moves when a computed neuron is
    first loaded: 'row', a whole row (the I/O model's reading), or 'scalar', 4 bytes. addressing: what records of
    connections name: 'ids' of neurons, which the engine finds by itself, or 'slots' of the scratchpad in 1 or 2 bytes,
    with a descriptor of 4 bytes for each row that moves (layout 'tuples'). Raises InputError naming a field.
    """

    size_bytes: int
    policy: str = "min"
    pinning: str = "literal"
    stream_bytes: int = 1024
    bias: str = "row"
    addressing: str = added_field("ids")

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("size_bytes", "stream_bytes"):
            whole_number(getattr(self, name), f"scratchpad {name}", 1, 2**40)
        for what, value, known in (
            ("scratchpad policy", self.policy, POLICY_CODES),
            ("pinning", self.pinning, PINNING_CODES),
            ("scratchpad bias", self.bias, BIASES),
            ("scratchpad addressing", self.addressing, ADDRESSINGS),
        ):
            if value not in known:
                raise unknown_name(what, value, known)
        if self.stream_bytes >= self.size_bytes:
            raise InputError(
                f"scratchpad stream_bytes {self.stream_bytes} leaves nothing of size_bytes {self.size_bytes} for "
                "neurons"
            )

    def memory(self, row_bytes: int) -> int:
        """Return M of the I/O model for rows of `row_bytes`. Raises InputError where M is below 3."""
        rows = (self.size_bytes - self.stream_bytes) // row_bytes
        if rows < 2:
            raise InputError(
                f"a scratchpad of {self.size_bytes} bytes, {self.stream_bytes} of them for connections, holds {rows} "
                f"rows of {row_bytes} bytes, M = {rows + 1}: at least 3 are needed, a connection and the two rows it "
                "joins; use a larger size_bytes, a smaller stream_bytes or fewer lanes"
            )
        return rows + 1


@dataclass(frozen=True)
class ScratchpadCounts:
    """What a scratchpad moved. Every pass moves the same rows; counts in rows are of one pass.

    memory: M. reads_neurons, writes_live, writes_outputs: rows, as `count_io` counts. bias_reads: rows of reads_neurons
    that bring a bias. row_bytes: bytes of a row, which move; row_pitch: from one to the next in memory; sum_row_bytes:
    of a row of partial sums, which any takes here (the same but in int8). passes: over the batch, of `lanes` vectors
    each. bias_bytes_row, bias_bytes_scalar: bytes of the bias loads of all passes under either reading. rows_read,
    rows_written: rows the engine read and wrote on chip; sums_read, sums_written: those of partial sums among them;
    connection_accesses: its accesses to connections; accesses: all of them, a row counted once per access_bytes. All of
    these are of all passes.
    """

    memory: int
    policy: str
    pinning: str
    bias: str
    reads_neurons: int
    writes_live: int
    writes_outputs: int
    bias_reads: int
    row_bytes: int
    row_pitch: int
    sum_row_bytes: int
    lanes: int
    passes: int
    rows_read: int
    rows_written: int
    sums_read: int
    sums_written: int
    connection_accesses: int
    accesses: int

    @property
    def bias_bytes_row(self) -> int:
        """Bytes of all bias loads if each is a row."""
        return self.bias_reads * self.sum_row_bytes * self.passes

    @property
    def bias_bytes_scalar(self) -> int:
        """Bytes of all bias loads if each is a scalar."""
        return self.bias_reads * SCALAR_BYTES * self.passes


class Scratchpad:
    """A scratchpad with one trace: decides the moves, and makes the trace of transfers.

    transfers: their trace, in program order, and what the engine touched on chip in the walk so far. counts: complete
    after a walk. engine: hwmodel.machine.EngineSpec.
    """

    def __init__(self, trace: Trace, spec: ScratchpadSpec, engine: Any) -> None:
        plan = plan_of(trace)
        self.spec, self.plan = spec, plan
        self.memory = spec.memory(plan.sum_row_bytes)
        self.moves = moves_of(
            plan.source, plan.target, plan.is_output, memory=self.memory, policy=spec.policy, pinning=spec.pinning
        )
        first = bias_loads(self.moves, plan)
        self.bias_reads = int(first.sum())
        self.transfers = transfers(
            trace,
            (self.moves.step, self.moves.neuron, self.moves.kind),
            buffer_bytes=spec.stream_bytes,
            engine_spec=engine,
            scalar_biases=first if spec.bias == "scalar" else None,
            slots=self._slots() if spec.addressing == "slots" else None,
        )

    def _slots(self) -> Slots:
        moves, plan = self.moves, self.plan
        moved, sources, targets, used = slots_of(
            moves.step, moves.neuron, moves.kind, plan.source, plan.target, len(plan.is_output), LOAD
        )
        assert used < self.memory, "more rows than there is room for"
        return moved, sources, targets

    @property
    def counts(self) -> ScratchpadCounts:
        """Counts of the walk so far (rows moved are those of a whole pass)."""
        plan, engine = self.plan, self.transfers.engine
        loads, live, outputs = self.moves.counts
        return ScratchpadCounts(
            memory=self.memory,
            policy=self.spec.policy,
            pinning=self.spec.pinning,
            bias=self.spec.bias,
            reads_neurons=loads,
            writes_live=live,
            writes_outputs=outputs,
            bias_reads=self.bias_reads,
            row_bytes=plan.row_bytes,
            row_pitch=plan.row_pitch,
            sum_row_bytes=plan.sum_row_bytes,
            lanes=plan.lanes,
            passes=plan.n_passes,
            rows_read=engine.rows_read,
            rows_written=engine.rows_written,
            sums_read=engine.sums_read,
            sums_written=engine.sums_written,
            connection_accesses=engine.connections,
            accesses=engine.accesses,
        )


def bias_loads(moves: Moves, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return bool[E]: the first load of each computed neuron, which brings its bias; assert that every row loaded is
    used at once, and every live row stored is loaded again."""
    first, wrong = first_loads(
        moves.step, moves.neuron, moves.kind, plan.source, plan.target, len(plan.is_output), LOAD, STORE_LIVE
    )
    assert not wrong, wrong
    loads: npt.NDArray[np.bool_] = first.view(bool) & plan.is_computed[moves.neuron]
    return loads
