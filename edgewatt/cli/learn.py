"""`edgewatt learn eon`: training of Kamatar's EON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.arguments import NETWORKS, CommandGroup, json_option, reads, writes
from edgewatt.cli.parts.output import progress, say, show_table, write_json
from edgewatt.cli.parts.source import network_of, takes_source

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles

learn = CommandGroup(no_args_is_help=True, help="Train learned orders (extra `learn`).")


@learn.command("eon")
@takes_source("network", str)
def learn_eon(
    network: NetworkFiles = typer.Argument(
        ..., metavar="NETWORK", parser=reads("a network", *NETWORKS), help="The network to find an order for: a file."
    ),
    memory: int = typer.Option(100, "--memory", "-M", help="Fast memory M; EON's LRU cache holds M - 1 neurons."),
    seconds: float = typer.Option(None, help="CPU seconds for each seed (default 120)."),
    iterations: int = typer.Option(None, min=1, help="Iterations of 64 orders, instead of seconds."),
    seeds: str = typer.Option("0", help="Train once for each; write the best."),
    output: str = writes("Where the checkpoint goes.", "-o", "--output", default="eon.safetensors"),
    resume: Path = typer.Option(None, metavar="FILE", help="Go on from a checkpoint, with its own seed."),
    json_file: str = json_option("the result with its curves"),
) -> None:
    """Train EON on a network and say what it found.

    Training is proximal policy optimisation; other orders stand beside the result.

    A thousand connections take some minutes; the state is saved every ten iterations, Ctrl-C loses no more.

      edgewatt learn eon net.npz -M 8 --seconds 120 -o net.safetensors

      edgewatt learn eon net.npz -M 8 --resume net.safetensors --seconds 300 -o more.safetensors

      edgewatt order net.npz -M 8 --policy lru -m eon -s checkpoint=net.safetensors
    """
    from edgewatt.orders.training import against_others, seeds_of, train_seeds
    from traces.base.errors import InputError
    from traces.base.files import check_writable

    if seconds is not None and iterations is not None:
        raise InputError("give --seconds or --iterations, not both")
    check_writable(output, json_file)
    loaded = network_of(network, "learn eon")
    with progress("learn eon") as report:
        runs = train_seeds(
            loaded, memory=memory, seeds=seeds_of(seeds), output=output, resume=resume, iterations=iterations,
            seconds=120.0 if seconds is None and iterations is None else seconds, progress=report,
        )  # fmt: skip
    rows = against_others(loaded, memory, runs[0])
    result = {
        "checkpoint": str(output),
        "misses": dict(rows),
        "runs": [
            {"seed": run.seed, "iterations": run.iteration, "cpu_seconds": run.seconds,
             "curve": [[p.iteration, p.seconds, p.mean, p.least, p.best] for p in run.curve]}
            for run in runs
        ],
    }  # fmt: skip
    if write_json(result, json_file):
        return
    show_table(
        ("order", "misses"), [(name, f"{n:,}") for name, n in rows], numeric=("misses",),
        title=f"neurons looked up and not in EON's LRU cache, M = {memory}, {loaded.n_connections:,} connections",
    )  # fmt: skip
    say(f"written: {output} (seed {runs[0].seed}, {runs[0].iteration} iterations, {runs[0].seconds:.0f} CPU seconds)")


def add_to(app: typer.Typer) -> None:
    app.add_typer(learn, name="learn")
