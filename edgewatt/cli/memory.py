"""`edgewatt cache`: caches under a trace. `edgewatt accelerator`: the memory under an accelerator model's run."""

from __future__ import annotations

from pathlib import Path

import typer

from edgewatt.cli.parts.guard import json_option, written
from edgewatt.cli.parts.inputs import PART, reads


def cache(
    trace: Path = typer.Argument(
        ...,
        metavar="TRACE",
        parser=reads("a memory trace", "trace", to=Path),
        help="A trace: our npz, Dinero, lackey, libCacheSim ...",
    ),
    level: list[str] = typer.Option(
        ["32KiB:64:8:lru"],
        "--level",
        metavar="SIZE:LINE:WAYS:POLICY",
        help="A cache level, the engine's first; repeatable. Policies: `edgewatt list cache-policies`.",
    ),
    format: str = typer.Option(None, "--format", "--from", help="Format of the trace, if the file does not show it."),
    sets: int = typer.Option(1, help="Sets of the caches of the miss curve (1: fully associative)."),
    region_bytes: int = typer.Option(None, help="Cut the addresses into pieces of so many bytes."),
    page: Path = typer.Option(
        None, "--page", parser=written, metavar="FILE", help="Write a page with the miss curve and the tables."
    ),
    json_file: str = json_option(),
) -> None:
    """Play a trace through caches.

    The miss curve is exact for LRU at every size, in one pass (Mattson et al. 1970).

      edgewatt cache accesses.din

      edgewatt cache trace.npz --level 4KiB:64:4:srrip --level 64KiB:64:16:lru --page caches.html
    """
    from edgewatt.cli.parts.output import show_table, write_json
    from hwmodel.replay.profile import parse_level, profile_caches
    from traces.trace_readers import open_trace

    specs = [parse_level(text) for text in level]
    found = profile_caches(open_trace(trace, format), specs, sets=sets, region_bytes=region_bytes)
    report = found.as_dict()
    if page is not None:
        from edgewatt.reporting.cache_page import cache_page
        from traces.base.files import whole_file

        with whole_file(page) as stream:
            stream.write(cache_page(found, trace.name).encode())
    if write_json(report, json_file):
        return
    for k, (text, one) in enumerate(zip(level, found.levels, strict=True), 1):
        counts = one.counts
        plain = [(n, f"{getattr(counts, n):,}") for n in ("lookups", "hits", "misses", "evictions", "writebacks")]
        plain.append(("hit rate", f"{counts.hits / counts.lookups:.4f}" if counts.lookups else ""))
        show_table(("what", "value"), plain, title=f"level {k}: {text}", numeric=("value",))
        rows = [
            (kind, name, f"{part.lookups:,}", f"{part.misses:,}", f"{part.hit_rate:.4f}")
            for kind, parts in (("stream", one.streams), ("region", one.regions))
            for name, part in parts.items()
        ]
        numbers = ("look-ups", "misses", "hit rate")
        show_table(("of", "name", *numbers), rows, numeric=numbers)
    curve = found.curve
    points = zip(curve.size_bytes.tolist(), curve.misses.tolist(), strict=True)
    rates = [(f"{size:,}", f"{n:,}", f"{n / curve.lookups:.4f}" if curve.lookups else "") for size, n in points]
    title = f"LRU, {curve.line_bytes}-byte lines, {'fully associative' if sets == 1 else f'{sets} sets'}"
    show_table(("size in bytes", "misses", "miss ratio"), rates, title=title, numeric=("size in bytes", "misses"))


