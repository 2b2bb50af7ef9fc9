"""`edgewatt order-tuples`: reorder the stored entries of a sparse matrix and say what that saves on the wires."""

from __future__ import annotations

import typer

from edgewatt.cli.parts.guard import json_option, written
from edgewatt.cli.parts.inputs import PART, reads
from edgewatt.cli.parts.output import say


def order_tuples(
    matrix: str = typer.Argument(
        ...,
        parser=reads("a sparse matrix", "matrix", "weights"),
        help="A sparse matrix: SciPy npz, Matrix Market or safetensors; or a folder of a model's safetensors shards.",
    ),
    names: str = typer.Option(
        None, "--names", metavar="TENSOR", help="Which tensor of a file with several: a name, or a pattern it fits."
    ),
    include: list[str] = typer.Option(
        [],
        "--include",
        metavar="TENSOR",
        help="Of a folder of shards: which matrices, names or patterns (default: all).",
    ),
    exclude: list[str] = typer.Option([], "--exclude", metavar="TENSOR", help="Of a folder of shards: which not."),
    prune: float = typer.Option(None, "--prune", metavar="SHARE", help="Share of the weights to drop, smallest first."),
    value_format: str = typer.Option("fp16", "--format", help="Number format of the values (`edgewatt list formats`)."),
    stride: str = typer.Option(
        "128", help="Tuples that may change places: a number, 'row', 'matrix' (coo), or 'auto'."
    ),
    method: str = typer.Option("local-search", help="A tuple order (`edgewatt list tuple-orders`)."),
    layout: str = typer.Option("csr", help="csr, csc, coo or ell."),
    encoder: str = typer.Option(
        "base-xor+dbi-dc", help="What the bus does: base-xor, base-xor+dbi-dc; raw for toggles."
    ),
    objective: str = typer.Option("joint", help="Count values and ids ('joint'), 'values' or 'ids'."),
    metric: str = typer.Option("ones", help="ones (terminated bus), toggles (unterminated) or energy (of --part)."),
    part: str = typer.Option(
        None, parser=PART, help="DRAM part whose constants weigh ones and edges, for --metric energy."
    ),
    id_bits: int = typer.Option(None, help="8, 16 or 32 (default: 16; of a folder, as the columns need)."),
    block_bytes: int = typer.Option(32, help="A base is sent at every multiple of this."),
    base_interval: str = typer.Option(None, help="Bytes between bases instead, or 'row', or 'matrix'."),
    stride_restart: str = typer.Option("row", help="Strides start at each row ('row') or run on ('continuous')."),
    rows: str = typer.Option("packed", help="Rows packed, or padded to whole blocks."),
    effort: str = typer.Option(
        "default", help="Work of local-search: fast, default, best, or a number, 1 for about 60 us per tuple."
    ),
    seed: int = typer.Option(0, help="Same seed, same order, whatever the number of workers."),
    workers: int = typer.Option(1, "-j", "--workers", help="How many work at once."),
    executor: str = typer.Option(
        None, help="Who they are: threads (default of compiled methods), processes, inline or dask."
    ),
    scheduler: str = typer.Option(None, help="Address of a Dask scheduler, instead of a local cluster."),
    output: str = typer.Option(
        None,
        "-o",
        "--output",
        parser=written,
        metavar="FILE",
        help="Write the reordered matrix (.npz, .mtx, .safetensors).",
    ),
    checkpoint: str = typer.Option(
        None, parser=written, metavar="FILE", help="Keep finished groups here, so that a killed run continues."
    ),
    json_file: str = json_option(),
) -> None:
    """Order the tuples of a sparse matrix for few ones on the bus.

    Tuples move inside strides only.

    Example:  edgewatt order-tuples weights.npz --format fp16 --stride 128 -o reordered.npz

    Example:  edgewatt order-tuples model.safetensors --names layer1.0.conv1.weight --prune 0.9 -o conv1.npz

    Example:  edgewatt order-tuples llama/ --exclude "*embed*" --effort fast -j 8 -o llama-reordered/

    Of a folder every matrix is streamed into shards of the same names, in memory that does not grow with it; the same
    command goes on where it was killed. Values keep the format that they are stored in.

    --stride auto takes the largest multiple of 32 up to 512 that costs no time on the GPU of Feinberg et al. 2020 with
    one --part (default lpddr4-3200) as its memory, tried with quick orders as they propose.
    """
    from dataclasses import asdict
    from pathlib import Path

    from edgewatt.cli.parts.output import progress, resumable, show_table, write_json
    from edgewatt.cli.tables import show_weights
    from edgewatt.orders.describe import described, kept_share
    from edgewatt.orders.strides import choose_tuple_stride, wire_energy_pj
    from reorder.cdr import TUPLE_ORDERS
    from reorder.cdr import order_tuples as order
    from reorder.cdr.files import WRITERS, read_matrix, write_matrix
    from traces.base.checks import is_whole
    from traces.base.errors import InputError, did_you_mean
    from traces.base.units import duration
    from traces.work.prune import prune_matrix

    if Path(matrix).is_dir():
        if output is None:
            raise InputError(f"{matrix}: is a folder of shards: say with -o which folder the reordered ones go to")
        unfit = {
            "--names": names, "--prune": prune, "--part": part, "--checkpoint": checkpoint,
            "--layout": layout != "csr", "--metric": metric != "ones", "--rows": rows != "packed",
            "--stride-restart": stride_restart != "row", "--stride auto": stride == "auto",
        }  # fmt: skip
        if given_option := next((name for name, value in unfit.items() if value), None):
            raise InputError(f"{matrix}: {given_option} is for one matrix, not for a folder of shards")
        from reorder.weights import order_weights

        with progress("order-tuples") as update, resumable():
            orders = order_weights(
                matrix, output, include=include or ("*",), exclude=exclude,
                stride=int(stride) if is_whole(stride.removeprefix("-")) else stride,
                id_bits=id_bits, encoder=encoder, objective=objective, block_bytes=block_bytes,
                base_interval=int(base_interval) if base_interval and is_whole(base_interval) else base_interval,
                method=method, effort=as_effort(effort), seed=seed, workers=workers, executor=executor,
                scheduler=scheduler, progress=update,
            )  # fmt: skip
        if not write_json({"folder": matrix, "output": output, "matrices": [asdict(o) for o in orders]}, json_file):
            show_weights(orders, output)
        return
    if include or exclude:
        raise InputError(f"{matrix}: --include and --exclude choose in a folder of shards; --names chooses here")
    id_bits = 16 if id_bits is None else id_bits
    if output is not None and Path(output).suffix.lower() not in WRITERS:
        hint = did_you_mean(Path(output).suffix, WRITERS)
        raise InputError(f"{output}: a matrix is written as {', '.join(WRITERS)}{hint}")
    TUPLE_ORDERS[method]  # an unknown name is said before the work starts
    given = read_matrix(matrix, names=[names] if names else None)
    if prune is not None:
        given = prune_matrix(given, density=kept_share(prune))
    say(f"{matrix}: {described(given)}", err=True)
    if stride == "auto":
        best, times = choose_tuple_stride(given, value_format=value_format, id_bits=id_bits, part=part or "lpddr4-3200")
        for tried, ns in times.items():
            label = "as given" if tried is None else f"stride {tried}"
            say(f"{label}: {duration(ns, 4)} ({100 * ns / times[None] - 100:+.2f} %)", err=True)
        stride = str(best)
    with progress("order-tuples") as update:
        found = order(
            given,
            value_format=value_format,
            stride=int(stride) if is_whole(stride.removeprefix("-")) else stride,
            layout=layout,
            encoder=encoder,
            objective=objective,
            metric=metric,
            energy_pj=wire_energy_pj(part) if part else None,
            id_bits=id_bits,
            block_bytes=block_bytes,
            base_interval=int(base_interval) if base_interval and is_whole(base_interval) else base_interval,
            stride_restart=stride_restart,
            rows=rows,
            method=method,
            effort=as_effort(effort),
            seed=seed,
            workers=workers,
            executor=executor,
            scheduler=scheduler,
            checkpoint=checkpoint,
            progress=update,
        )
    if output is not None:
        write_matrix(found.matrix(), output)

    def change(before: float, after: float) -> str:
        return f"{100 * after / before - 100:+.1f} %" if before else "-"

    table = [
        ("ones, values", found.original_ones_values, found.ones_values),
        ("ones, ids", found.original_ones_ids, found.ones_ids),
        ("ones, all", found.original_ones, found.ones),
    ]
    if found.toggles is not None and found.original_toggles is not None:
        table.append(("toggles, all", found.original_toggles, found.toggles))
    result = {
        "matrix": matrix,
        "tuples": len(found.positions),
        "method": method,
        **found.parameters,
        "encoder": encoder,
        "metric": metric,
        **{name: {"before": before, "after": after} for name, before, after in table},
        "cost": {"before": found.original_cost, "after": found.cost, "lower_bound": found.lower_bound},
        "values_that_became_zero": found.zeroed,
        "output": output,
    }
    if write_json(result, json_file):
        return
    title = f"{Path(matrix).name}: {len(found.positions)} tuples, {value_format}, stride {stride}, {encoder}"
    rows_shown = [(name, before, after, change(before, after)) for name, before, after in table]
    show_table(("wires", "as given", "reordered", "change"), rows_shown, title=title, numeric=("as given", "reordered"))
    if found.lower_bound:
        say(
            f"no order inside these strides costs less than {found.lower_bound:.0f} ({metric}); "
            f"this one is within {100 * found.cost / found.lower_bound - 100:.1f} %"
        )
    if found.lower_bound is None:
        say(f"no lower bound is known for {metric} with {encoder} and {value_format} at this stride")
    if found.zeroed:
        say(f"warning: {found.zeroed} stored non-zeros become zero in {value_format}", err=True)
    if output is not None:
        say(f"reordered matrix: {output}")


def as_effort(given: str) -> float | str:
    """Read a number or the name of a preset, which the method checks."""
    try:
        return float(given)
    except ValueError:
        return given


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command("order-tuples")(order_tuples)
