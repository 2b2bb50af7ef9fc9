"""DRAM commands in time order, with the data of their bursts: read from a table, taken from a run, and counted.

A table needs the columns timestamp_cycles, command, rank, bank_group, bank, row, column and, where it has data,
data_hex, or those in that order without a header. Commands have our names or DRAMPower's; END marks the end of the run.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hwmodel.dram.counts import DramCounts
from hwmodel.parts.part import COMMANDS, READ_COMMANDS, WRITE_COMMANDS, Part
from traces.base.checks import plain_digits
from traces.base.errors import InputError, brief, did_you_mean
from traces.base.files import named_fields

_BURSTS = READ_COMMANDS + WRITE_COMMANDS
_OF_A_BANK = ("ACT", "ACT2", *_BURSTS, "PRE", "REFpb", "RFM")

READS, WRITES = (tuple(map(COMMANDS.index, names)) for names in (READ_COMMANDS, WRITE_COMMANDS))
_ALIASES = {"REFA": "REFab", "REFB": "REFpb", "REF": "REFab"}
_ALIASES |= {"PDEA": "PDE", "PDEP": "PDE", "PDXA": "PDX", "PDXP": "PDX"}  # DRAMPower names the state of the banks
_ALIASES |= {"REFSB": "REFpb", "REFDB": "REF2b", "REFP2B": "REF2b", "SREFEN": "SRE", "SREFEX": "SRX"}
Spans = list[tuple[int, int]]
_COLUMNS = ("timestamp_cycles", "command", "rank", "bank_group", "bank", "row", "column", "data_hex")


@dataclass(frozen=True)
class CommandTable:
    """Commands of one channel in time order.

    cycle int64[n], command int8[n] (index into constraints.COMMANDS), rank, bank_group, bank, row, column int32[n].
    data uint8[bursts, burst_bytes] or None: the bytes of the RD and WR commands, in their order; byte k travels in beat
    k // lanes on byte lane k % lanes. end_cycle: length of the run. gaps: where data wires are between bursts that do
    not touch: they `rest` at the idle level, as in DRAMPower, or `hold` the last one, as in a replay.
    """

    cycle: np.ndarray
    command: np.ndarray
    rank: np.ndarray
    bank_group: np.ndarray
    bank: np.ndarray
    row: np.ndarray
    column: np.ndarray
    data: np.ndarray | None
    end_cycle: int
    gaps: str = "rest"

    @property
    def is_read(self) -> np.ndarray:
        """bool[n]: commands that read a burst."""
        return np.isin(self.command, READS)

    @property
    def is_write(self) -> np.ndarray:
        """bool[n]: commands that write a burst."""
        return np.isin(self.command, WRITES)

    def __len__(self) -> int:
        return len(self.cycle)


def command_table(commands: Any, *, part: Part, end_cycle: int | None = None) -> CommandTable:
    """Return a CommandTable from itself, a CSV path, rows (mappings), columns (arrays) or an engine trace."""
    if end_cycle is not None and not 0 <= end_cycle < 1 << 60:
        raise InputError(f"end_cycle {end_cycle} is not from 0 to 2^60")
    if isinstance(commands, CommandTable):
        return commands
    if isinstance(commands, (str, Path)):
        return _from_rows(_read_csv(Path(commands)), part, str(commands), end_cycle)
    if isinstance(commands, np.ndarray) and commands.dtype.names:
        return from_trace(_checked_trace(commands, part), part=part, end_cycle=end_cycle)
    if isinstance(commands, np.ndarray):
        raise InputError(f"a command table is rows or named columns, not an array of {commands.dtype}")
    if isinstance(commands, Mapping):
        names = [name for name in _COLUMNS if name in commands]
        lengths = {len(commands[name]) for name in names}
        if len(lengths) != 1:
            raise InputError("the columns of a command table must be equally long arrays")
        rows = [dict(zip(names, row, strict=True)) for row in zip(*(commands[name] for name in names), strict=True)]
        return _from_rows(_numbered(rows), part, "commands", end_cycle)
    if isinstance(commands, Iterable) and not hasattr(commands, "getformat"):  # a SciPy matrix is not a list of rows
        return _from_rows(_numbered(commands), part, "commands", end_cycle)
    raise InputError(f"a command table is a path, rows or columns, not {type(commands).__name__}")


def from_trace(
    trace: np.ndarray,
    *,
    part: Part,
    data: np.ndarray | None = None,
    end_cycle: int | None = None,
    gaps: str = "rest",
) -> CommandTable:
    """Return the table of an engine's command trace; data uint8[requests, burst_bytes] is indexed by request number."""
    burst = np.isin(trace["command"], READS + WRITES)
    last = int(trace["cycle"][-1]) + part.timing.RL_dbi + part.organisation.burst_cycles if len(trace) else 0
    return CommandTable(
        cycle=trace["cycle"].astype(np.int64),
        command=trace["command"].astype(np.int8),
        **{name: trace[name].astype(np.int32) for name in ("rank", "bank_group", "bank", "row", "column")},
        data=None if data is None else np.ascontiguousarray(data[trace["request"][burst]]),
        end_cycle=last if end_cycle is None else end_cycle,
        gaps=gaps,
    )


