"""The decision card of the report: on each hardware what to take, what it gains, how sure; and what each axis does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgewatt.pages.html.page import text
from edgewatt.results.verdict import Effect, Gain, Verdict
from traces.base.units import duration, energy

MOST_CARDS = 40


def card_html(verdict: Verdict) -> str:
    if not verdict.cards:
        return ""
    cards = verdict.cards[:MOST_CARDS]
    compared = {"on blocking": "blocking", "format alone": "format", "stride alone": "stride"}
    compared = {head: name for head, name in compared.items() if any(name in card.gains for card in cards)}
    heads = ["hardware", "take", "energy", "order alone", *compared, "time", "sure"]
    rows = []
    for card in cards:
        order = card.gains.get("row by row") or card.gains.get("first order")
        time = f" <small>({100 * order.time:+.1f} %)</small>" if order else ""
        cells = [
            f"<th scope=row>{text(card.hardware)}</th>",
            f'<td data-head="take">{text(card.take)}</td>',
            f'<td data-head="energy">{text(energy(card.energy_pj))}</td>',
            _cell(order, "order alone"),
            *(_cell(card.gains.get(name), head) for head, name in compared.items()),
            f'<td data-head="time" title="{text(f"bound by {card.bound_by} %" if card.bound_by else "")}">'
            f"{text(duration(card.time_ns))}{time}</td>",
            f'<td data-head="sure">{100 * card.holds:.0f} %</td>',
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{text(each)}</th>" for each in heads)
    base = cards[0].baseline
    more = f" The first {MOST_CARDS} of {len(verdict.cards)} machines." if len(verdict.cards) > MOST_CARDS else ""
    hint = (
        "Energy and time per inference. Each gain is against row by row "
        f"({base.order}, {base.format}, stride {base.stride}), the rest as taken; "
        "in brackets its 5 to 95 % range over draws of the constants within theirs. "
        f"Sure: share of the draws in which this needs least energy.{more}"
    )
    few = "".join(f"<p>{text(' '.join(card.sentences()))}</p>" for card in cards) if len(cards) <= 2 else ""
    return (
        f'<section id="card" class="verdict">{few}<table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        f'</table><p class="hint">{text(hint)}</p>{_effects(verdict.effects)}</section>'
    )


def _cell(gain: Gain | None, head: str) -> str:
    if gain is None:
        return f'<td data-head="{head}" class="soft">-</td>'
    if not gain.matters or not gain.decided:
        says = "not decided" if gain.matters else "irrelevant"
        return f'<td data-head="{head}" class="soft">{says} <small>({text(gain.ends)})</small></td>'
    colour = "good" if gain.energy < 0 else "bad"
    seeds = "" if gain.seeds is None else f"; seeds {100 * gain.seeds[0]:+.0f} .. {100 * gain.seeds[1]:+.0f}"
    return (
        f'<td data-head="{head}" class="{colour}">{100 * gain.energy:+.1f} % '
        f"<small>({text(gain.ends)}{seeds})</small></td>"
    )


def _effects(effects: Sequence[Effect]) -> str:
    if not effects:
        return ""
    rows = "".join(
        f"<tr><th scope=row>{text(each.axis)}</th><td>{text(each.value)} against {text(each.first)}</td>"
        f"<td>{_range(each.energy)}</td><td>{_range(each.time)}</td></tr>"
        for each in effects
    )
    head = "<tr><th>axis</th><th>value</th><th>energy</th><th>time</th></tr>"
    return (
        "<details><summary>What each axis does, all else equal: median (least .. most)</summary>"
        f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>'
    )


def _range(part: Iterable[float]) -> str:
    middle, low, high = (f"{100 * value:+.1f}" for value in part)
    return f"{middle} % <small>({low} .. {high})</small>"
