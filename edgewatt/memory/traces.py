"""A trace through caches, and the memory under an accelerator model's run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hwmodel.energy.accelerator import LayerCost, layer_costs
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay.profile import parse_level, profile_caches
from traces.accelerators.scalesim import read_counts, read_run
from traces.base.archive import read_npz
from traces.base.units import duration, energy, in_one_unit
from traces.trace_files import ACCESS_BYTES, OBJECTS, guess_format, open_trace


def profile_trace(
    trace: str | Path, levels: Sequence[str], *, format: str | None, sets: int, region_bytes: int | None,
    access_bytes: int | None,
) -> Any:  # fmt: skip
    specs, form = [parse_level(text) for text in levels], format or guess_format(trace)
    usual = specs[0].line_bytes if form == OBJECTS else ACCESS_BYTES
    opened = open_trace(trace, form, access_bytes=usual if access_bytes is None else access_bytes)
    return profile_caches(opened, specs, sets=sets, region_bytes=region_bytes)


def curve_rows(curve: Any) -> list[tuple[str, str, str]]:
    points = zip(curve.size_bytes.tolist(), curve.misses.tolist(), strict=True)
    return [(f"{size:,}", f"{n:,}", _share(n, curve.lookups)) for size, n in points]


def level_rows(counts: Any) -> list[tuple[str, str]]:
    names = ("lookups", "hits", "misses", "evictions", "writebacks")
    return [
        *((name, f"{getattr(counts, name):,}") for name in names),
        ("hit rate", _share(counts.hits, counts.lookups)),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else ""


@dataclass(frozen=True, eq=False)
class AcceleratorMemory:
    """What a run costs on a part. traffic: by layer and tensor. counted: exact sums of a table of counts, else None."""

    part: str
    encoder: str
    layers: Sequence[LayerCost]
    traffic: Sequence[Any]
    counted: Sequence[Any] | None

    @property
    def total_pj(self) -> float:
        return sum(layer.total_pj for layer in self.layers)

    @property
    def time_ns(self) -> float:
        return sum(layer.time_ns for layer in self.layers)

    def as_dict(self) -> dict[str, Any]:
        report: dict[str, Any] = {
            "part": self.part,
            "encoder": self.encoder,
            "order": "as the tool issued the words" if self.counted is None else "assumed: each tensor walked linearly",
            "layers": [{**asdict(layer), "shared_pj": layer.shared_pj} for layer in self.layers],
            "total_pj": self.total_pj,
            "time_ns": self.time_ns,
        }
        if self.counted is not None:
            report["counted"] = [
                {"layer": each.layer, "tensor": each.tensor, **asdict(exact), "ones": exact.ones,
                 "moved_bytes": exact.moved_bytes, "rounding_bytes": exact.rounding_bytes}
                for each, exact in zip(self.traffic, self.counted, strict=True)
            ]  # fmt: skip
        return report

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows: list[tuple[str, ...]] = []
        spent: list[tuple[float, float | None]] = []
        for layer in self.layers:
            for each in layer.tensors:
                numbers = (each.moved_bytes, each.reads, each.writes, each.ones, each.toggles)
                rows.append((str(layer.layer), each.tensor, *(f"{n:,}" for n in numbers)))
                spent.append((each.wire_pj + each.burst_pj, None))
            rows.append((str(layer.layer), "shared", *[""] * 5))
            spent.append((layer.shared_pj, layer.time_ns))
        joules, energies = in_one_unit([pj for pj, _ in spent], 1e-12, "J")
        seconds, times = in_one_unit([ns for _, ns in spent], 1e-9, "s")
        columns = ("layer", "tensor", "bytes", "reads", "writes", "ones", "toggles", joules, seconds)
        return columns, [(*row, *cells) for row, *cells in zip(rows, energies, times, strict=True)]

    def describe(self) -> tuple[list[str], str]:
        lines = [
            f"{energy(self.total_pj, 4)} in {duration(self.time_ns, 4)}; "
            "'shared' is activates, background, refresh, strobes, clock and commands"
        ]
        if self.counted is not None:
            lines.append(
                "counts have no order: each tensor is walked linearly; toggles, activates and time follow from that"
            )
        lacking = [
            f"layer {each.layer} {each.tensor} ({each.missing:,} words)" for each in self.traffic if each.missing
        ]
        never = f"never moved by the tool, so the layer was not computed on whole tensors: {', '.join(lacking)}"
        return lines, never if lacking else ""


def accelerator_memory(
    run: Path, tensors: Path, *, partials: Path | None, configuration: Path | None, part: str, encoder: str
) -> AcceleratorMemory:
    """Read a SCALE-Sim run (a folder) or a table of accesses (CSV) with its tensors, and price it."""
    arrays = read_npz(tensors)
    loaded = load_part(part)
    o = loaded.organisation
    machine = Machine((), encoder, bus=BusSpec(o.byte_lanes, o.burst_bytes), part=loaded)
    counted = None
    if run.is_dir():
        sums = None if partials is None else read_npz(partials)
        traffic = read_run(run, arrays, partials=sums, configuration=configuration)
    else:
        counts = read_counts(run, arrays)
        traffic, counted = [each for each, _ in counts], [exact for _, exact in counts]
    return AcceleratorMemory(loaded.name, encoder, layer_costs(traffic, machine), traffic, counted)
