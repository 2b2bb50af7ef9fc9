"""`edgewatt schedule` and `arena`: orders of operators, places of buffers."""

from __future__ import annotations

from typing import Any

import typer

from edgewatt.cli.parts.arguments import MACHINE, PART, json_option, reads, shapes_of, size_of, writes
from edgewatt.cli.parts.output import parameters_of, progress, say, show_table, write_json


def schedule(
    model: str = typer.Argument(
        ...,
        metavar="MODEL",
        parser=reads("a model", "model", "graph"),
        help="A .tflite, .onnx or .json file, or a generated graph: darts_v2, randwire-ws64-seed1.",
    ),
    objective: str = typer.Option(
        "peak", help="What to minimise: peak, arena, traffic (needs --onchip-bytes), energy (--system)."
    ),
    method: str = typer.Option("best-first", help="Search method (`edgewatt list schedulers`)."),
    parameter: list[str] = typer.Option(
        [], "--set", "-s", metavar="NAME=VALUE", help="A parameter of the method, such as divide=false of serenity."
    ),
    rewrite: list[str] = typer.Option(
        [], help="Rewrite first: fold-concat, channel-wise, kernel-wise, absorb-add or all; in-place, views."
    ),
    allocator: str = typer.Option("exact", help="Placement in the arena (`edgewatt list allocators`)."),
    batch: int = typer.Option(
        None, help="Value of the inputs' first dimension where an .onnx model leaves it open (1)."
    ),
    shape: list[str] = typer.Option(
        [], metavar="NAME=SIZES", help="Shape of an .onnx model's input, such as image=1x3x224x224; repeatable."
    ),
    alignment: str = typer.Option(
        "64", help="Align offsets to so many bytes; graph: to the largest divisor of all sizes."
    ),
    banks: str = typer.Option(
        None, metavar="FILE", help="YAML with `banks`, a list of name, mb_per_s, size_bytes: also place buffers there."
    ),
    onchip_bytes: int = typer.Option(
        None, parser=size_of, help="On-chip memory, e.g. 64KiB; --objective traffic needs it."
    ),
    block_bytes: int = typer.Option(256, min=1, help="Blocks in which off-chip traffic moves."),
    budget_bytes: int = typer.Option(None, parser=size_of, help="Fail unless the schedule fits in this memory."),
    system: str = typer.Option(
        None, parser=MACHINE, help="Machine for --objective energy (`edgewatt list systems`, or a YAML file)."
    ),
    time_limit: float = typer.Option(
        None,
        metavar="SECONDS",
        help="Stop after SECONDS with the best found and its bound; comparing orders gets as long again.",
    ),
    evaluations: int = typer.Option(5_000, help="Number of orders that the search for arena or traffic tries."),
    seed: int = typer.Option(0, help="Seed of that search."),
    part: str = typer.Option(
        None, parser=PART, help="Add the energy of off-chip transfers on this DRAM, at --onchip-bytes (or 64 KiB)."
    ),
    encoder: str = typer.Option(None, help="Encoder of its data wires, e.g. base-xor+dbi-dc (default: raw)."),
    output: str = writes(
        "Write the .tflite or .onnx model back, reordered and rewritten (.tflite: with the arena's offsets).",
        "-o",
        "--output",
    ),
    page: str = writes("Write a page with the map of the arena, address over time."),
    json_file: str = json_option(),
) -> None:
    """Order the operators of a model for the least peak memory.

    Example:  edgewatt schedule model.tflite --rewrite all --page schedule.html

    Prints peak memory, arena and off-chip traffic of the file's order, of Kahn's and of the schedule, and whether the
    schedule is proved to be the best.
    """
    from edgewatt.operators.request import ScheduleRequest, find_schedule

    request = ScheduleRequest(
        model=model, batch=batch, shapes=shapes_of(shape), alignment=alignment, rewrite=rewrite, banks=banks,
        part=part, encoder=encoder, output=output, page=page,
        search={
            "objective": objective, "machine": system, "method": method, "allocator": allocator,
            "onchip_bytes": onchip_bytes, "block_bytes": block_bytes, "budget_bytes": budget_bytes,
            "time_limit_s": time_limit, "evaluations": evaluations, "seed": seed,
            **parameters_of(parameter),
        },
    )  # fmt: skip
    with progress("schedule") as report:
        scheduled = find_schedule(request, report)
    if not write_json(scheduled.summary, json_file):
        _print(scheduled)
        for line in scheduled.words:
            say(line)
        for file in filter(None, (output, page, json_file)):
            say(f"written: {file}")
    if scheduled.unpriced is not None:
        raise scheduled.unpriced


def _print(scheduled: Any) -> None:
    from edgewatt.operators.words import describe_arena, describe_proof, order_lines
    from traces.base.units import engineering

    result, rows = scheduled.result, scheduled.rows
    columns = [f"{row['order']} order" for row in rows]
    lines = [
        (text, *(f"{value:,}" if isinstance(value, int) else value for value in values))
        for text, values in order_lines(rows, scheduled.sizes)
    ]
    show_table(("", *columns), lines, title=result.graph.name, numeric=columns)
    for reason in dict.fromkeys(row["traffic_left_out"] for row in rows if "traffic_left_out" in row):
        say(f"off-chip traffic left out: {reason}")
    say(describe_proof(result))
    say(describe_arena(result))
    times = [engineering(seconds, "s") for seconds in (scheduled.read_s, scheduled.search_s)]
    say(f"{result.states:,} states; read in {times[0]}, scheduled in {times[1]}")


def arena(
    file: str = typer.Argument(
        ...,
        metavar="FILE",
        parser=reads("a table of buffers", "buffers", "plan"),
        help="CSV with columns id, lower, upper (half-open), size; with banks also traffic, bank. Or a JSON file of "
        "`edgewatt schedule --json`.",
    ),
    capacity: int = typer.Option(
        None,
        metavar="BYTES",
        parser=size_of,
        help="Stop at a placement that fits, such as 1MiB (default: as low as possible).",
    ),
    alignment: int = typer.Option(None, help="Align every offset to so many bytes (default: the JSON file's, or 1)."),
    allocator: str = typer.Option("exact", help="Placement method (`edgewatt list allocators`)."),
    banks: str = typer.Option(
        None, metavar="FILE", help="YAML with `banks`, a list of name, mb_per_s, size_bytes to place the buffers in."
    ),
    time_limit: float = typer.Option(
        None, metavar="SECONDS", help="Stop after SECONDS with the best found and its bound."
    ),
    output: str = writes("Write the CSV with a column offset.", "-o", "--output"),
    page: str = writes("Write a page with the map, address over time."),
    json_file: str = json_option(),
) -> None:
    """Place buffers in an arena or in several memory banks.

    Example:  edgewatt arena buffers.csv --capacity 1048576 -o placed.csv --page map.html

    Exit status 1 if the capacity is not met; the message says whether that is proved impossible.
    """
    from edgewatt.operators.arena import place_buffers

    placed = place_buffers(
        file, capacity=capacity, alignment=alignment, allocator=allocator, banks=banks, time_limit_s=time_limit,
        output=output, page=page,
    )  # fmt: skip
    if not write_json(placed.summary, json_file):
        for line in placed.words:
            say(line)
        for path in (output if placed.fits else None, page, json_file):
            if path:
                say(f"written: {path}")
    if not placed.fits:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    app.command()(schedule)
    app.command()(arena)
