"""Commands of the memory: caches under a trace, an accelerator model's run, requests, a token, part files."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import typer

from edgewatt.cli.parts.arguments import PART, CommandGroup, json_option, reads, writes, written
from edgewatt.cli.parts.output import parameters_of, progress, resumable, say, show_table, write_json

_FORM = "KEY=VALUE, e.g. --set page_policy=closed"  # of a controller's parameters


def cache(
    trace: Path = typer.Argument(
        ...,
        metavar="TRACE",
        parser=reads("a memory trace", "trace", to=Path),
        help="A trace: our npz, Dinero, lackey, libCacheSim ...",
    ),
    level: list[str] = typer.Option(
        ["32KiB:64:8:lru"],
        metavar="SIZE:LINE:WAYS:POLICY",
        help="A cache level, the engine's first; repeatable. Policies: `edgewatt list cache-policies`.",
    ),
    format: str = typer.Option(None, "--format", "--from", help="Format of the trace, if the file does not show it."),
    sets: int = typer.Option(1, help="Number of sets in the miss curve (1: fully associative)."),
    region_bytes: int = typer.Option(None, help="Also count by regions of so many bytes."),
    access_bytes: int = typer.Option(
        None, help="Bytes of an access where a trace file has no sizes (default: 32; of libCacheSim's objects a line)."
    ),
    json_file: str = json_option(),
) -> None:
    """Play a trace through caches.

    The miss curve is exact for LRU at every size, in one pass (Mattson et al. 1970).

      edgewatt cache accesses.din

      edgewatt cache trace.npz --level 4KiB:64:4:srrip --level 64KiB:64:16:lru --json caches.json
    """
    from edgewatt.memory.traces import curve_rows, level_rows, profile_trace

    profile = profile_trace(
        trace, level, format=format, sets=sets, region_bytes=region_bytes, access_bytes=access_bytes
    )
    report = profile.as_dict()
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
        ..., metavar="FILE", help="npz with layerN_ifmap, layerN_filter, layerN_ofmap: the true bytes."
    ),
    partials: Path = typer.Option(
        None, metavar="FILE", help="npz with layerN_partial: the partial sums of ws and is dataflows."
    ),
    configuration: Path = typer.Option(None, metavar="FILE", help="The run's .cfg file."),
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
    from edgewatt.memory.traces import accelerator_memory

    played = accelerator_memory(
        run, tensors, partials=partials, configuration=configuration, part=part, encoder=encoder
    )  # fmt: skip
    if write_json(played.as_dict(), json_file):
        return
    columns, rows = played.table()
    show_table(columns, rows, title=f"{run.name} on {played.part}, {encoder}", numeric=columns[2:])
    lines, never_moved = played.describe()
    for line in lines:
        say(line)
    if never_moved:
        say(never_moved, err=True)


def dram(
    trace: Path = typer.Argument(
        ...,
        metavar="TRACE",
        parser=reads("a memory trace", "trace", to=Path),
        help="Requests: DRAMsim3, Ramulator 2, DRAMSys ... or our npz.",
    ),
    part: str = typer.Option("lpddr4-3200", parser=PART, help="Shipped part or a part file (YAML)."),
    format: str = typer.Option(None, "--format", "--from", help="Format of the trace, if the file does not show it."),
    controller: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Controller parameter, e.g. --set page_policy=closed; repeatable."
    ),
    encoder: str = typer.Option("raw", help="Encoder of the data wires, where the trace carries its bytes."),
    explain: bool = typer.Option(False, "--explain", help="Show count x constant = energy for every term."),
    check: bool = typer.Option(False, "--check", help="Verify every command against the part's constraints."),
    commands: Path = writes("Write the command trace as CSV."),
    json_file: str = json_option(),
) -> None:
    """Simulate a trace of memory requests on a DRAM part.

    A request is the bursts of the part that its bytes touch, one where the trace has no sizes; without arrival cycles
    all are offered at once.

      edgewatt dram requests.trc

      edgewatt dram requests.trc --part ddr4-3200-x8 --set page_policy=closed --explain

      edgewatt dram requests.trc --check --commands commands.csv
    """
    from edgewatt.memory.dram import play_requests

    played = play_requests(
        trace, part=part, format=format, controller=parameters_of(controller, _FORM), encoder=encoder,
        commands=check or commands is not None,
    )  # fmt: skip
    report = played.as_dict()
    if check:
        report["violations"] = played.violations()
    if commands is not None:
        played.write_commands(commands)
    if not write_json(report, json_file):
        plain = [(key, report[key]) for key in ("part", "requests", "total_cycles", "row_hits", "row_conflicts")]
        plain += [
            (key, report[key])
            for key in report
            if (key.startswith("read_latency_p") or key.endswith("max_cycles")) and report[key] is not None
        ]
        numbers = ("time_ns", "mean_read_latency_cycles", "mean_requests_in_memory", "core_energy_pj")
        shown = [key for key in (*numbers, "interface_energy_pj", "total_energy_pj") if report[key] is not None]
        plain += [(key, f"{report[key]:.1f}") for key in shown]
        plain.append(("core_energy_pj between", "{:.1f} and {:.1f}".format(*played.energy_range)))
        if played.with_data:
            plain.append(("wires counted", f"all, DQ and flags of encoder {encoder}"))
        else:
            plain.append(("wires counted", "strobes, clocks and commands; DQ needs the bytes of whole bursts"))
        show_table(("what", "value"), [*plain, *report["commands"].items()], title=f"edgewatt dram {trace.name}")
        if explain:
            columns = ("term", "count", "unit", "constant_pj", "energy_pj")
            cells = [
                [f"{r[c]:,.4f}" if c.endswith("pj") else r[c] for c in columns]
                for r in (*report["terms"], *report["interface_terms"])
                if r["count"]
            ]
            show_table(columns, cells, title="count x constant = energy", numeric=("count", "constant_pj", "energy_pj"))
            steps = [(row["from_cycles"], row["requests"]) for row in report["read_latency_histogram"]]
            show_table(("latency from", "reads"), steps, title="read latency, clocks")
            names = ("channel", "bank", "bursts", "hits", "conflicts", "activates", "closed")
            show_table(names, [[row[n] for n in names] for row in report["banks"]], title="rows by bank")
        if check:
            say("\n".join(report["violations"]) or "every command is legal")
    if report.get("violations"):
        raise typer.Exit(1)


def token(
    model: Path = typer.Argument(
        ...,
        metavar="MODEL_DIR",
        parser=reads("a checkpoint", "weights", "gguf", to=Path),
        help="Folder of safetensors shards with config.json, or of GGUF files; or one such file.",
    ),
    part: str = typer.Option("lpddr5x-8533", parser=PART, help="Shipped part or a part file (YAML)."),
    channels: int = typer.Option(
        None,
        help="So many of the part side by side, a power of two; of HBM one is a whole stack (default: 8, or as many as "
        "the part allows).",
    ),
    format: str = typer.Option("as-stored", help="as-stored, bf16, fp8, int8 or int4: convert the weights first."),
    layout: str = typer.Option("plain", help="plain; byte-planes, bit-planes: exponents of 4,096 values together."),
    encoder: str = typer.Option("raw", help="Encoder or chain on the bus, e.g. dbi-dc (`edgewatt list encoders`)."),
    context: int = typer.Option(0, help="Tokens before this one, whose keys and values are read."),
    batch: int = typer.Option(1, help="Texts decoded together: weights are read once for all."),
    experts: int = typer.Option(None, help="Distinct experts that a layer reads in a step (default: as configured)."),
    kv_bits: int = typer.Option(None, help="Bits of a key or value: 4, 8, 16 or 32 (default: as configured)."),
    flat: float = typer.Option(None, metavar="PJ", help="Compare with a flat energy of so many pJ a bit."),
    controller: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Controller parameter; repeatable."),
    workers: int = typer.Option(1, "-j", "--workers", help="How many workers count the wires, a tensor at a time."),
    executor: str = typer.Option("processes", help="Kind of workers: processes, threads, inline or dask."),
    scheduler: str = typer.Option(None, help="Address of a Dask scheduler, instead of a local cluster."),
    journal: str = writes("Keep finished tensors in this file, so that a killed run continues."),
    channel_order: str = writes(
        "Write the checkpoint into this folder with its channels ordered for fewer edges, and say what that saves.",
        "--order-channels",
        metavar="FOLDER",
    ),
    page: Path = writes("Write a page with bars and tables."),
    json_file: str = json_option(),
) -> None:
    """Say what one token of a language model costs in the memory.

    Every weight that a decoded token touches, and the keys and values of its context, are streamed through encoder, bus
    and DRAM: joules and milliseconds by kind and layer, exact on the wires. An encoder (BERT) reads --context tokens in
    one pass.

      edgewatt token llama/ --part lpddr5x-8533 --channels 8 --context 2048

      edgewatt token model.gguf --encoder dbi-dc --page token.html

    --order-channels permutes what a layer writes together with what reads it: inner channels of MLPs, dimensions of
    value heads, the residual stream of decoders. The function stays, and no metadata is stored.
    """
    from edgewatt.memory.token import token_energy
    from traces.base.files import check_writable, whole_file

    check_writable(page, json_file)
    options: dict[str, Any] = {
        "part": part, "channels": channels, "format": format, "encoder": encoder, "context": context, "batch": batch,
        "layout": layout, "experts": experts, "kv_bits": kv_bits, "flat_pj_per_bit": flat, "workers": workers,
        "controller": parameters_of(controller, _FORM), "executor": executor, "scheduler": scheduler,
    }  # fmt: skip
    with progress("token") as update, resumable() if journal is not None else nullcontext():
        result = token_energy(model, **options, journal=journal, progress=update)
    orders: dict[str, Any] = {}
    if channel_order is not None:
        from edgewatt.memory.token import order_and_compare

        with progress("order channels") as update:
            result, orders = order_and_compare(model, channel_order, result, options, update)
    if page is not None:
        with whole_file(page) as stream:
            stream.write(result.page(model.name or str(model)).encode("utf-8", "backslashreplace"))
    if write_json(result.as_dict() | orders, json_file):
        return
    title = f"{model.name or model} on {result.memory}, {format}, {encoder}"
    for sums, what in ((result.by_kind(), "kind"), (result.by_layers(), "layers")):
        heads, rows = result.table(sums, what)
        show_table(heads, rows, title=title, numeric=heads[1:])
        title = ""
    for line in (*result.describe(), *orders.get("describe", ())):
        say(line)


part_app = CommandGroup(no_args_is_help=True, help="Work with memory parts.")


@part_app.command()
def library(
    part: str = typer.Argument(..., parser=PART, help="Shipped part or a part file (YAML)."),
    file: str = typer.Argument(..., parser=written, metavar="OUTPUT", help="The file to write."),
    controller: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Controller parameter; repeatable."),
) -> None:
    """Write the file that the C library opens.

    It holds the part and its controller, with all times in clocks.

    Example:  edgewatt part library lpddr4-3200 lpddr4.edram --set page_policy=closed
    """
    from edgewatt.memory.dram import library_file

    headers = library_file(file, part, parameters_of(controller, _FORM))
    say(f'{file}: open it with edgewatt_dram_open; #include "dram/edgewatt_dram.h" with -I{headers}')


@part_app.command("import")
def import_(
    file: Path = typer.Argument(..., help="DRAMSys JSON, DRAMsim3 .ini, or a Ramulator 2 DRAM section as YAML."),
    output: str = writes("The part file (YAML) to write.", "--output", "-o", default=...),
    base: str = typer.Option(
        None, help="Part that gives wires and command levels (default: a shipped one of the same standard)."
    ),
    name: str = typer.Option(None, help="Name of the part (default: the file's own)."),
    format: str = typer.Option(None, help="dramsys, dramsim3 or ramulator2, if the file does not show it."),
) -> None:
    """Make a part file of another simulator's memory file.

    Sizes, times and (DRAMSys, DRAMsim3) currents come from the file, wires and command levels from the base part.

    Example:  edgewatt part import MICRON_4Gb_DDR4-2400.json -o my-ddr4.yaml
    """
    from edgewatt.memory.dram import describe_imported, import_file

    imported = import_file(file, output, base=base, name=name, format=format)
    first, *others = describe_imported(imported)
    say("\n".join([f"{output}: {first}", *others]))


def add_to(app: typer.Typer) -> None:
    for command in (cache, accelerator, dram, token):
        app.command()(command)
    app.add_typer(part_app, name="part")
