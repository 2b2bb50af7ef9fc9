"""`edgewatt learn`: training of what learned orders go by: weights of `learned`, and Kamatar's EON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.arguments import NETWORKS, CommandGroup, json_option, reads, writes
from edgewatt.cli.parts.source import network_of, takes_source

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles

learn = CommandGroup(no_args_is_help=True, help="Train learned orders (extra `learn`).")


@learn.command("order")
def learn_order(
    network: list[str] = typer.Argument(
        None,
        metavar="[NETWORK]...",
        parser=reads("a network", *NETWORKS),
        help="Networks to train on; without any, generated ones of --kind.",
    ),
    kind: str = typer.Option("mixed", "--kind", help="Generated networks: mixed, dense, sparse, roomy or local."),
    memory: int = typer.Option(100, "--memory", "-M", help="Fast memory for your own networks."),
    policy: str = typer.Option("min", "--policy", help="Eviction: min, lru or rr."),
    objective: str = typer.Option("io", "--objective", help="As for `edgewatt order`."),
    seconds: float = typer.Option(120.0, "--seconds", help="CPU seconds in all, at most 300."),
    seeds: str = typer.Option("0,1,2", "--seeds", help="One training for each; the best on validation comes first."),
    start: str = typer.Option(None, "--start", metavar="FILE", help="Go on from the first set of a weights file."),
    output: str = writes("Where to write the weights.", "-o", "--output", default="weights.json"),
    page: str = writes("Write a page with the learning curves and the weights.", "--page"),
    json_file: str = json_option("the result with its learning curve"),
) -> None:
    """Train the weights of the `learned` ordering.

    CMA-ES on the exact objective finds the weights; they are written to a file.

    Every third of your networks is kept for validation. With one or two networks, generated ones of --kind validate.
    Example:  edgewatt learn order --kind sparse --seconds 60 -o sparse.json --page sparse.html
    Example:  edgewatt order net.npz -m learned -s weights=sparse.json
    """
    from edgewatt.cli.parts.output import progress, read_value, say, show_table, write_json
    from edgewatt.orders.training import seeds_of, train_on_files
    from traces.base.files import check_writable, whole_file

    check_writable(output, page, json_file)
    with progress("learn order") as report:
        training, validated = train_on_files(
            network or [], kind=kind, memory=memory, policy=policy, objective=read_value(objective), seconds=seconds,
            seeds=seeds_of(seeds), start=start, output=output, progress=report,
        )  # fmt: skip
    if page is not None:
        from edgewatt.orders.order_pages import weights_page

        with whole_file(page) as stream:
            stream.write(weights_page(Path(output).stem, training, validated).encode())
    result = {
        "weights": output,
        "sets": [one.as_dict() for one in training.sets],
        "validation": list(training.validation),
        "curve": [[p.seed, p.evaluations, p.seconds, p.validation] for p in training.curve],
    }
    if not write_json(result, json_file):
        rows = [
            (one.name, one.made_with["seed"], one.made_with["evaluations"], f"{value:+.4f}")
            for one, value in zip(training.sets, training.validation, strict=True)
        ]
        title = f"validation: mean log of (extra I/Os / those of the plain start), {validated} networks"
        show_table(("set", "seed", "evaluations", "validation"), rows, title=title, numeric=("seed", "evaluations"))
        say(f"written: {output}; use it with  edgewatt order NETWORK -m learned -s weights={output}")


@learn.command("eon")
@takes_source("network", str)
def learn_eon(
    network: NetworkFiles = typer.Argument(
        ..., metavar="NETWORK", parser=reads("a network", *NETWORKS), help="The network to find an order for: a file."
    ),
    memory: int = typer.Option(100, "--memory", "-M", help="Fast memory M; EON's LRU cache holds M - 1 neurons."),
    seconds: float = typer.Option(None, "--seconds", help="CPU seconds for each seed (default 120)."),
    iterations: int = typer.Option(None, "--iterations", min=1, help="Iterations of 64 orders, instead of seconds."),
    seeds: str = typer.Option("0", "--seeds", help="A training for each; the best of them is written."),
    output: str = writes("Where the checkpoint goes.", "-o", "--output", default="eon.safetensors"),
    resume: Path = typer.Option(None, "--resume", metavar="FILE", help="Go on from a checkpoint, with its own seed."),
    page: str = writes("Write a page with the learning curves.", "--page"),
    json_file: str = json_option("the result with its curves"),
) -> None:
    """Train EON on a network and say what it found.

    Training is proximal policy optimisation; other orders stand beside the result.

    A thousand connections take some minutes; the state is saved every ten iterations, Ctrl-C loses no more.

      edgewatt learn eon net.npz -M 8 --seconds 120 -o net.safetensors --page curve.html

      edgewatt learn eon net.npz -M 8 --resume net.safetensors --seconds 300 -o more.safetensors

      edgewatt order net.npz -M 8 --policy lru -m eon -s checkpoint=net.safetensors
    """
    from edgewatt.cli.parts.output import progress, say, show_table, write_json
    from edgewatt.orders.order_pages import eon_page
    from edgewatt.orders.training import against_others, seeds_of, train_seeds
    from traces.base.errors import InputError
    from traces.base.files import check_writable, whole_file

    if seconds is not None and iterations is not None:
        raise InputError("give --seconds or --iterations, not both")
    check_writable(output, page, json_file)
    wanted = network_of(network, "learn eon")
    with progress("learn eon") as report:
        runs = train_seeds(
            wanted, memory=memory, seeds=seeds_of(seeds), output=output, resume=resume, iterations=iterations,
            seconds=120.0 if seconds is None and iterations is None else seconds, progress=report,
        )  # fmt: skip
    rows = against_others(wanted, memory, runs[0])
    if page is not None:
        with whole_file(page) as stream:
            stream.write(eon_page(wanted.name or Path(network.files[0]).name, memory, runs, rows).encode())
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
        title=f"neurons looked up and not in EON's LRU cache, M = {memory}, {wanted.n_connections:,} connections",
    )  # fmt: skip
    say(f"written: {output} (seed {runs[0].seed}, {runs[0].iteration} iterations, {runs[0].seconds:.0f} CPU seconds)")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(learn, name="learn")