def _numbered(rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"commands[{at}]", row) for at, row in enumerate(rows))


def _read_csv(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row stands, and the row; a file without a header starts with a number."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            bare = file.read(1).isdigit()
            file.seek(0)
            reader = csv.reader(file)
            header = _COLUMNS if bare else next(reader, [])
            for name in _COLUMNS[:-1]:
                if name not in header:
                    raise InputError(f"{path}:1: the column {name!r} is missing{did_you_mean(name, _COLUMNS)}")
            for row in reader:
                if row:
                    yield f"{path}:{reader.line_num}", named_fields(header, row, _COLUMNS)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!a}: not a CSV text: {brief(error)}") from error


def _limits(part: Part) -> dict[str, int]:
    o = part.organisation
    return {
        "rank": o.ranks, "bank_group": o.bank_groups, "bank": max(o.banks_per_group, o.banks), "row": o.rows,
        "column": o.columns,
    }  # fmt: skip


def _checked_trace(trace: np.ndarray, part: Part) -> np.ndarray:
    """Return an engine's trace. Raises InputError for an array that the engine cannot have made for this part."""
    limits = {"command": len(COMMANDS), **_limits(part)}
    absent = sorted({"cycle", "request", *limits} - set(trace.dtype.names or ()))
    if absent:
        raise InputError(f"a command trace has fields {', '.join(absent)}, too")
    for name in ("cycle", "request", *limits):
        if trace[name].dtype.kind not in "iu" or trace[name].ndim != 1:
            raise InputError(f"command trace: {name} must be whole numbers in one dimension")
    for name, limit in limits.items():
        bad = np.flatnonzero((trace[name] < 0) | (trace[name] >= limit))
        if len(bad):
            raise InputError(f"command {bad[0]}: {name} {trace[name][bad[0]]} is not from 0 to {limit - 1}")
    cycle = trace["cycle"]
    if len(cycle) and (int(cycle.min()) < 0 or int(cycle.max()) >= 1 << 60 or (cycle[1:] < cycle[:-1]).any()):
        raise InputError("command trace: its cycles go back, or are not from 0 to 2^60")
    return trace


def _whole(given: Any) -> int:
    return int(plain_digits(given) if isinstance(given, str) else given)


def _from_rows(rows: Iterable[tuple[str, Any]], part: Part, where: str, end_cycle: int | None) -> CommandTable:
    o, limits = part.organisation, _limits(part)
    numbers: list[tuple[int, ...]] = []
    data: list[bytes] = []
    last = 0
    for line, row in rows:
        try:
            name = str(row["command"]).strip()
            cycle = _whole(row["timestamp_cycles"])
            fields = [_whole(row.get(key) or 0) for key in limits]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise InputError(
                f"{line}: not a command row (timestamp_cycles, command, rank ...): {brief(error)}"
            ) from error
        name = _ALIASES.get(name, name)
        if not last <= cycle < 1 << 60:
            raise InputError(f"{line}: cycle {cycle} goes back behind {last}: sort the commands by time")
        last = cycle
        if name == "END":
            end_cycle = cycle if end_cycle is None else end_cycle
            break
        if name not in COMMANDS:
            raise InputError(f"{line}: unknown command {name!r}{did_you_mean(name, (*COMMANDS, 'END'))}")
        for key, value in zip(limits, fields, strict=True):
            if not 0 <= value < limits[key]:
                raise InputError(f"{line}: {key} {value} is not from 0 to {limits[key] - 1}")
        numbers.append((cycle, COMMANDS.index(name), *fields))
        if COMMANDS.index(name) in READS + WRITES:
            data.append(_burst(row.get("data_hex"), o.burst_bytes, line))
    table = np.array(numbers, np.int64).reshape(-1, 7)
    given = [d for d in data if d]
    if given and len(given) != len(data):
        raise InputError(f"{where}: {len(data) - len(given)} of {len(data)} bursts have no data")
    return CommandTable(
        cycle=table[:, 0],
        command=table[:, 1].astype(np.int8),
        **{name: table[:, k].astype(np.int32) for k, name in enumerate(limits, 2)},
        data=np.frombuffer(b"".join(data), np.uint8).reshape(-1, o.burst_bytes) if given else None,
        end_cycle=last + o.burst_cycles if end_cycle is None else int(end_cycle),
        gaps="rest",
    )


