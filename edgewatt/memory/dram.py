"""Requests of a trace on a DRAM part: time, commands, energy and what a checker says of them; files of memory parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from edgewatt.config.kinds import origins_of
from hwmodel.coding.chain import chain_facts
from hwmodel.dram.checker import broken_rules
from hwmodel.dram.controller import controller_spec
from hwmodel.dram.energy import core_rows, energy_range, explain, interface_rows
from hwmodel.dram.engine import simulate_dram
from hwmodel.dram.interface import timed_groups
from hwmodel.dram.library import include_folder, write_library_file
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.part_readers.reader import Imported, import_part
from hwmodel.parts.part import COMMANDS
from hwmodel.parts.part_file import load_part
from hwmodel.replay import replay
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.memory import claim
from traces.trace.chunks import Chunk, Trace, touched_lines
from traces.trace_files import OBJECTS, guess_format, open_trace

_BURST_TAKES = 64  # bytes of memory for a request and what is known of it


def play_requests(
    trace: str | Path,
    *,
    part: str = "lpddr4-3200",
    format: str | None = None,
    controller: Mapping[str, Any] | None = None,
    encoder: str = "raw",
    commands: bool = False,
) -> PlayedRequests:
    """Play the bursts that a trace's accesses touch, one where it has no sizes; without arrival cycles all are offered
    at once.

    controller: parameters of the memory controller. encoder: of the data wires, for a trace that carries the bytes of
    whole bursts. commands: keep them, to check and to write. Raises InputError for an encoder without bytes.
    """
    loaded = load_part(part)
    burst = np.uint64(loaded.organisation.burst_bytes)
    form = format or guess_format(trace)
    opened = open_trace(trace, form, access_bytes=int(burst) if form == OBJECTS else 1)
    chunks = list(opened)
    arrivals = [chunk.cycle if chunk.cycle is not None else np.zeros(len(chunk), np.int64) for chunk in chunks]
    most = sum(int((chunk.size // int(burst) + 2).sum(dtype=np.int64)) for chunk in chunks)
    claim(_BURST_TAKES * most, str(trace), f"the bursts of {sum(map(len, chunks))} accesses")
    touched = [touched_lines(chunk.address, chunk.size, int(burst)) for chunk in chunks]
    spec = controller_spec({"requests_per_clock": 1, **(controller or {})})
    machine = _data_machine(chunks, loaded, spec, encoder)
    if machine is not None:
        spec = machine.memory_controller()  # an encoder may lengthen reads
    address = np.concatenate([lines for lines, _ in touched]) * burst
    op = np.concatenate([chunk.op[access] for chunk, (_, access) in zip(chunks, touched, strict=True)])
    arrival = np.concatenate([clocks[access] for clocks, (_, access) in zip(arrivals, touched, strict=True)])
    result = simulate_dram(address, op, arrival, part=loaded, controller=spec, trace=commands)
    at_clocks = [replace(chunk, cycle=cycle) for chunk, cycle in zip(chunks, arrivals, strict=True)]
    wires = _wires(result, loaded) if machine is None else _data_wires(opened.memory, at_clocks, machine, result)
    return PlayedRequests(loaded, spec, result, op == 0, wires, machine is not None)


@dataclass(frozen=True, eq=False)
class PlayedRequests:
    """What a part did. reads: bool[n] of the requests. wires: energy rows; with_data: those of data wires, too."""

    part: Any
    controller: Any
    result: Any
    reads: np.ndarray
    wires: tuple[Any, ...]
    with_data: bool

    @cached_property
    def energy_range(self) -> tuple[float, float]:
        least, most = energy_range(self.part, core_rows(self.result.counts, self.part))
        return least, most

    def violations(self) -> list[str]:
        return broken_rules(self.result, self.part, self.controller)

    def write_commands(self, file: Path) -> None:
        columns = ("rank", "bank_group", "bank", "row", "column", "request")
        with whole_file(file) as stream:
            stream.write(b"channel,timestamp_cycles,command,rank,bank_group,bank,row,column,request\n")
            for channel, trace in enumerate(self.result.command_trace or ()):
                for row in trace:
                    numbers = ",".join(str(int(row[name])) for name in columns)
                    stream.write(f"{channel},{int(row['cycle'])},{COMMANDS[row['command']]},{numbers}\n".encode())
                stream.write(f"{channel},{self.result.end_cycle},END,0,0,0,0,0,-1\n".encode())

    def as_dict(self) -> dict[str, Any]:
        result, wires = self.result, self.wires
        counts = result.counts
        p50, p95, p99 = result.latency_percentiles(self.reads) if counts.reads else (None, None, None)
        edges, histogram = result.latency_histogram(self.reads)
        least, most = self.energy_range
        return {
            "part": self.part.name,
            **origins_of(
                {
                    "dram-schedulers": [self.controller.scheduler],
                    "page-policies": [self.controller.page_policy],
                    "refresh-policies": [self.controller.refresh],
                }
            ),
            "requests": len(self.reads),
            "total_cycles": result.total_cycles,
            "time_ns": result.time_ns,
            "mean_read_latency_cycles": result.mean_read_latency_cycles if counts.reads else None,
            "read_latency_p50_cycles": p50,
            "read_latency_p95_cycles": p95,
            "read_latency_p99_cycles": p99,
            "read_latency_max_cycles": counts.max_read_latency_cycles if counts.reads else None,
            "read_latency_histogram": [
                {"from_cycles": int(low), "requests": int(n)} for low, n in zip(edges, histogram, strict=False) if n
            ],
            "mean_requests_in_memory": result.mean_requests_in_memory,
            "bandwidth_gbytes_per_s": [round(float(rate), 3) for rate in result.bandwidth_over_time()],
            "row_hits": counts.row_hits,
            "row_conflicts": int(sum(row["conflicts"] for row in result.rows_by_bank())),
            "banks": [row for row in result.rows_by_bank() if row["activates"]],
            "commands": {name: count for name, count in result.commands.items() if count},
            "core_energy_pj": result.core_energy_pj,
            "core_energy_low_pj": least,
            "core_energy_high_pj": most,
            "interface_energy_pj": sum(row.energy_pj for row in wires),
            "total_energy_pj": result.core_energy_pj + sum(row.energy_pj for row in wires),
            "terms": explain(core_rows(counts, self.part)),
            "interface_terms": explain(wires),
        }


def _data_machine(chunks: list[Chunk], part: Any, spec: Any, encoder: str) -> Machine | None:
    o = part.organisation
    size = o.burst_bytes
    whole = all((chunk.size == size).all() and not (chunk.address % size).any() for chunk in chunks)
    if not whole or any(chunk.payload is None for chunk in chunks):
        if not chain_facts(encoder).plain:
            raise InputError(
                f"--encoder {encoder} needs a trace that carries the bytes of whole bursts of {size} bytes"
            )
        return None
    return Machine((), encoder, bus=BusSpec(o.byte_lanes, size), part=part, controller=spec, flush=False)


def _data_wires(memory: Any, chunks: list[Chunk], machine: Machine, result: Any) -> tuple[Any, ...]:
    played = replay(Trace.from_chunks(chunks, memory), machine)
    assert played.dram is not None and played.dram.commands == result.commands
    return replay_energy(played, machine).interface


def _wires(result: Any, part: Any) -> tuple[Any, ...]:
    n = result.commands
    bursts = (n["RD"] + n["RDA"], n["WR"] + n["WRA"] + n["MWR"])
    return interface_rows(timed_groups(result.counts, bursts, result.end_cycle, part), part)


def library_file(file: str | Path, part: str, controller: Mapping[str, Any]) -> str:
    write_library_file(file, part, dict(controller))
    return str(include_folder())


def import_file(
    file: str | Path, output: str | Path, *, base: str | None, name: str | None, format: str | None
) -> Imported:
    imported = import_part(file, base=base, name=name, format=format)
    text = yaml.safe_dump(imported.data, sort_keys=False, allow_unicode=True, width=120)
    with whole_file(output) as stream:
        stream.write(f"# Schema: docs/concepts/dram-parts.md.\n{text}".encode())
    return imported


def describe_imported(imported: Imported) -> list[str]:
    part = imported.part
    lines = [
        f"{part.name}, {part.standard}, {part.data_rate_mts:.0f} MT/s, "
        f"{part.organisation.capacity_bytes / 2**30:g} GiB, wires of {imported.data['extends']}"
    ]
    if imported.inherited:
        names, base = ", ".join(imported.inherited), imported.data["extends"]
        lines.append(f"not in the file: {names}; an event takes the energy that it takes on {base}")
    return [*lines, *([f"not used: {', '.join(imported.unused)}"] if imported.unused else [])]
