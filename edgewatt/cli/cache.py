"""`edgewatt cache`: what caches do with a trace, by level, stream and address region, and misses over all sizes."""

from __future__ import annotations

from pathlib import Path

import typer


def cache(
    trace: Path = typer.Argument(..., metavar="TRACE", help="A trace: our npz, Dinero, lackey, libCacheSim ..."),
    level: list[str] = typer.Option(
        ["32KiB:64:8:lru"],
        "--level",
        metavar="SIZE:LINE:WAYS:POLICY",
        help="A cache level, the engine's first; repeatable. Policies: `edgewatt list cache-policies`.",
    ),
    format: str = typer.Option(None, help="Format of the trace, if the file does not show it."),
    sets: int = typer.Option(1, help="Sets of the caches of the miss curve (1: fully associative)."),
    region_bytes: int = typer.Option(None, help="Cut the addresses into pieces of so many bytes."),
    page: Path = typer.Option(None, "--page", metavar="FILE", help="Write a page with the miss curve and the tables."),
    json_file: str = typer.Option(
        None, "--json", metavar="FILE", help="Write the result as JSON ('-': standard output)."
    ),
) -> None:
    """Play a trace through caches.

    The miss curve is exact for LRU at every size, in one pass (Mattson et al. 1970). Examples:

      edgewatt cache accesses.din

      edgewatt cache trace.npz --level 4KiB:64:4:srrip --level 64KiB:64:16:lru --page caches.html
    """
    from edgewatt.cli.output import show_table, write_json
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


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(cache)
