"""`edgewatt validate` and `bench`: our numbers beside those expected, our inference beside other libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.arguments import CONFIGURATIONS, NETWORKS, json_option, reads
from edgewatt.cli.parts.output import progress, say, show_table, write_json
from edgewatt.cli.parts.source import CONFIGURED, network_of, takes_source

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles

_ORDER = reads("an order of connections", "order", to=Path)
_NETWORK = reads("a network", *NETWORKS, to=Path)
_MATRIX = reads("a sparse matrix", "matrix", "weights", to=Path)


def validate(
    order: Path = typer.Option(
        None, metavar="FILE", parser=_ORDER, help="Check this order (npy, npz or one index a line)."
    ),
    network: NetworkFiles = typer.Option(
        None, metavar="FILE", parser=_NETWORK, help="The network the order belongs to."
    ),
    matrix: Path = typer.Option(
        None, metavar="FILE", parser=_MATRIX, help="The original sparse matrix (npz, mtx, safetensors)."
    ),
    reordered: Path = typer.Option(None, metavar="FILE", parser=_MATRIX, help="The same matrix, its tuples reordered."),
    stride: int = typer.Option(None, help="With --reordered: tuples may only move inside strides of this length."),
    stride_restart: str = typer.Option(None, help="With --stride: as of order-tuples, row (default) or continuous."),
    layout: str = typer.Option(None, help="With --reordered: csr (default), csc or coo, as it was ordered."),
    density: float = typer.Option(
        None, metavar="SHARE", help="Of --network or --matrix: keep this share, heaviest first."
    ),
    names: list[str] = typer.Option(
        [], metavar="TENSOR", help="Of a file with several: these of --network, this one of --matrix."
    ),
    json_file: str = json_option("the checks"),
) -> None:
    """Check orders and matrices.

    Exit status 1 if a check fails.

      edgewatt validate --network net.npz --order order.txt

      edgewatt validate --matrix w.npz --reordered w128.npz --stride 128
    """
    from dataclasses import replace

    from edgewatt.checks import run

    source = None if network is None else replace(network, names=tuple(names) or None, density=density)
    checks = run.validate(
        network=None if source is None else network_of(source, "validate"),
        order=order,
        matrix=matrix,
        reordered=reordered,
        stride=stride,
        names=names,
        density=density,
        layout=layout,
        stride_restart=stride_restart,
    )
    failed = sum(not check.passed for check in checks)
    passed = sum(check.passed for check in checks)
    report = {"passed": passed, "failed": failed, "checks": [check.as_dict() for check in checks]}
    if not write_json(report, json_file):
        show_table(run.COLUMNS, [check.row() for check in checks], title="edgewatt validate")
        say(f"{passed} checks passed, {failed} failed")
    if failed:
        raise typer.Exit(1)


def bench_network(
    source: NetworkFiles = typer.Argument(
        ...,
        metavar="CONFIG",
        parser=reads("a run configuration or a network", *CONFIGURATIONS, *NETWORKS),
        help="A run configuration (YAML), or a network file.",
    ),
    batch: int = typer.Option(128, "--batch", "-b", help="Input vectors per call."),
    order: str = typer.Option(
        "time", help="time: the fastest timed; own: the network's; config: the configuration's first."
    ),
    lanes: int = typer.Option(None, help="Input vectors of one pass (default: those of the fastest)."),
    peer: list[str] = typer.Option(None, "--peer", "-p", help="Only these libraries; repeatable."),
    rounds: int = typer.Option(11, help="Shuffled rounds, at least 11."),
    overrides: list[str] = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of CONFIG."),
    json_file: str = json_option(),
) -> None:
    """Time our inference kernel beside the libraries.

    All run in one process, in shuffled rounds, by thread CPU time. Our kernel runs twice: the ratio of
    the two says how steady the machine is.

    Example:  edgewatt bench quickstart
    """
    from edgewatt.checks.bench import bench, configured, summary
    from traces.base.errors import InputError, unknown_name
    from traces.base.files import check_writable

    check_writable(json_file)
    if order not in ("time", "own", "config"):
        raise unknown_name("order", order, ("time", "own", "config"))
    file, edges = Path(source.files[0]), None
    if file.suffix in CONFIGURED:
        network, edges = configured(file, list(overrides or []))
    else:
        network = network_of(source, "bench")
    if order == "config" and edges is None:
        raise InputError(f"{file}: an order from a configuration needs a configuration (YAML)")
    chosen = {"time": "time", "own": None, "config": edges}[order]
    with progress("bench") as update:
        result = bench(
            network, batch=batch, order=chosen, lanes=lanes, peers=peer or None, rounds=rounds,
            progress=update,
        )  # fmt: skip
    if write_json(result.as_json(), json_file):
        return
    heads, rows = summary(result)
    title = f"{result.network}, batch {result.batch}, order: {result.order}, {result.lanes} lanes, {result.simd}"
    show_table(heads, rows, title=title, numeric=heads[1:])
    say(f"A/A control {result.aa:.3f} ({'steady' if result.steady else 'NOT STEADY: do not believe ratios'})")
    for name, reason in result.missing.items():
        say(f"skipped {name}: {reason}")


def add_to(app: typer.Typer) -> None:
    app.command()(takes_source("network", Path)(validate))
    app.command("bench")(takes_source("source", str)(bench_network))