def accelerator(
    run: Path = typer.Argument(
        ..., metavar="RUN", help="Folder of a SCALE-Sim run, or a CSV table of accesses per layer and tensor."
    ),
    tensors: Path = typer.Option(
        ..., "--tensors", metavar="FILE", help="npz with layerN_ifmap, layerN_filter, layerN_ofmap: the true bytes."
    ),
    partials: Path = typer.Option(
        None, "--partials", metavar="FILE", help="npz with layerN_partial: the partial sums of ws and is dataflows."
    ),
    configuration: Path = typer.Option(None, "--configuration", metavar="FILE", help="The run's .cfg file."),
    part: str = typer.Option("lpddr4-3200", parser=PART, help="Shipped part or a part file (YAML)."),
    encoder: str = typer.Option("raw", help="Encoder or chain on the bus, e.g. base-xor+dbi-dc."),
    json_file: str = json_option(),
) -> None:
    """Give an accelerator model the memory that it lacks.

    Commands, ones, picojoules and nanoseconds by layer and tensor.

    SCALE-Sim says which words move and when; other models count accesses (columns layer, tensor, dram_reads,
    dram_writes, access_bits, and where known passes and layer_cycles). The tensors say which bytes these are.

      edgewatt accelerator outputs/run --tensors net.npz --encoder dbi-dc

      edgewatt accelerator counts.csv --tensors net.npz --part ddr4-3200-x8
    """
    from dataclasses import asdict

    from edgewatt.cli.parts.output import say, show_table, write_json
    from hwmodel.energy.accelerator import layer_costs
    from hwmodel.machine import BusSpec, Machine
    from hwmodel.parts.part_file import load_part
    from traces.accelerators.counts import read_counts
    from traces.accelerators.scalesim import read_run
    from traces.base.archive import read_npz
    from traces.base.units import duration, energy, in_one_unit

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
    layers = layer_costs(traffic, machine)
    report: dict[str, object] = {
        "part": loaded.name,
        "encoder": encoder,
        "order": "as the tool issued the words" if counted is None else "assumed: each tensor walked linearly",
        "layers": [{**asdict(layer), "shared_pj": layer.shared_pj} for layer in layers],
        "total_pj": sum(layer.total_pj for layer in layers),
        "time_ns": sum(layer.time_ns for layer in layers),
    }
    if counted is not None:
        report["counted"] = [
            {"layer": each.layer, "tensor": each.tensor, **asdict(exact), "ones": exact.ones,
             "moved_bytes": exact.moved_bytes, "rounding_bytes": exact.rounding_bytes}
            for each, exact in zip(traffic, counted, strict=True)
        ]  # fmt: skip
    if write_json(report, json_file):
        return
    rows: list[tuple[str, ...]] = []
    spent: list[tuple[float, float | None]] = []
    for layer in layers:
        for each in layer.tensors:
            numbers = (each.moved_bytes, each.reads, each.writes, each.ones, each.toggles)
            rows.append((str(layer.layer), each.tensor, *(f"{n:,}" for n in numbers)))
            spent.append((each.wire_pj + each.burst_pj, None))
        rows.append((str(layer.layer), "shared", *[""] * 5))
        spent.append((layer.shared_pj, layer.time_ns))
    joules, energies = in_one_unit([pj for pj, _ in spent], 1e-12, "J")
    seconds, times = in_one_unit([ns for _, ns in spent], 1e-9, "s")
    rows = [(*row, *cells) for row, *cells in zip(rows, energies, times, strict=True)]
    columns = ("layer", "tensor", "bytes", "reads", "writes", "ones", "toggles", joules, seconds)
    show_table(columns, rows, title=f"{run.name} on {loaded.name}, {encoder}", numeric=columns[2:])
    all_pj, all_ns = sum(layer.total_pj for layer in layers), sum(layer.time_ns for layer in layers)
    say(
        f"{energy(all_pj, 4)} in {duration(all_ns, 4)}; "
        "'shared' is activates, background, refresh, strobes, clock and commands"
    )
    if counted is not None:
        say("counts have no order: each tensor is walked linearly; toggles, activates and time follow from that")
    if lacking := [f"layer {each.layer} {each.tensor} ({each.missing:,} words)" for each in traffic if each.missing]:
        say(f"never moved by the tool, so the layer was not computed on whole tensors: {', '.join(lacking)}", err=True)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(cache)
    app.command()(accelerator)
