"""`edgewatt order`: an order of work for one network, its cost and the bounds; `edgewatt break-even`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from edgewatt.cli.parts.arguments import MACHINE, NETWORKS, json_option, names_of, reads, size_of, writes
from edgewatt.cli.parts.output import parameters_of, progress, read_value, say, show_order, show_table, write_json
from edgewatt.cli.parts.source import network_of, takes_source
from edgewatt.config.kinds import DEFAULT_SYSTEM

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles
    from traces.networks.network import Network

_ORDER = reads("an order of connections", "order")


def order_network(
    network: NetworkFiles = typer.Argument(
        ...,
        metavar="NETWORK...",
        parser=reads("a network", *NETWORKS),
        help="A file or folder, or one matrix file per layer from input to output.",
    ),
    method: str = typer.Option(
        None,
        "--method",
        "-m",
        autocompletion=names_of("orderings"),
        help="A name of `edgewatt list orderings` (default: auto).",
    ),
    memory: int = typer.Option(
        None, "--memory", "-M", help="Fast memory: neuron values plus the connection in hand (100, or the system's)."
    ),
    policy: str = typer.Option("min", help="Eviction: min, lru or rr."),
    pinning: str = typer.Option("literal", help="literal or pin_both."),
    objective: str = typer.Option(
        None,
        help="io (default), runs, time, or a mapping as '{kind: weighted, a: 2, b: 1}'; with --system energy (default "
        "there), time or bytes.",
    ),
    system: str = typer.Option(
        None,
        parser=MACHINE,
        help="Order for this machine and show what it costs there: a name of `edgewatt list systems`, or a YAML file.",
    ),
    layout: str = typer.Option(None, help="With --system: memory layout of every order."),
    timing: str = typer.Option(None, help="With --system: system (default), or replay: an open loop."),
    value_format: str = typer.Option(None, "--format", help="With --system: number format of the weights."),
    target: str = typer.Option(None, help="With --objective time: the processor (this-cpu only)."),
    lanes: int = typer.Option(None, help="Input vectors of one pass: 64 for --objective time, 16 with --system."),
    seed: int = typer.Option(0, help="The same seed gives the same order."),
    time_limit: float = typer.Option(
        None, metavar="SECONDS", help="Stop the search after SECONDS; --system simulates what it found."
    ),
    parameter: list[str] = typer.Option(
        [], "--set", "-s", metavar="NAME=VALUE", help="A parameter of the method; repeatable."
    ),
    smallest: bool = typer.Option(
        False,
        "--smallest-memory",
        help="Find the smallest M that needs no I/O above the bound (with -m: by that method), and a floor for it.",
    ),
    renumber: str = writes("With --system: renumber neurons for cache lines; write that network as npz."),
    output: str = writes("Write the order as npz (array `edges`).", "-o", "--output"),
    save_network: str = writes("Write the network as read and thinned, which the order belongs to, as npz."),
    explain: str = writes("Write a self-contained page that shows why this order costs what it does."),
    json_file: str = json_option(),
) -> None:
    """Order the work of a sparse network for fewer I/Os.

    Shows its I/Os under every policy, those of two-optimal, and the bounds.

    Example:  edgewatt order net.npz --memory 100 --time-limit 10 -o order.npz
    Example:  edgewatt order fc1.npz fc2.npz -m connection-reordering -s iterations=100000 --policy lru
    Example:  edgewatt order net.npz --smallest-memory
    Example:  edgewatt order net.npz --smallest-memory -m file -s path=order.npz
    Example:  edgewatt order net.npz --objective energy --system edge --lanes 16 --explain order.html
    """
    from edgewatt.orders.describe import order_file, sizes_of
    from edgewatt.orders.request import Interrupts, OrderRequest, find_order, need_npz, save
    from edgewatt.orders.timed import describe_speed
    from traces.base.errors import InputError
    from traces.base.files import check_writable, whole_file
    from traces.base.progress import left_of

    need_npz("-o", output, "an order")
    need_npz("--renumber", renumber, "a network")
    need_npz("--save-network", save_network, "a network")
    check_writable(output, renumber, save_network, explain, json_file)
    left = left_of(time_limit)
    loaded = network_of(network, "order")
    say(f"{network.files[0]}: {sizes_of(loaded)}", err=True)
    parameters = parameters_of(parameter)
    if smallest:
        others = {
            "--memory": memory, "--objective": objective, "--system": system, "--layout": layout, "--timing": timing,
            "--format": value_format, "--target": target, "--lanes": lanes, "--renumber": renumber,
            "--save-network": save_network, "--explain": explain, "--policy": None if policy == "min" else policy,
            "--pinning": None if pinning == "literal" else pinning,
        }  # fmt: skip
        if wrong := [name for name, value in others.items() if value is not None]:
            raise InputError(f"--smallest-memory finds M under MIN, pinning literal: leave out {', '.join(wrong)}")
        _show_smallest(loaded, method, parameters, seed, left(), output, json_file)
        return
    request = OrderRequest(
        method=method or "auto", memory=memory, policy=policy, pinning=pinning,
        objective=read_value(objective) if objective else None, system=system, layout=layout, timing=timing,
        value_format=value_format, target=target, lanes=lanes, seed=seed, time_limit_s=left(), renumber=renumber,
        parameters=parameters,
    )  # fmt: skip
    with Interrupts.keeping_the_best(), progress(request.method) as report_progress:
        made = find_order(loaded, request, report_progress)
    ordering, result, view = made.ordering, made.result, made.view
    for note in made.notes:
        say(note, err=True)
    if output:
        with whole_file(Path(output)) as stream:
            stream.write(order_file(ordering, result))
    if save_network:
        save(made.network, save_network)
    if explain:
        from edgewatt.pages.explain import explain_page

        page = explain_page(
            made.network, ordering, memory=made.memory, policy=made.policy, pinning=made.pinning, view=view,
            bound=made.bound,
        )  # fmt: skip
        with whole_file(Path(explain)) as stream:
            stream.write(page.encode())
    if not write_json(result, json_file):
        show_order(result)
        if view is not None:
            for words in filter(None, (view.sure, view.sentence, view.choices, view.note)):
                say(words)
        elif "measured_us" in result:
            say(describe_speed(result, made.lanes))
    if result.get("parameters", {}).get("interrupted"):
        raise typer.Exit(130)


def _show_smallest(
    network: Network,
    method: str | None,
    parameters: dict[str, Any],
    seed: int,
    time_limit: float | None,
    output: str | None,
    json_file: str | None,
) -> None:
    from edgewatt.orders.request import find_smallest

    with progress("smallest memory") as report:
        smallest, result = find_smallest(
            network, method, parameters=parameters, seed=seed, time_limit_s=time_limit, output=output, progress=report
        )
    if write_json(result, json_file):
        return
    whose = "this order has" if parameters else f"an order by {smallest.ordering.method} has"
    known = f"at M = {smallest.memory}, {whose} W + N + S I/Os under MIN"
    say(f"{network.name}: {known}; with less, that order has more (Theorem 2)")
    if smallest.exact:
        say(f"no order does with less: {smallest.argument}")
    else:
        bound = f"every order needs M of at least {smallest.lower_bound}: {smallest.argument}"
        say(f"{bound}; what lies between is not known")


def break_even_command(
    network: NetworkFiles = typer.Argument(
        ...,
        metavar="NETWORK...",
        parser=reads("a network", *NETWORKS),
        help="A network: a file or folder, or one matrix file per layer.",
    ),
    order: str = typer.Option(
        "auto", metavar="METHOD|FILE", parser=_ORDER, help="A method, or a file of `edgewatt order -o`."
    ),
    against: str = typer.Option("two-optimal", metavar="METHOD|FILE", parser=_ORDER, help="The order to compare with."),
    system: str = typer.Option(
        DEFAULT_SYSTEM,
        autocompletion=names_of("systems"),
        parser=MACHINE,
        help="A name of `edgewatt list systems`, or a YAML file.",
    ),
    size: list[int] = typer.Option(
        [], metavar="BYTES", parser=size_of, help="On-chip memory, such as 8KiB; repeatable."
    ),
    part: list[str] = typer.Option([], help="Memory part to compare on; repeatable."),
    value_format: list[str] = typer.Option([], "--format", help="Number format of the weights; repeatable."),
    lanes: list[int] = typer.Option([], help="Input vectors at a time; may be repeated (default: 16)."),
    policy: list[str] = typer.Option([], help="Policy of the on-chip memory; repeatable."),
    memory: int = typer.Option(None, "--memory", "-M", help="Fast memory M that a method makes its order for."),
    each: bool = typer.Option(
        False, "--each", help="Let the method make an order for every machine, not one for the first machine named."
    ),
    timing: str = typer.Option("system", help="system: with contention; replay: issue time alone."),
    layout: str = typer.Option(None, help="Memory layout of every order (default: chosen)."),
    objective: str = typer.Option(
        None,
        help="What methods order for: energy (default), time or bytes on the system; io for I/Os alone (default with "
        "--memory).",
    ),
    time_limit: float = typer.Option(None, metavar="SECONDS", help="Stop each search after SECONDS."),
    parameter: list[str] = typer.Option(
        [], "--set", "-s", metavar="NAME=VALUE", help="A parameter of the method of --order; repeatable."
    ),
    seed: int = typer.Option(0, help="Seed of methods that draw at random."),
    output: str = writes("Write a page with maps of the savings.", "-o", "--output", "--page"),
    json_file: str = json_option(),
) -> None:
    """Say where an order saves on a system, and up to which size.

    A method's order is made for one machine, of the first --size, --part, ... named, and played on all; with --each it
    is made for every one.

    Example:  edgewatt break-even net.npz --order auto --system scratchpad-8k --lanes 16 -o page.html
    Example:  edgewatt break-even net.npz --part hbm3 --size 8KiB --size 64KiB --each --time-limit 5
    """
    from edgewatt.orders.break_even import METRICS, WORDS, break_even, change, kib
    from edgewatt.orders.break_even_page import LAYOUT_WORDS, break_even_page
    from edgewatt.orders.request import Interrupts, orders_of
    from traces.base.files import check_writable, whole_file
    from traces.base.units import describe_shares

    check_writable(output, json_file)
    loaded = network_of(network, "break-even")
    given = orders_of(loaded, (order, against))
    with Interrupts.keeping_the_best(), progress("break-even") as report_progress:
        study = break_even(
            loaded, given[0], against=given[1], system=system, sizes=size or None, parts=part or None,
            formats=value_format or None, lanes=lanes or None, policies=policy or None, memory=memory, each=each,
            timing=timing, seed=seed, progress=report_progress, objective=objective, layout=layout,
            time_limit_s=time_limit, **parameters_of(parameter),
        )  # fmt: skip
    if output:
        with whole_file(Path(output)) as stream:
            stream.write(break_even_page(study).encode())
    if write_json(study.as_dict(), json_file):
        return
    values = {name: {p.choice.words[name] for p in study.points} for name in study.points[0].choice.words}
    varied = [name for name, each_of in values.items() if len(each_of) > 1]
    fixed = ", ".join(next(iter(each_of)) for name, each_of in values.items() if name not in varied)
    rows = [
        (
            *(p.choice.words[name] for name in varied),
            f"{'* ' if study.marked(p) else ''}{kib(p.size_bytes)}",
            str(p.memory),
            *p.energies,
            *(change(p.saving(metric)) for metric in METRICS),
            *p.sure,
            describe_shares(p.order["bound_by"]),
        )
        for p in study.points
    ]  # fmt: skip
    heads = (
        *varied, "on-chip", "M", *(f"{name} energy" for name in (study.names[1], "blocking", study.names[0])),
        *(f"{WORDS[metric]} ±%" for metric in METRICS), "energy on blocking ±%", "sure %", "bound by, %",
    )  # fmt: skip
    title = f"{study.names[0]} against {study.names[1]}{f' on {fixed}' if fixed else ''}; energy per inference; "
    title += f"layout: {LAYOUT_WORDS.get(study.layout, study.layout)}"
    show_table(heads, rows, title=title, numeric=heads[len(varied) :])
    marked = any(map(study.marked, study.points))
    for words in filter(None, (f"{'* ' if marked else ''}{study.made_for}", study.verdict, study.note)):
        say(words)


def add_to(app: typer.Typer) -> None:
    app.command("order")(takes_source()(order_network))
    app.command("break-even")(takes_source()(break_even_command))
    app.command("pays", hidden=True)(takes_source()(break_even_command))
