"""`edgewatt arena`: where do buffers with fixed lifetimes go in one memory?"""

from __future__ import annotations

import typer


def arena(
    file: str = typer.Argument(..., metavar="FILE", help="CSV with columns id, lower, upper (half-open), size."),
    capacity: int = typer.Option(None, help="Any placement in so many bytes will do; without it, as low as can be."),
    alignment: int = typer.Option(1, help="Every offset is a multiple of it."),
    allocator: str = typer.Option("exact", help="How: see `edgewatt list allocators`."),
    time_limit: float = typer.Option(None, metavar="SECONDS", help="Stop then, with the best found and its bound."),
    output: str = typer.Option(None, "-o", "--output", metavar="FILE", help="Write the CSV with a column offset."),
    json_file: str = typer.Option(
        None, "--json", metavar="FILE", help="Write the result as JSON ('-': standard output)."
    ),
) -> None:
    """Place buffers in one arena so that none that are live together share a byte.

    Example:  edgewatt arena buffers.csv --capacity 1048576 -o placed.csv

    Ends with status 1 where the capacity is not met, and says whether that is proved to be impossible.
    """
    from edgewatt.cli.output import write_json
    from reorder.arena.allocate import allocate
    from reorder.arena.files import read_buffers, write_placement

    given = read_buffers(file, alignment)
    b = given.buffers
    placed = allocate(
        b.lower,
        b.upper,
        b.size,
        capacity=capacity,
        alignment=alignment,
        time_limit_s=time_limit,
        allocator=allocator,
    )
    fits = capacity is None or placed.height <= capacity
    if output is not None and fits:
        write_placement(given, placed, output)
    summary = {
        "file": file,
        "buffers": b.count,
        "allocator": allocator,
        "alignment": alignment,
        "capacity": capacity,
        "fits": fits,
        "height": placed.height,
        "load": b.load,
        "lower_bound": placed.lower_bound,
        "proved": placed.proved,
        "nodes": placed.nodes,
        "truncated": placed.truncated,
        "offsets": dict(zip(given.names, placed.offset.tolist(), strict=True)),
    }
    if not write_json(summary, json_file):
        typer.echo(f"{b.count} buffers, {b.load:,} B live at once at most")
        typer.echo(in_words(placed.height, placed.lower_bound, capacity))
        if output is not None and fits:
            typer.echo(f"written: {output}")
    if not fits:
        raise typer.Exit(1)


def in_words(height: int, lower_bound: int, capacity: int | None) -> str:
    """Say in one sentence what is known about a placement."""
    if capacity is not None and height > capacity:
        if lower_bound > capacity:
            return f"they do not fit in {capacity:,} B: proved, every placement needs at least {lower_bound:,} B"
        return (
            f"no placement in {capacity:,} B found: the best needs {height:,} B, "
            f"none can need less than {lower_bound:,} B"
        )
    if height == lower_bound:
        return f"placed in {height:,} B: proved, no placement needs less"
    room = "" if capacity is None else f" (they fit in {capacity:,} B)"
    return f"placed in {height:,} B{room}: no placement needs less than {lower_bound:,} B"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(arena)
