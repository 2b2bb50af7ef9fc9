"""`edgewatt validate`: orders, matrices and our own models, with expected and measured side by side."""

from __future__ import annotations

from pathlib import Path

import typer

from edgewatt.cli.parts.guard import json_option
from edgewatt.cli.parts.inputs import CONFIGURATIONS, MACHINE, NETWORKS, reads
from edgewatt.cli.parts.output import say

_ORDER = reads("an order of connections", "order", to=Path)
_NETWORK = reads("a network", *NETWORKS, to=Path)
_MATRIX = reads("a sparse matrix", "matrix", to=Path)
_CONFIG = reads("a run configuration", *CONFIGURATIONS, to=Path)


def validate(
    order: Path = typer.Option(
        None, "--order", metavar="FILE", parser=_ORDER, help="Check this order (npy, npz or one index a line)."
    ),
    network: Path = typer.Option(
        None, "--network", metavar="FILE", parser=_NETWORK, help="The network the order belongs to."
    ),
    system: str = typer.Option(
        None,
        "--system",
        parser=MACHINE,
        help="Also play the order on this machine (`edgewatt list systems`, or a YAML file).",
    ),
    lanes: int = typer.Option(16, "--lanes", help="With --system: input vectors at a time."),
    matrix: Path = typer.Option(
        None, "--matrix", metavar="FILE", parser=_MATRIX, help="The original sparse matrix (SciPy npz, mtx)."
    ),
    reordered: Path = typer.Option(
        None, "--reordered", metavar="FILE", parser=_MATRIX, help="The same matrix, its tuples reordered."
    ),
    stride: int = typer.Option(None, help="With --reordered: tuples may only move inside strides of this length."),
    config: Path = typer.Option(
        None, "--config", metavar="FILE", parser=_CONFIG, help="Check a configuration and the parts it names."
    ),
    reference: Path = typer.Option(
        None, envvar="EDGEWATT_REFERENCE", metavar="DIR", help="Folder of reference numbers made by other simulators."
    ),
    seed: int = typer.Option(0, help="Seed of the random cases."),
    json_file: str = json_option("the checks"),
) -> None:
    """Check models, orders, matrices and configurations.

    Exit status 1 if a check fails.

    Without files: our models against theory, and against the reference numbers if they are present.

      edgewatt validate

      edgewatt validate --network net.npz --order order.txt

      edgewatt validate --network net.npz --order order.npz --system scratchpad-8k

      edgewatt validate --matrix w.npz --reordered w128.npz --stride 128
    """
    from edgewatt.cli.parts.output import show_table, write_json
    from edgewatt.validate import run_checks
    from edgewatt.validate.checks import COLUMNS

    checks = run_checks(
        network=network,
        order=order,
        system=system,
        lanes=lanes,
        matrix=matrix,
        reordered=reordered,
        stride=stride,
        config=config,
        reference=reference,
        seed=seed,
    )
    failed = sum(not check.passed for check in checks)
    passed = sum(check.passed and not check.stated for check in checks)
    report = {"passed": passed, "failed": failed, "checks": [check.as_dict() for check in checks]}
    if not write_json(report, json_file):
        show_table(COLUMNS, [check.row() for check in checks], title="edgewatt validate")
        say(f"{passed} checks passed, {failed} failed")
    if failed:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(validate)
