"""The verdict on a terminal: sentences and a small table for few machines, one table for many."""

from __future__ import annotations

from collections.abc import Sequence

from edgewatt.cli.parts.output import say, show_table
from edgewatt.results.record import Record
from edgewatt.results.record_rows import per_inference, row_of
from edgewatt.results.swept import rows_with_axes
from edgewatt.results.verdict import Card, Effect, Gain, Measured, Verdict
from traces.base.units import duration, energy

_SIZES = ("neurons", "connections")
FEW = 3  # machines whose verdicts are sentences


def verdict_of(records: Sequence[Record]) -> Verdict:
    rows, measured = [per_inference(row_of(record)) for record in records], Measured()
    for number, (record, row) in enumerate(zip(records, rows, strict=True)):
        measured.take(record, row, number)
    return measured.verdict(rows, rows_with_axes(rows, [record.config for record in records]))


def headline(records: Sequence[Record], title: str) -> None:
    """Print what was measured, in a line or two."""
    rows = [row_of(record) for record in records]
    sizes = {tuple(record.results.get("network", {}).get(each) for each in _SIZES) for record in records}
    if len(sizes) == 1:
        counted = (f"{n:,} {each if n != 1 else each[:-1]}" for n, each in zip(*sizes, _SIZES, strict=True))
        name = "" if rows[0]["network"].startswith(title) else f"{rows[0]['network']}, "
        work = name + ", ".join(counted)
    else:
        work = f"{len(sizes)} networks"
    played = [row for row in rows if "part" in row]
    parts, buses = (dict.fromkeys(str(row[key]) for row in played) for key in ("part", "encoder"))
    say(f"{title}: {work}" + (f"; {' or '.join(parts)}, {' or '.join(buses)} bus" if played else ""))


def show_verdict(records: Sequence[Record], verdict: Verdict | None = None) -> bool:
    verdict = verdict_of(records) if verdict is None else verdict
    if not verdict.cards:
        return False
    if len(verdict.cards) <= FEW:
        for card in verdict.cards:
            say(" ".join(card.sentences()))
        _show_columns(verdict.cards)
    else:
        _show_cards(verdict.cards)
        _show_effects(verdict.effects)
    return True


def _show_columns(cards: Sequence[Card]) -> None:
    names = dict.fromkeys(name for card in cards for name, *_ in card.columns)
    if len(names) < 2:
        return
    rows = []
    for card in cards:
        of = {name: (layout, pj, ns) for name, _, layout, pj, ns in card.columns}
        rows.append((card.hardware, *(energy(of[n][1]) if n in of else "-" for n in names)))
        rows.append(("", *(duration(of[n][2]) if n in of else "-" for n in names)))
    show_table((f"per inference{_at_a_time(cards)}", *names), rows, numeric=tuple(names))


def _at_a_time(cards: Sequence[Card]) -> str:
    many = sorted({card.inputs for card in cards})
    return "" if many == [1] else f", {' or '.join(map(str, many))} at a time"


def _show_cards(cards: Sequence[Card]) -> None:
    heads = ("hardware", "take", "energy", "time", "order ±%", "time ±%", "on blocking ±%", "format ±%", "stride ±%",
             "sure %", "bound by %")  # fmt: skip
    against = [card.gains.get("row by row") or card.gains.get("first order") for card in cards]
    rows = [
        (
            card.hardware, card.take, energy(card.energy_pj), duration(card.time_ns),
            *(_percent(gain, what) for what in ("energy", "time")),
            *(_percent(card.gains.get(name), "energy") for name in ("blocking", "format", "stride")),
            f"{100 * card.holds:.0f}",
            card.bound_by or "-",
        )
        for card, gain in zip(cards, against, strict=True)
    ]  # fmt: skip
    shown = [k for k, head in enumerate(heads) if k < 4 or any(row[k] != "-" for row in rows)]
    title = f"What to take on each machine; energy and time per inference{_at_a_time(cards)}"
    show_table(
        [heads[k] for k in shown], [[row[k] for k in shown] for row in rows], title=title,
        numeric=[heads[k] for k in shown if k > 1],
    )  # fmt: skip
    say("±%: put back to the baseline, the rest as taken; ?: the sign does not survive the constants' ranges; "
              "sure: share of their draws in which this needs least energy.")  # fmt: skip


def _percent(gain: Gain | None, what: str) -> str:
    if gain is None:
        return "-"
    sure = what == "time" or gain.decided or not gain.matters
    return f"{100 * getattr(gain, what):+.1f}{'' if sure else '?'}"


def _show_effects(effects: Sequence[Effect]) -> None:
    rows = [
        (each.axis, f"{each.value}, not {each.first}", *(_range(part) for part in (each.energy, each.time)))
        for each in effects
    ]
    if rows:
        heads = ("axis", "value", "energy ±%", "time ±%")
        show_table(heads, rows, title="All else equal: median (least .. most)", numeric=heads[2:])


def _range(part: tuple[float, float, float]) -> str:
    middle, low, high = (f"{100 * value:+.1f}" for value in part)
    return f"{middle} ({low} .. {high})"
