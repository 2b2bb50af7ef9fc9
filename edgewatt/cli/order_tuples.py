"""`edgewatt order-tuples`: reorder the stored entries of a sparse matrix and say what that saves on the wires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from edgewatt.cli.parts.arguments import PART, json_option, reads, writes
from edgewatt.cli.parts.output import progress, resumable, say, show_table, write_json


def order_tuples(
    matrix: str = typer.Argument(
        ...,
        parser=reads("a sparse matrix", "matrix", "weights"),
        help="A sparse matrix: SciPy npz, Matrix Market or safetensors; or a folder of a model's safetensors shards.",
    ),
    names: str = typer.Option(
        None, metavar="TENSOR", help="Tensor to take of a file with several: a name or a pattern."
    ),
    include: list[str] = typer.Option(
        [], metavar="TENSOR", help="Order these matrices of a folder: names or patterns (default: all)."
    ),
    exclude: list[str] = typer.Option([], metavar="TENSOR", help="Leave these matrices of a folder as they are."),
    density: float = typer.Option(None, metavar="SHARE", help="Keep this share of the weights, heaviest first."),
    value_format: str = typer.Option(
        None, "--format", help="Number format of one matrix's values (default: fp16; `edgewatt list formats`)."
    ),
    stride: str = typer.Option("128", help="Tuples that may change places: a number, 'row' or 'matrix' (coo)."),
    method: str = typer.Option("local-search", help="A tuple order (`edgewatt list tuple-orders`)."),
    layout: str = typer.Option("csr", help="csr, csc or coo."),
    encoder: str = typer.Option(
        "base-xor+dbi-dc", help="Encoding on the bus: base-xor or base-xor+dbi-dc; raw for toggles."
    ),
    objective: str = typer.Option("joint", help="Count values and ids ('joint'), 'values' or 'ids'."),
    metric: str = typer.Option("ones", help="ones (terminated bus), toggles (unterminated) or energy (of --part)."),
    part: str = typer.Option(
        None, parser=PART, help="DRAM part whose constants weigh ones and edges, for --metric energy."
    ),
    id_bits: int = typer.Option(None, help="8, 16 or 32 (default: 16; of a folder, as the columns need)."),
    block_bytes: int = typer.Option(32, help="Bytes per block; each block begins with a base."),
    base_interval: str = typer.Option(None, help="Distance between bases if not a block: bytes, 'row' or 'matrix'."),
    stride_restart: str = typer.Option("row", help="Strides start at each row ('row') or run on ('continuous')."),
    effort: str = typer.Option(
        "default", help="Work of local-search: fast, default, best, or a number, 1 for about 40 us per tuple."
    ),
    seed: int = typer.Option(0, help="Same seed, same order, whatever the number of workers."),
    workers: int = typer.Option(1, "-j", "--workers", help="How many workers."),
    executor: str = typer.Option(
        None, help="Kind of workers: threads (default of compiled methods), processes, inline or dask."
    ),
    scheduler: str = typer.Option(None, help="Address of a Dask scheduler, instead of a local cluster."),
    output: str = writes("Write the reordered matrix (.npz, .mtx, .safetensors).", "-o", "--output"),
    checkpoint: str = writes("Keep finished groups here, so that a killed run continues."),
    json_file: str = json_option(),
) -> None:
    """Order the tuples of a sparse matrix for few ones on the bus.

    Tuples move inside strides only.

    Example:  edgewatt order-tuples weights.npz --format fp16 --stride 128 -o reordered.npz

    Example:  edgewatt order-tuples model.safetensors --names layer1.0.conv1.weight --density 0.1 -o conv1.npz

    Example:  edgewatt order-tuples llama/ --exclude "*embed*" --effort fast -j 8 -o llama-reordered/

    A folder's matrices are streamed into shards of the same names, in constant memory; the same command continues
    where it was killed. Values keep their stored format.
    """
    from dataclasses import asdict

    from edgewatt.orders.tuples import describe, order_file, order_folder, rows_of, rows_of_folder
    from traces.base.errors import InputError
    from traces.base.files import check_writable

    check_writable(None if Path(matrix).is_dir() else output, json_file)
    options: dict[str, Any] = {
        "names": names, "density": density, "part": part, "checkpoint": checkpoint, "layout": layout, "metric": metric,
        "stride_restart": stride_restart, "stride": stride, "base_interval": base_interval,
        "value_format": value_format, "encoder": encoder, "objective": objective, "block_bytes": block_bytes,
        "id_bits": id_bits, "method": method, "effort": effort, "seed": seed, "workers": workers,
        "executor": executor, "scheduler": scheduler,
    }  # fmt: skip
    if Path(matrix).is_dir():
        with progress("order-tuples") as update, resumable():
            orders = order_folder(matrix, output, include=include, exclude=exclude, progress=update, **options)
        if not write_json({"folder": matrix, "output": output, "matrices": [asdict(o) for o in orders]}, json_file):
            columns = ("matrix", "tuples", "ones as stored", "reordered", "change")
            title = f"{len(orders)} {'matrix' if len(orders) == 1 else 'matrices'}"
            show_table(columns, rows_of_folder(orders), title=title, numeric=columns[1:])
            say(f"reordered shards: {output}")
        return
    value_format = options["value_format"] = value_format or "fp16"
    if include or exclude:
        raise InputError(f"{matrix}: --include and --exclude choose in a folder of shards; --names chooses here")
    tuple_order, result = order_file(
        matrix, output, say=lambda text: say(text, err=True), running=lambda: progress("order-tuples"), **options
    )
    if write_json(result, json_file):
        return
    sizes = f"{len(tuple_order.positions)} tuples, {value_format}, stride {tuple_order.parameters['stride']}, {encoder}"
    heads = ("wires", "as given", "reordered", "change")
    show_table(
        heads, rows_of(tuple_order, metric, objective), title=f"{Path(matrix).name}: {sizes}", numeric=heads[1:3]
    )
    bound, warning = describe(tuple_order, metric, encoder, value_format)
    if bound:
        say(bound)
    if warning:
        say(warning, err=True)
    if output is not None:
        say(f"reordered matrix: {output}")


def add_to(app: typer.Typer) -> None:
    app.command("order-tuples")(order_tuples)
