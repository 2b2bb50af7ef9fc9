"""The page in words besides its card: what was measured, and how."""

from __future__ import annotations

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.pages.chart import in_order, titles, varying_fields
from edgewatt.pages.data import ReportData
from edgewatt.results.record_rows import distinct, value_in_words


def summary(data: ReportData) -> list[str]:
    played = data.played
    if not played:
        counted = f"{len(data.rows)} points, counted with the I/O model alone."
        return [counted, *swept_words(data), *_work_words(data)]
    inputs = distinct(data.rows, "inputs")
    many = "" if inputs == [1] else f", {' or '.join(map(str, sorted(inputs)))} inputs at a time"
    lines = [f"{len(played)} points; energy and time per inference{many}.", *swept_words(data)]
    if idle := ", ".join(distinct(data.rows, "idle")):
        lines.append(f"Of the DRAM's static energy is billed: {idle}.")
    if data.verdict.proxies:
        rho = ", ".join(f"{name} {value:.2f}" for name, value in data.verdict.proxies.items())
        lines.append(f"Rank correlation with energy over the points: {rho}.")
    return lines + _work_words(data)


_MOST_VALUES = 6


def swept_words(data: ReportData) -> list[str]:
    parts, named = [], titles(data)
    for key in varying_fields(data):
        title = named[key]
        name, given = title.partition(" (")[0], in_order(distinct(data.rows, key))
        values = [value_in_words(title, value).removeprefix(f"{name} ") for value in given]
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        parts.append(f"{name} ({', '.join(values[:_MOST_VALUES])}{more})")
    seeds = distinct(data.rows, "seed")
    parts += [f"seed ({len(seeds)} of them)"] if len(seeds) > 1 else []
    return [f"What differs: {'; '.join(parts)}."] if parts else []


def _work_words(data: ReportData) -> list[str]:
    lines = []
    io, bound = list(data.rows.values("io")), list(data.rows.values("io_bound"))
    counted = [i for i, number in enumerate(io) if number]
    if counted:
        labels = list(data.rows.values("label"))
        low = data.rows[min(counted, key=lambda i: (io[i] / bound[i], labels[i]))]
        above = low["io"] / low["io_bound"] - 1
        argument = "Theorem 1" if low["bound"] == "theorem-1" else low["bound"]
        text = (
            "exactly its lower bound"
            if above == 0
            else f"{100 * above:.1f} % above its lower bound of {low['io_bound']:,} ({argument})"
        )
        name = ", ".join(
            [low["ordering"], *([] if low["stride"] == AS_GIVEN else [low["stride"]]), f"M = {low['memory']}"]
        )
        lines.append(f"Fewest I/Os for its network: {name} with {low['io']:,}, {text}.")
    zeroed: dict[str, int] = {}
    for number, name, count in zip(io, *map(data.rows.values, ("format", "zeroed_weights")), strict=True):
        if number and count:
            zeroed[name] = count
    for name, count in zeroed.items():
        lines.append(f"In {name}, {count:,} stored non-zero weights become zero.")
    if data.failed:
        lines.append(f"{len(data.failed)} points failed and are not shown; see the end of the page.")
    if older := data.about.older:
        count = data.about.count
        lines.append(f"{older} of {count} points were counted by an older version: the same sweep computes them again.")
    return lines
