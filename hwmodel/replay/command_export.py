"""DRAM command traces in DRAMPower's form: one line per command, with the bytes of reads and writes.

``timestamp,command,rank,bank_group,bank,row,column[,data]``, no header, clocks of the part, data in hexadecimal as it
lies in memory (before any encoder: DRAMPower inverts by itself where it is told to). `hwmodel.dram.command_table`
reads it back.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hwmodel.machine import Machine
from hwmodel.parts.part import COMMANDS
from hwmodel.replay.commands import DATA_COMMANDS, commands_of
from traces.access.trace import Trace
from traces.base.errors import InputError
from traces.base.files import whole_file

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
            open_banks = {place for place in open_banks if place[0] != rank}
        if name == "PDE":  # active or precharged power-down
            down = "A" if any(place[0] == rank for place in open_banks) else "P"
        written = name + down if name in ("PDE", "PDX") else _NAMES.get(name, name)
        tail = f",{data[request].tobytes().hex()}" if name in DATA_COMMANDS else ""
        lines.append(f"{cycle},{written},{rank},{group},{bank},{row},{column}{tail}\n".encode())
    return lines
