"""Waveforms: what the wires of one channel carry during a window of bursts, as a value change dump (IEEE 1364, VCD).

Signals: ``dq<lane>``, ``dbi<lane>``, ``extra<lane>`` for flag wires beyond the first, ``driving``, ``burst``,
``stream`` and ``direction``; with a part also ``command`` for one clock, with its place. Times are those of replay.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hwmodel.dram.command_table import READS
from hwmodel.machine import Machine
from hwmodel.parts.part import COMMANDS
from hwmodel.parts.part_file import load_part
from hwmodel.replay.commands import MOVES_DATA, commands_of
from hwmodel.replay.hierarchy import burst_trace
from traces.base.errors import InputError, MissingExtraError
from traces.base.files import whole_file
from traces.trace.chunks import STREAMS, Trace

MOST_BURSTS = 100_000
_ADDRESS = ("rank", "bank_group", "bank", "row", "column")


@dataclass(frozen=True, eq=False)
class _Window:
    """Bursts in the order of the wires, all up to the window's end, and the commands inside it.

    data: uint8[n, block_bytes]. stream: uint8[n]. is_write: bool[n]. start_ps: int64[n], when each begins.
    commands: (ps, name, address).
    """

    data: np.ndarray
    stream: np.ndarray
    is_write: np.ndarray
    start_ps: np.ndarray
    burst_ps: int
    commands: list[tuple[int, str, tuple[int, ...]]]
    clock_ps: int


def export_waveform(
    trace: Trace, machine: Machine, path: str | Path, *, first: int = 0, bursts: int = 256, channel: int = 0
) -> int:
    """Write the wires of bursts `first` to `first + bursts` of a channel to a VCD file; return the bursts written.

    trace: with data, played on `machine`. path: of the VCD file. Bursts are encoded from the first one of the trace on,
    so a window shows what it carries in the whole run. The file is complete or absent; at most 100,000 bursts.
    Raises InputError for a window that holds no burst, a channel that is not there or an address-only trace,
    MissingExtraError without pyvcd.
    """
    if not 1 <= bursts <= MOST_BURSTS or first < 0:
        raise InputError(f"a window has 1 to {MOST_BURSTS} bursts and begins at 0 or later, not {bursts} from {first}")
    if machine.part is None and channel != 0:
        raise InputError(f"channel {channel} does not exist: a machine without a part has channel 0 alone")
    if not trace.has_data:
        raise InputError("a waveform shows the bytes moved, and this trace has addresses only")
    window = _without_part(trace, machine, first + bursts) if machine.part is None else _on_part(
        trace, machine, channel, first, first + bursts
    )  # fmt: skip
    n = len(window.data)
    if n <= first:
        raise InputError(f"the channel carries {n} bursts in all, none from number {first} on")
    text = _dump(window, machine, trace, first)
    with whole_file(path) as stream:
        stream.write(text.encode())
    return n - first


def _without_part(trace: Trace, machine: Machine, end: int) -> _Window:
    data, stream, write, n = [], [], [], 0
    for chunk in burst_trace(trace, machine):
        assert chunk.payload is not None
        data.append(chunk.payload.reshape(-1, machine.bus.block_bytes))
        stream.append(np.asarray(chunk.stream, np.uint8))
        write.append(np.asarray(chunk.op, bool))
        n += len(chunk)
        if n >= end:
            break
    burst_ps = 1000 * (machine.bus.block_bytes // machine.bus.bus_bytes)
    blocks = np.concatenate([np.zeros((0, machine.bus.block_bytes), np.uint8), *data])[:end]
    streams = np.concatenate([np.zeros(0, np.uint8), *stream])[:end]
    writes = np.concatenate([np.zeros(0, bool), *write])[:end]
    return _Window(blocks, streams, writes, np.arange(len(blocks), dtype=np.int64) * burst_ps, burst_ps, [], burst_ps)


def _on_part(trace: Trace, machine: Machine, channel: int, first: int, end: int) -> _Window:
    assert machine.part is not None
    part = load_part(machine.part)
    played = commands_of(trace, machine, channel, bursts=end)
    t, o = part.timing, part.organisation
    clock_ps = part.tck_ns * 1000
    moving = np.flatnonzero(np.isin(played.table["command"], MOVES_DATA))[:end]
    rows = played.table[moving]
    is_write = ~np.isin(rows["command"], READS)
    read_latency = t.RL_dbi if machine.memory_controller().read_dbi else t.RL
    start = rows["cycle"] + np.where(is_write, t.WL, read_latency)
    shown = np.zeros(0, played.table.dtype)
    if len(moving) > first:  # commands between the burst before the window and its last one
        shown = played.table[0 if first == 0 else moving[first - 1] + 1 : moving[-1] + 1]
    commands = [
        (round(int(row["cycle"]) * clock_ps), COMMANDS[row["command"]], tuple(int(row[name]) for name in _ADDRESS))
        for row in shown
    ]
    data, stream = played.data[rows["request"]], played.stream[rows["request"]]
    starts = np.round(start * clock_ps).astype(np.int64)
    return _Window(data, stream, is_write, starts, round(o.burst_cycles * clock_ps), commands, round(clock_ps))


def identifier(name: str) -> str:
    """Return a name as the format has them (IEEE 1364): letters, digits and _, no digit first; others become _.

    As it stands a part's name could end the declaration that it is in, and begin others.
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain[:1].isalpha() else f"_{plain}"


