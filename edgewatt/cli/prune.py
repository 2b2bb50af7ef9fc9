"""`edgewatt prune`: a trained network pruned for a memory, beside free pruning to the same density."""

from __future__ import annotations

import typer

from edgewatt.cli.parts.arguments import MACHINE, NETWORKS, json_option, reads, writes


def prune_command(
    network: list[str] = typer.Argument(
        ...,
        metavar="NETWORK...",
        parser=reads("a network", *NETWORKS),
        help="A trained network: a file or folder, or one matrix file per layer.",
    ),
    calibration: str = typer.Option(
        ..., "--calibration", metavar="NPZ", help="Input vectors: array `inputs` and, for an accuracy, `labels`."
    ),
    density: list[float] = typer.Option(
        ..., "--density", metavar="SHARE", help="Share of the connections to keep; may be repeated for a front."
    ),
    memory: int = typer.Option(None, "--memory", "-M", help="Fast memory: neuron values plus the connection in hand."),
    system: str = typer.Option(
        None, "--system", parser=MACHINE, help="Prune for this machine's memory and simulate it: a name or a file."
    ),
    lanes: int = typer.Option(16, "--lanes", help="With --system: input vectors of one pass."),
    rounds: int = typer.Option(3, "--rounds", min=1, help="Prune each layer in so many steps, each refitted."),
    steps: int = typer.Option(0, "--steps", min=0, help="Then fit all layers together: steps of gradient descent."),
    extra: int = typer.Option(
        0, "--extra", min=0, metavar="IOS", help="I/Os above the bound for important connections outside the windows."
    ),
    time_limit: float = typer.Option(5.0, "--time-limit", metavar="SECONDS", help="For free pruning's order."),
    seed: int = typer.Option(0, "--seed", help="The same seed gives the same network."),
    output: str = writes("Write the pruned network as npz.", "-o", "--output"),
    order: str = writes("Write its order as npz (array `edges`).", "--order"),
    json_file: str = json_option("the report"),
) -> None:
    """Prune a trained network to fit a small memory.

    Neurons change places inside their layers, which changes no output; connections outside the memory's windows go,
    and least squares on the calibration vectors fits the others.

    Example:  edgewatt prune net.npz --memory 60 --density 0.3 --calibration inputs.npz -o out.npz --order order.npz
    Example:  edgewatt prune net.npz --system scratchpad-64k --lanes 128 --density 0.1 --density 0.2
    --calibration inputs.npz --json report.json
    """
    from pathlib import Path

    from edgewatt.cli.parts.output import progress, say_words, show_table, write_json
    from edgewatt.orders.describe import order_file
    from edgewatt.orders.memory import prune_for_memory
    from edgewatt.orders.request import need_npz, read_network
    from traces.base.files import check_writable, whole_file
    from traces.readers import native

    need_npz("-o", output, "a network")
    need_npz("--order", order, "an order")
    check_writable(output, order, json_file)
    loaded = read_network(network, command="prune")
    with progress("prune") as report:
        made = prune_for_memory(
            loaded, calibration=calibration, density=density, memory=memory, system=system, lanes=lanes, rounds=rounds,
            steps=steps, extra=extra, time_limit_s=time_limit, seed=seed, progress=report,
        )  # fmt: skip
    first = made.results[0]
    if output:
        native.save(made.network, Path(output), extras={"error": first.error, "memory": first.memory})
    if order:
        about = {
            "network": made.network.name, "memory": first.memory, "policy": "min", "pinning": "literal",
            "method": made.order.method, "parameters": dict(made.order.parameters), "seed": seed, "truncated": False,
        }  # fmt: skip
        with whole_file(Path(order)) as stream:
            stream.write(order_file(made.order, about))
    rows = [result.as_dict() for result in made.results]
    if write_json({"verdict": made.verdict, "results": rows, "front": [r.as_dict() for r in made.front]}, json_file):
        return
    heads = ["method", "density", "connections", "error", "right %", "I/Os", "bound", "µJ", "µs", "front"]
    shown = [
        (
            r.method, f"{r.density:.3g}", f"{r.connections:,}", f"{r.error:.4f}",
            "" if r.accuracy is None else f"{100 * r.accuracy:.2f}", f"{r.ios:,}", f"{r.bound:,}",
            "" if r.energy_pj is None else f"{1e-6 * r.energy_pj:.4g}",
            "" if r.time_ns is None else f"{1e-3 * r.time_ns:.4g}", "*" if r in made.front else "",
        )
        for r in made.results
    ]  # fmt: skip
    kept = [k for k in range(len(heads)) if any(row[k] for row in shown)]
    columns, numeric = [heads[k] for k in kept], [heads[k] for k in kept if heads[k] not in ("method", "front")]
    title = f"{loaded.name}, M = {first.memory}; error: of the outputs on vectors no weight was fitted to"
    show_table(columns, [[row[k] for k in kept] for row in shown], title=title, numeric=numeric)
    by_layer = (f"{r.method} {' '.join(f'{e:.3f}' for e in r.layer_errors)}" for r in made.results[:2])
    say_words(f"Error by layer, on the vectors fitted to: {'; '.join(by_layer)}.")
    say_words(made.verdict)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("prune")(prune_command)
