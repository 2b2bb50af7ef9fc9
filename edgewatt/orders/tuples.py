"""What `edgewatt order-tuples` does: a matrix or a folder of shards in, the reordered one and its figures out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import origins_of
from reorder.tuples import TUPLE_ORDERS, TupleOrder, order_tuples
from reorder.tuples.files import WRITERS, read_matrix, write_matrix
from reorder.tuples.shards import MatrixOrder, order_weights
from traces.base.checks import is_whole
from traces.base.errors import InputError, did_you_mean
from traces.base.progress import Progress
from traces.base.units import in_one_unit
from traces.networks.prune import prune_matrix

MOST_CELLS = 1 << 26  # of a matrix that is looked at for patterns of zeros


def wire_energy_pj(name: str) -> tuple[float, float]:
    from hwmodel.dram.energy import wire_constants_pj
    from hwmodel.parts.part_file import load_part

    part = load_part(name)
    return wire_constants_pj(part, "dq", "read", part.beat_ns)


_NOT_OF_FOLDERS = {  # option -> what it is where nobody gave it
    "names": None, "density": None, "part": None, "checkpoint": None, "layout": "csr", "metric": "ones",
    "stride_restart": "row", "value_format": None,
}  # fmt: skip


def number_or_word(given: str) -> int | str:
    return int(given) if is_whole(given.removeprefix("-")) else given


def _interval(given: str | None) -> int | str | None:
    return number_or_word(given) if given else None


def as_effort(given: str) -> float | str:
    try:
        return float(given)
    except ValueError:
        return given


def order_folder(
    folder: str,
    output: str | None,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    stride: str = "128",
    base_interval: str | None = None,
    effort: str = "default",
    progress: Progress | None = None,
    **options: Any,
) -> list[MatrixOrder]:
    """Order the matrices of a folder of shards; options as of the command. Values keep the format they have."""
    if output is None:
        raise InputError(f"{folder}: is a folder of shards: say with -o which folder the reordered ones go to")
    given = [name for name, default in _NOT_OF_FOLDERS.items() if options.pop(name) != default]
    if given:
        option = "format" if given[0] == "value_format" else given[0].replace("_", "-")
        raise InputError(f"{folder}: --{option} is for one matrix, not for a folder of shards")
    return order_weights(
        folder, output, include=include or ("*",), exclude=exclude, stride=number_or_word(stride),
        base_interval=_interval(base_interval), effort=as_effort(effort), progress=progress, **options,
    )  # fmt: skip


def _described(matrix: Any) -> str:
    """Return what a SciPy matrix holds in words: size, density and, where there is one, the pattern of its zeros."""
    from traces.readers.parts.layers import zero_pattern

    n_rows, n_columns = matrix.shape
    share = matrix.nnz / max(1, n_rows * n_columns)
    text = f"{n_rows:,} x {n_columns:,}, {matrix.nnz:,} entries ({100 * share:.1f} %)"
    pattern = zero_pattern(matrix.toarray()) if n_rows * n_columns <= MOST_CELLS else ""
    return f"{text}; it is {pattern}" if pattern else text


def order_file(
    file: str,
    output: str | None,
    *,
    names: str | None = None,
    density: float | None = None,
    part: str | None = None,
    stride: str = "128",
    base_interval: str | None = None,
    effort: str = "default",
    id_bits: int | None = None,
    say: Callable[[str], None] = lambda text: None,
    running: Callable[[], Any],
    **options: Any,
) -> tuple[TupleOrder, dict[str, Any]]:
    """Order one matrix and write it; return the order and its figures as plain data. Options as of the command."""
    if output is not None and Path(output).suffix.lower() not in WRITERS:
        hint = did_you_mean(Path(output).suffix, WRITERS)
        raise InputError(f"{output}: a matrix is written as {', '.join(WRITERS)}{hint}")
    if part and options["metric"] != "energy":
        raise InputError(
            f"--part weighs ones and edges for --metric energy: --metric {options['metric']} has no use for it"
        )
    TUPLE_ORDERS[options["method"]]  # an unknown name is said before the work starts
    given = read_matrix(file, names=[names] if names else None, layout=options["layout"])
    if density is not None:
        given = prune_matrix(given, density=density)
    say(f"{file}: {_described(given)}")
    bits, value_format = 16 if id_bits is None else id_bits, options["value_format"]
    with running() as progress:
        tuple_order = order_tuples(
            given, stride=number_or_word(stride), id_bits=bits, energy_pj=wire_energy_pj(part) if part else None,
            base_interval=_interval(base_interval), effort=as_effort(effort), progress=progress, **options,
        )  # fmt: skip
    if output is not None:
        write_matrix(tuple_order.matrix(), output)
    result = {
        "matrix": file,
        "tuples": len(tuple_order.positions),
        "method": options["method"],
        **tuple_order.parameters,
        "layout": options["layout"],
        "id_bits": bits,
        "objective": options["objective"],
        "encoder": options["encoder"],
        "metric": options["metric"],
        **{name: {"before": before, "after": after} for name, before, after in sums_of(tuple_order)},
        "cost": {
            "before": tuple_order.original_cost,
            "after": tuple_order.cost,
            "lower_bound": tuple_order.lower_bound,
        },
        "values_that_became_zero": tuple_order.zeroed,
        "values_beyond_the_range": tuple_order.saturated,
        "output": output,
        **origins_of({"tuple-orders": [options["method"]], "formats": [value_format]}),
    }
    return tuple_order, result


def sums_of(tuple_order: TupleOrder) -> list[tuple[str, int, int]]:
    rows = [
        ("ones, values", tuple_order.original_ones_values, tuple_order.ones_values),
        ("ones, ids", tuple_order.original_ones_ids, tuple_order.ones_ids),
        ("ones, all", tuple_order.original_ones, tuple_order.ones),
    ]
    if tuple_order.toggles is not None and tuple_order.original_toggles is not None:
        rows.append(("toggles, all", tuple_order.original_toggles, tuple_order.toggles))
    return rows


def rows_of_folder(orders: Sequence[MatrixOrder]) -> list[tuple[Any, ...]]:
    """Return name, tuples, ones as stored, ones reordered and change of each matrix, and of several together."""
    sums: list[tuple[Any, ...]] = [
        (o.name, o.tuples, o.original_ones_values + o.original_ones_ids, o.ones_values + o.ones_ids) for o in orders
    ]
    if len(orders) != 1:
        sums.append(("all", *(sum(each[k] for each in sums) for k in (1, 2, 3))))
    return [(*each, f"{100 * each[3] / each[2] - 100:+.1f} %" if each[2] else "-") for each in sums]


def describe(tuple_order: TupleOrder, metric: str, encoder: str, value_format: str) -> tuple[str, str]:
    lost = "\n".join(
        f"warning: {count} {what} in {value_format}"
        for count, what in (
            (tuple_order.zeroed, "stored non-zeros become zero"),
            (tuple_order.saturated, "values are beyond the range and become the largest"),
        )
        if count
    )
    if tuple_order.lower_bound is None:
        return f"no lower bound is known for {metric} with {encoder} and {value_format} at this stride", lost
    if not tuple_order.lower_bound:
        return "", lost
    over = 100 * tuple_order.cost / tuple_order.lower_bound - 100
    unit = "pJ" if metric == "energy" else metric
    least = f"no order inside these strides costs less than {tuple_order.lower_bound:.0f} ({unit})"
    return f"{least}; this one is {'optimal' if over <= 1e-9 else f'within {over:.1f} %'}", lost


def rows_of(tuple_order: TupleOrder, metric: str, objective: str) -> list[tuple[str, int | str, int | str, str]]:
    def changed(before: float, after: float) -> str:
        return f"{100 * after / before - 100:+.1f} %" if before else "-"

    rows: list[Any] = [(what, before, after, changed(before, after)) for what, before, after in sums_of(tuple_order)]
    if metric == "energy":
        costs = tuple_order.original_cost, tuple_order.cost
        joules, cells = in_one_unit(costs, 1e-12, "J", digits=4)
        rows.append((f"energy, {'all' if objective == 'joint' else objective}, {joules}", *cells, changed(*costs)))
    return rows
