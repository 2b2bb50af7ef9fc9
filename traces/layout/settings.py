"""How a network is asked to lie in memory: a layout by name with its settings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown, unknown_name
from traces.layout.kind import LAYOUTS
from traces.networks.network import Network

AUTO = "auto"  # a rule, no layout: csr where it can hold the order, else the smaller of CUT_KINDS
CUT_KINDS = ("tuples", "runs")  # hold orders that cut rows
MACHINE_LANES = 16  # input vectors at a time on a named machine, where nothing else is said
BEST = "best"  # a rule, no layout: of those that can hold the order, the one with the fewest bytes of connections
NEURON_FORMATS = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}  # name -> bytes; the index is the kernel's format number
INT8 = "int8"
BOTH_INT8 = "products of 8-bit integers are summed in 32 bits; set the value format to int8, too"
SUM_BYTES = 4  # of a partial sum beside values of 8 bits
REGISTERS = ("run", "none")
ID_BASES = ("layer", "network")
MAX_ALIGNMENT_BYTES = 2**30
MAX_ROW_BYTES = 2**15  # an access has at most 65535 bytes

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How a network lies in memory.

    kind: a name of LAYOUTS: 'csr' (values, column ids and row pointers; a row is a run of the order, so each target
        must have one run), 'csc' (columns; each source must have one run), 'coo' (values, row ids, column ids), 'ell'
        (rows padded to the longest of their layer), 'tuples' ((source, target, weight) records), 'runs' (per run of one
        target a header, then (source, weight) records), 'runs-delta' (the same with delta-coded sources). Or 'auto':
        csr where the order allows it, else the smaller of tuples and runs. Or 'best': the one with the fewest bytes of
        all that can hold it.
    value_format: number format of the weights (traces.formats). neuron_format: of activations and partial sums in
        memory (fp32, fp16, bf16); sums are accumulated in fp32 registers and rounded when stored. Or int8, with
        value_format int8: finished values are bytes and partial sums int32, in rows of their own
        (`traces.networks.quantization`).
    id_bits: 8, 16 or 32; None takes 16 where the ids fit, else 32. id_base: ids count from the lowest neuron of the
        connection's layer ('layer') or from neuron 0 ('network'); None takes 'layer' for separate id arrays of a
        layered network, 'network' otherwise and for tuples.
    base_address, alignment_bytes: every array starts at the next multiple of alignment_bytes.
    row_alignment_bytes: start each row of csr/ell or column of csc at this alignment in values and ids; None packs.
    registers: 'run' keeps the partial sum in a register while consecutive connections share the target, and the
        source's value while they share the source; 'none' loads and stores them at every connection.
    lanes: input vectors processed together: a neuron is a row of that many values, loaded and stored as one, and rows
        start at multiples of alignment_bytes. 1 is one vector after the other, values packed.
    Raises InputError naming the field.
    """

    kind: str = "auto"
    value_format: str = "fp32"
    neuron_format: str = "fp32"
    id_bits: int | None = None
    id_base: str | None = None
    base_address: int = 0
    alignment_bytes: int = 64
    row_alignment_bytes: int | None = None
    registers: str = "run"
    lanes: int = field(default=1, metadata={"later": True})

    def __post_init__(self) -> None:
        check_fields(self)
        for what, value, known in (
            ("layout", self.kind, (AUTO, BEST, *LAYOUTS)),
            ("neuron format", self.neuron_format, NEURON_FORMATS),
            ("register model", self.registers, REGISTERS),
            ("id base", self.id_base, (*ID_BASES, None)),
        ):
            if value not in known:
                raise unknown_name(what, value, [name for name in known if name])
        if self.id_bits not in (None, 8, 16, 32):
            raise InputError(f"id_bits must be 8, 16 or 32, not {shown(self.id_bits)}")
        for name in ("alignment_bytes", "row_alignment_bytes"):
            value = getattr(self, name)
            if value is not None and (value < 1 or value & (value - 1)):
                raise InputError(f"{name} must be a power of two, not {shown(value)}")
            if value is not None and value > MAX_ALIGNMENT_BYTES:
                raise InputError(f"{name} must be at most {MAX_ALIGNMENT_BYTES}, not {shown(value)}")
        whole_number(self.base_address, "base_address", 0, 2**62 - 1)
        whole_number(self.lanes, "lanes", why="input vectors at a time")
        if self.sum_row_bytes > MAX_ROW_BYTES:
            most = MAX_ROW_BYTES // (self.sum_row_bytes // self.lanes)
            raise InputError(f"lanes must be at most {most} in {self.neuron_format}, not {self.lanes}")
        if (
            self.row_alignment_bytes is not None
            and self.kind not in (AUTO, BEST)
            and not LAYOUTS[self.kind].item.has_rows
        ):
            raise InputError(f"row_alignment_bytes has no meaning for layout {self.kind!r}: it has no rows")

    @property
    def row_bytes(self) -> int:
        return self.lanes * NEURON_FORMATS[self.neuron_format]

    @property
    def sum_row_bytes(self) -> int:
        """Bytes of a row of partial sums, the widest there is. So far apart are rows in a scratchpad."""
        return self.lanes * SUM_BYTES if self.neuron_format == INT8 else self.row_bytes

    @property
    def row_pitch(self) -> int:
        """Bytes in memory from one neuron's row to the next: one value, or `lanes` values up to the next aligned
        address."""
        return self._pitch(self.row_bytes)

    @property
    def sum_pitch(self) -> int:
        """The same of rows of partial sums."""
        return self._pitch(self.sum_row_bytes)

    def _pitch(self, row_bytes: int) -> int:
        aligned = self.alignment_bytes
        return row_bytes if self.lanes == 1 else -(-row_bytes // aligned) * aligned


def choices(network: Network, edges: Int64Array, layout: Layout) -> tuple[str, ...]:
    """Return the layout kinds among which the fewest bytes of connections decide."""
    if layout.kind == BEST:
        return tuple(name for name in LAYOUTS if LAYOUTS[name].item.holds(network, edges))
    if layout.kind == AUTO:
        return ("csr",) if LAYOUTS["csr"].item.holds(network, edges) else CUT_KINDS
    kind = LAYOUTS[layout.kind].item
    if not kind.holds(network, edges):
        raise InputError(
            f"layout {layout.kind!r} needs every {kind.run_name} in one run of the order, but this order cuts some "
            f"{kind.run_name}s: use layout 'tuples' or 'coo' (or 'auto')"
        )
    return (layout.kind,)
