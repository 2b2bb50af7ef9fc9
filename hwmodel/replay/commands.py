"""The commands one channel's memory receives while a machine plays a trace, with the bytes they move; DRAMPower's form.

That is ``timestamp,command,rank,bank_group,bank,row,column[,data]``, no header, clocks of the part, data in hexadecimal
as it lies in memory, before any encoder. `hwmodel.dram.command_table` reads it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hwmodel.dram.command_table import READS, WRITES, CommandTable, from_trace
from hwmodel.dram.engine import DramEngine
from hwmodel.machine import Machine
from hwmodel.parts.part import COMMANDS, Part
from hwmodel.replay.hierarchy import burst_trace
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.trace.chunks import Trace

MOVES_DATA = READS + WRITES


@dataclass(frozen=True, eq=False)
class Commands:
    """table: structured [n] (cycle, request, command, rank, group, bank, row, column) in the order of issue. data:
    uint8[r, block_bytes] and stream: uint8[r] of the requests, by number. end_cycle: of the run, None if it was left
    early."""

    table: np.ndarray
    data: np.ndarray
    stream: np.ndarray
    end_cycle: int | None

    def of_part(self, part: Part) -> CommandTable:
        """Return them for `interface_energy`, which then counts edges by the rule of the replay."""
        return from_trace(self.table, part=part, data=self.data, end_cycle=self.end_cycle, gaps="hold")


def commands_of(trace: Trace, machine: Machine, channel: int, *, bursts: int | None = None) -> Commands:
    """Play a trace on a machine with a part; stop early once `bursts` reads and writes of the channel are issued.

    Memory grows by 32 + block_bytes a burst. Raises InputError for a channel that the part has not, or a trace without
    data.
    """
    if not trace.has_data:
        raise InputError("what commands carry is asked for, and this trace has addresses only")
    assert machine.part is not None
    engine = DramEngine(machine.part, machine.memory_controller(), trace=True)
    if not 0 <= channel < engine.memory.n_channels:
        raise InputError(f"channel {channel} does not exist: the part has {engine.memory.n_channels}")
    data = [np.zeros((0, machine.bus.block_bytes), np.uint8)]
    stream = [np.zeros(0, np.uint8)]
    tables: list[np.ndarray] = []
    last, moved = 0, 0

    def keep(issued: tuple[np.ndarray, ...] | None) -> int:
        assert issued is not None
        tables.append(issued[channel])
        return int(np.isin(tables[-1]["command"], MOVES_DATA).sum())

    for chunk in burst_trace(trace, machine):
        assert chunk.payload is not None and chunk.cycle is not None
        arrival = np.maximum.accumulate(np.maximum(chunk.cycle, last))
        last = int(arrival[-1]) if len(arrival) else last
        data.append(chunk.payload.reshape(-1, machine.bus.block_bytes))
        stream.append(np.asarray(chunk.stream, np.uint8))
        moved += keep(engine.feed(chunk.address, chunk.op, arrival).commands)
        if bursts is not None and moved >= bursts:
            return Commands(np.concatenate(tables), np.concatenate(data), np.concatenate(stream), None)
    keep(engine.finish().commands)
    end = engine.result(np.zeros(0, np.int64)).end_cycle
    return Commands(np.concatenate(tables), np.concatenate(data), np.concatenate(stream), end)


_NAMES = {"REFab": "REFA", "REFpb": "REFB"}
_CLOSES = ("PRE", "RDA", "WRA")


def export_commands(trace: Trace, machine: Machine, path: str | Path, *, channel: int = 0) -> int:
    """Play a trace on a machine and write the commands one channel's memory receives; return their number.

    The file is complete or absent. A burst that the controller merges with another one has no command. Memory grows by
    32 bytes a burst. Raises InputError without a part, for a channel it has not, or a trace without data.
    """
    if machine.part is None:
        raise InputError("a command trace needs a memory part")
    played = commands_of(trace, machine, channel)
    with whole_file(path) as stream:
        stream.writelines(_lines(played.table, played.data))
        stream.write(f"{played.end_cycle},END,0,0,0,0,0\n".encode())
    return len(played.table)


def _lines(table: np.ndarray, data: np.ndarray) -> list[bytes]:
    lines = []
    open_banks: set[tuple[int, int, int]] = set()
    down = "P"
    for cycle, request, number, rank, group, bank, row, column in table.tolist():
        name = COMMANDS[number]
        if name == "ACT":
            open_banks.add((rank, group, bank))
        elif name in _CLOSES:
            open_banks.discard((rank, group, bank))
        elif name == "PREA":
            open_banks = {bank for bank in open_banks if bank[0] != rank}
        if name == "PDE":  # active or precharged power-down
            down = "A" if any(bank[0] == rank for bank in open_banks) else "P"
        written = name + down if name in ("PDE", "PDX") else _NAMES.get(name, name)
        tail = f",{data[request].tobytes().hex()}" if number in MOVES_DATA else ""
        lines.append(f"{cycle},{written},{rank},{group},{bank},{row},{column}{tail}\n".encode())
    return lines