def _burst(given: Any, n_bytes: int, line: str) -> bytes:
    if given is None or (isinstance(given, str) and not given.strip()):
        return b""
    try:
        data = bytes.fromhex(given) if isinstance(given, str) else bytes(given)
    except (ValueError, TypeError) as error:
        raise InputError(f"{line}: data_hex is not hexadecimal: {error}") from error
    if len(data) != n_bytes:
        raise InputError(f"{line}: {len(data)} bytes of data, but a burst has {n_bytes}")
    return data


def count_commands(table: CommandTable, *, part: Part) -> DramCounts:
    """Count commands per bank and rank, and the clocks of each background state, from a command table.

    A bank is active from ACT to PRE (or to its auto-precharge) and while it is refreshed; a rank while one of its
    banks is.
    """
    t, o = part.timing, part.organisation
    index = {name: k for k, name in enumerate(COMMANDS)}
    bank_counts = np.zeros((1, o.ranks * o.banks, len(COMMANDS)), np.int64)
    rank_counts = np.zeros((1, o.ranks, len(COMMANDS)), np.int64)
    background = np.zeros((1, o.ranks, 5), np.int64)
    for r in range(o.ranks):
        mine = np.flatnonzero(table.rank == r)
        banks = table.bank_group[mine] * o.banks_per_group + table.bank[mine] % o.banks_per_group
        if o.bank_groups == 1:
            banks = table.bank[mine]
        opened, recovered = [-1] * o.banks, [0] * o.banks  # cycle of ACT; first cycle at which the bank may be closed
        intervals: list[tuple[int, int]] = []
        for at, bank in zip(mine.tolist(), banks.tolist(), strict=True):
            cycle, command = int(table.cycle[at]), COMMANDS[table.command[at]]
            rank_counts[0, r, index[command]] += 1
            if command in _OF_A_BANK:
                bank_counts[0, r * o.banks + bank, index[command]] += 1
            if command == "ACT":
                opened[bank], recovered[bank] = cycle, cycle + t.tRAS
            elif command in _BURSTS:
                recovery = t.tRTP if command in READ_COMMANDS else t.WL + o.burst_cycles + t.tDQSS + t.tWR
                recovered[bank] = max(recovered[bank], cycle + recovery)
                if command in ("RDA", "WRA") and opened[bank] >= 0:
                    intervals.append((opened[bank], recovered[bank]))
                    opened[bank] = -1
            elif command == "PRE" and opened[bank] >= 0:
                intervals.append((opened[bank], cycle))
                opened[bank] = -1
            elif command == "PREA":
                for b in range(o.banks):
                    if opened[b] >= 0:
                        bank_counts[0, r * o.banks + b, index["PREA"]] += 1
                        intervals.append((opened[b], cycle))
                        opened[b] = -1
            elif command in ("REFab", "REFpb", "REF2b", "RFM", "SRE"):
                intervals.append((cycle, cycle + _refresh_cycles(command, part)))
        intervals += [(start, table.end_cycle) for start in opened if start >= 0]
        asleep = [(start + t.tRFCab, end) for start, end in spans(table, r, "SRE", "SRX") if end > start + t.tRFCab]
        background[0, r] = _background(intervals, spans(table, r, "PDE", "PDX"), asleep, table.end_cycle)
    ones, rising, _ = command_wires(table, part=part)
    return DramCounts(
        bank_commands=bank_counts,
        rank_commands=rank_counts,
        background_cycles=background,
        ca_ones=ones[None],
        ca_rising=rising[None],
        reads=int(table.is_read.sum()),
        writes=int(table.is_write.sum()),
        data_clock_cycles=data_clock_cycles(table, part),
    )


def data_clock_cycles(table: CommandTable, part: Part) -> int:
    """Return the clocks in which a data clock runs that stops tWCKPST after a burst which none follows."""
    start = np.sort(table.cycle[table.is_read | table.is_write])
    run_on = part.organisation.burst_cycles + part.timing.tWCKPST
    return int(np.minimum(np.diff(start), run_on).sum()) + run_on if len(start) else 0


