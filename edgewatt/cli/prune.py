"""`edgewatt prune`: a trained network pruned for a memory, beside free pruning to the same density."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.arguments import MACHINE, NETWORKS, json_option, reads, writes
from edgewatt.cli.parts.output import progress, say, show_table, write_json
from edgewatt.cli.parts.source import takes_source

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles


def prune_command(
    network: NetworkFiles = typer.Argument(
        ...,
        metavar="NETWORK...",
        parser=reads("a network", *NETWORKS),
        help="A trained network: a file or folder, or one matrix file per layer.",
    ),
    calibration: str = typer.Option(
        None, metavar="NPZ", help="Input vectors (required): array `inputs` and, for an accuracy, `labels`."
    ),
    density: list[float] = typer.Option(
        [], metavar="SHARE", help="Share of the connections to keep (required); repeat it for a Pareto front."
    ),
    memory: int = typer.Option(None, "--memory", "-M", help="Fast memory: neuron values plus the connection in hand."),
    system: str = typer.Option(
        None, parser=MACHINE, help="Prune for this machine's memory and simulate it: a name or a file."
    ),
    lanes: int = typer.Option(None, help="With --system: input vectors of one pass (default: 16)."),
    rounds: int = typer.Option(3, min=1, help="Number of pruning steps per layer, each refitted."),
    steps: int = typer.Option(0, min=0, help="Number of gradient steps over all layers at the end."),
    extra: int = typer.Option(
        0,
        min=0,
        metavar="IOS",
        help="Allow so many I/Os above the bound: inputs read again, connections outside windows.",
    ),
    time_limit: float = typer.Option(5.0, metavar="SECONDS", help="Stop the order's search after SECONDS."),
    seed: int = typer.Option(0, help="The same seed gives the same network."),
    output: str = writes("Write the pruned network as npz.", "-o", "--output"),
    order: str = writes("Write its order as npz (array `edges`)."),
    json_file: str = json_option("the report"),
) -> None:
    """Prune a trained network to fit a small memory.

    Neurons change places inside their layers, which changes no output; connections outside the memory's windows go,
    and least squares on the calibration vectors fits the others.

    Example:  edgewatt prune net.npz --memory 60 --density 0.3 --calibration inputs.npz -o out.npz --order order.npz
    Example:  edgewatt prune net.npz --system scratchpad-64k --lanes 128 --density 0.1 --density 0.2
    --calibration inputs.npz --json report.json
    """
    from edgewatt.orders.memory import prune_files
    from traces.base.files import check_writable

    check_writable(output, order, json_file)
    with progress("prune") as report:
        pruned = prune_files(
            network, calibration, density, output=output, order=order, memory=memory, system=system, lanes=lanes,
            rounds=rounds, steps=steps, extra=extra, time_limit_s=time_limit, seed=seed, progress=report,
        )  # fmt: skip
    if write_json(pruned.as_dict(), json_file):
        return
    columns = pruned.table()
    title = f"{pruned.name}, M = {pruned.memory}; error: of the outputs on vectors no weight was fitted to"
    title += f"; energy and time: of a pass of {lanes or 16} vectors" if system else ""
    numeric = [head for head in columns if head not in ("method", "front")]
    show_table(list(columns), list(zip(*columns.values(), strict=True)), title=title, numeric=numeric)
    for words in pruned.sentences:
        say(words)


def add_to(app: typer.Typer) -> None:
    app.command("prune")(takes_source()(prune_command))
