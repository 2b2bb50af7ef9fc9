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
    sets: int = typer.Option(1, help="Number of sets in the miss curve (1: fully associative)."),
    region_bytes: int = typer.Option(None, help="Also count by regions of so many bytes."),
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
    from edgewatt.memory.caches import curve_rows, level_rows, profile_trace

    profile = profile_trace(trace, level, format=format, sets=sets, region_bytes=region_bytes)
    report = profile.as_dict()
    if page is not None:
        from edgewatt.pages.cache import cache_page
        from traces.base.files import whole_file

        with whole_file(page) as stream:
            stream.write(cache_page(profile, trace.name).encode())
    if write_json(report, json_file):
        return
    for k, (text, one) in enumerate(zip(level, profile.levels, strict=True), 1):
        show_table(("what", "value"), level_rows(one.counts), title=f"level {k}: {text}", numeric=("value",))
        rows = [
            (kind, name, f"{part.lookups:,}", f"{part.misses:,}", f"{part.hit_rate:.4f}")
            for kind, parts in (("stream", one.streams), ("region", one.regions))
            for name, part in parts.items()
        ]
        numbers = ("look-ups", "misses", "hit rate")
        show_table(("of", "name", *numbers), rows, numeric=numbers)
    curve = profile.curve
    title = f"LRU, {curve.line_bytes}-byte lines, {'fully associative' if sets == 1 else f'{sets} sets'}"
    show_table(
        ("size in bytes", "misses", "miss ratio"), curve_rows(curve), title=title, numeric=("size in bytes", "misses")
    )


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
    """Play an accelerator model's traffic on a memory.

    Commands, ones, picojoules and nanoseconds by layer and tensor.

    SCALE-Sim says which words move and when; other models count accesses (columns layer, tensor, dram_reads,
    dram_writes, access_bits, and where known passes and layer_cycles). The tensors say which bytes these are.

      edgewatt accelerator outputs/run --tensors net.npz --encoder dbi-dc

      edgewatt accelerator counts.csv --tensors net.npz --part ddr4-3200-x8
    """
    from edgewatt.cli.parts.output import say, show_table, write_json
    from edgewatt.memory.accelerators import accelerator_memory

    played = accelerator_memory(
        run, tensors, partials=partials, configuration=configuration, part=part, encoder=encoder
    )  # fmt: skip
    if write_json(played.as_dict(), json_file):
        return
    columns, rows = played.table()
    show_table(columns, rows, title=f"{run.name} on {played.part}, {encoder}", numeric=columns[2:])
    said, never_moved = played.in_words()
    for line in said:
        say(line)
    if never_moved:
        say(never_moved, err=True)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(cache)
    app.command()(accelerator)