def _dump(window: _Window, machine: Machine, trace: Trace, first: int) -> str:
    try:
        from vcd import VCDWriter
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyvcd", "waves") from error
    name = "channel" if machine.part is None else identifier(load_part(machine.part).name)
    out = io.StringIO()
    with VCDWriter(out, timescale="1 ps", date="", version="edgewatt", comment=f"encoder {machine.encoder}") as writer:
        signals: dict[str, Any] = {}

        def signal(key: str, kind: Any, size: Any, init: Any) -> None:
            signals[key] = writer.register_var(name, key, kind, size=size, init=init)

        wires = list(_wires(window, machine, trace, first))
        for key, size, values in wires:
            signal(key, "wire", size, values[0])
        signal("driving", "wire", 1, "0")
        signal("burst", "integer", 64, "x")
        for key in ("stream", "direction", "command"):
            signal(key, "string", None, "")
        for key in _ADDRESS:
            signal(key, "integer", 32, 0)
        begin = min([*window.start_ps[first:].tolist(), *(at for at, _, _ in window.commands)])
        events = sorted(_events(window, wires, first), key=lambda event: event[:2])
        for at, _, key, value in events:
            writer.change(signals[key], at - begin, value)
    return out.getvalue()


def _wires(window: _Window, machine: Machine, trace: Trace, first: int) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (signal, width, values): what it carried before the window, then in each beat of it, as VCD digits."""
    chain = machine.encoder_chain(trace.description.get("element_bytes"))
    lanes, block = machine.bus.bus_bytes, chain.sent_bytes
    wires = 8 * lanes if machine.part is None else load_part(machine.part).organisation.dq_bits
    sent = chain.encode(window.data.reshape(-1), window.stream)
    groups = [("dq", 8, sent.data)]
    if sent.flags is not None:
        groups.append(("dbi", 1, np.unpackbits(sent.flags, bitorder="little", count=len(sent.data))))
    if sent.extra is not None:
        groups.append(("extra", chain.flag_wires - 1, sent.extra))
    for prefix, width, levels in groups:
        for lane in range(lanes):
            beats = range(max(0, first * block - lanes) + lane, len(sent.data), lanes)
            there = min(width, wires - 8 * lane) if prefix == "dq" else width
            values = [f"{levels[i] & (1 << there) - 1:0{there}b}" for i in beats]
            yield f"{prefix}{lane}", there, values if first else ["0" * there, *values]


def _events(
    window: _Window, wires: list[tuple[str, int, list[str]]], first: int
) -> Iterator[tuple[int, int, str, Any]]:
    """Yield (ps, rank among changes of one time, signal, value)."""
    beats = (len(wires[0][2]) - 1) // (len(window.data) - first)
    for k in range(first, len(window.data)):
        start, end = int(window.start_ps[k]), int(window.start_ps[k]) + window.burst_ps
        yield start, 1, "driving", "1"
        yield start, 1, "burst", k
        yield start, 1, "stream", STREAMS[window.stream[k]]
        yield start, 1, "direction", "write" if window.is_write[k] else "read"
        yield end, 0, "driving", "0"  # before the next burst, if that begins at once
        for beat in range(beats):
            at = start + beat * window.burst_ps // beats
            for key, _, values in wires:
                yield at, 1, key, values[1 + (k - first) * beats + beat]
    for at, name, address in window.commands:
        yield at + window.clock_ps, 0, "command", ""
        yield at, 1, "command", name
        for key, number in zip(_ADDRESS, address, strict=True):
            yield at, 1, key, number