def _refresh_cycles(command: str, part: Part) -> int:
    t = part.timing
    return {"REFab": t.tRFCab, "SRE": t.tRFCab, "RFM": t.tRFM}.get(command, t.tRFCpb)


def spans(table: CommandTable, rank: int, entry: str, leave: str) -> Spans:
    """Return (from, to) of each stay of a rank in a state, by the commands that begin and end it."""
    entries, exits = (
        table.cycle[(table.rank == rank) & (table.command == COMMANDS.index(name))].tolist() for name in (entry, leave)
    )
    if len(exits) > len(entries):
        raise InputError(f"rank {rank}: {len(exits)} {leave} and {len(entries)} {entry} before them")
    return list(zip(entries, [*exits, table.end_cycle], strict=False))


def _background(active: Spans, down: Spans, asleep: Spans, end: int) -> list[int]:
    """Return clocks [active, precharged, down active, down precharged, self-refresh] of [0, end), edge by edge."""
    edges = [
        (min(cycle, end), kind, step)
        for kind, spans in enumerate((active, down, asleep))
        for span in spans
        for cycle, step in zip(span, (1, -1), strict=True)
    ]
    clocks, count, at = [0] * 5, [0, 0, 0], 0
    for cycle, kind, step in [*sorted(edges), (end, 0, 0)]:
        state = 4 if count[2] else (2 if count[1] else 0) + (0 if count[0] else 1)
        clocks[state] += cycle - at
        at = cycle
        count[kind] += step
    return clocks


def command_wires(table: CommandTable, *, part: Part) -> tuple[np.ndarray, np.ndarray, int]:
    """Play each command's levels; they rest at their idle level between commands, and meet where
    commands follow directly. Wires that rest at 1 fall as often as they rise, so there the falling edges are counted.

    Returns ones and rising edges int64[wires], and the number of beats.
    """
    group = part.interface.wires["ca"]
    idle = group.idle_level
    ones, rising = np.zeros(group.count, np.int64), np.zeros(group.count, np.int64)
    first = np.zeros((len(table), group.count), np.uint8)
    last = np.zeros_like(first)
    clocks = np.zeros(len(table), np.int64)
    beats = 0
    bank = table.bank if part.organisation.bank_groups == 1 else table.bank % part.organisation.banks_per_group
    fields = {"BA": bank, "BG": table.bank_group, "R": table.row, "C": table.column}
    for code, name in enumerate(COMMANDS):
        mine = np.flatnonzero(table.command == code)
        rows = command_rows(part, name)
        if not len(mine) or not rows:
            continue
        levels = np.stack([np.stack([_level(fields, token, mine) for token in row], 1) for row in rows], 1)
        ones += levels.sum(axis=(0, 1), dtype=np.int64)
        rising += ((levels[:, 1:] != idle) & (levels[:, :-1] == idle)).sum(axis=(0, 1))
        first[mine], last[mine] = levels[:, 0], levels[:, -1]
        clocks[mine] = -(-len(rows) // group.beats_per_clock)
        beats += len(mine) * len(rows)
    wired = clocks > 0
    cycle, first, last, clocks = table.cycle[wired], first[wired], last[wired], clocks[wired]
    previous = np.full_like(first, idle)
    if len(cycle):
        follows = cycle[1:] <= cycle[:-1] + clocks[:-1]
        previous[1:][follows] = last[:-1][follows]
    rising += ((first != idle) & (previous == idle)).sum(axis=0)
    return ones, rising, beats


def command_rows(part: Part, command: str) -> tuple[tuple[str, ...], ...]:
    """Return the levels of a command beat by beat; an activate in two commands has half of its beats in each."""
    levels = part.interface.command_levels
    if command not in ("ACT", "ACT2"):
        return levels.get(command, ())
    rows = levels.get("ACT", ())
    half = len(rows) // 2 if part.timing.tAAD else len(rows)
    return rows[:half] if command == "ACT" else rows[half:]


def _level(fields: dict[str, np.ndarray], token: str, mine: np.ndarray) -> np.ndarray:
    if token in ("0", "V"):
        return np.zeros(len(mine), np.uint8)
    if token == "1":
        return np.ones(len(mine), np.uint8)
    stem = token.rstrip("0123456789")
    bits: np.ndarray = fields[stem][mine] >> int(token[len(stem) :]) & 1
    return bits.astype(np.uint8)
