"""What is known about schedules and placements, in sentences and as plain data."""

from __future__ import annotations

from typing import Any

from traces.base.units import duration, energy


def order_lines(rows: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[tuple[str, list[Any]]]:
    def name(size: int) -> str:
        return f"off-chip B at {size // 1024} KiB" if size % 1024 == 0 else f"off-chip B at {size} B"

    lines = [("operators", [row["operators"] for row in rows]), ("peak B", [row["peak_bytes"] for row in rows])]
    lines.append(("arena B", [row["arena_bytes"] for row in rows]))
    lines += [(name(size), [row["traffic_bytes"].get(str(size), "-") for row in rows]) for size in sizes]
    if "energy" in rows[0]:
        at = rows[0]["energy_onchip_bytes"] / 1024
        terms = (("data wires", "io_pj"), ("all wires", "interface_pj"), ("DRAM core", "core_pj"))
        lines.append(("weights read B", [row["energy"]["weight_bytes"] for row in rows]))  # in none of the rows above
        lines += [(f"{text} at {at:g} KiB", [energy(row["energy"][key]) for row in rows]) for text, key in terms]
    return lines


def describe_proof(result: Any) -> str:
    if result.objective == "peak" and result.proved:
        return f"peak of {result.peak_bytes:,} B: proved, no order of these operators needs less"
    if result.objective == "peak":
        gap = 100 * (result.peak_bytes / result.lower_bound_bytes - 1)
        return (
            f"peak of {result.peak_bytes:,} B: the best found; no order needs less than {result.lower_bound_bytes:,} B "
            f"(gap {gap:.1f} %)"
        )
    bound = f"no order has a peak below {result.lower_bound_bytes:,} B"
    if result.objective == "arena":
        word = "proved, no order has a smaller one" if result.proved else f"the best found; {bound}"
        return f"arena of {result.arena_bytes:,} B at a peak of {result.peak_bytes:,} B: {word}"
    if result.objective == "energy":
        least, tried = result.details["energy"]["total_pj"], result.details["candidates_pj"]
        return (
            f"off-chip energy of {energy(least)}: the least of {len(tried)} orders, the most is {energy(tried[-1])}; "
            f"its peak is {result.peak_bytes:,} B, {bound}"
        )
    word = "none can have less" if result.proved else "the best found"
    return f"off-chip traffic of {result.traffic_bytes:,} B: {word}; its peak is {result.peak_bytes:,} B, {bound}"


def describe_arena(result: Any) -> str:
    where = f"arena of {result.arena_bytes:,} B at an alignment of {result.alignment}"
    if result.arena_bytes == result.peak_bytes:
        return f"{where}: the peak, no byte is lost to placement"
    if result.arena_bytes == result.arena_lower_bound_bytes:
        return f"{where}: proved, no order of these operators has a smaller one (sizes are rounded up)"
    return f"{where}: no order has one below {result.arena_lower_bound_bytes:,} B"


def describe_placement(height: int, lower_bound: int, capacity: int | None) -> str:
    if capacity is not None and height > capacity:
        if lower_bound > capacity:
            return f"they do not fit in {capacity:,} B: proved, every placement needs at least {lower_bound:,} B"
        return (
            f"no placement in {capacity:,} B found: the best needs {height:,} B, "
            f"none can need less than {lower_bound:,} B"
        )
    if height == lower_bound:
        return f"placed in {height:,} B: proved, no placement needs less"
    room = "" if capacity is None else f" (they fit in {capacity:,} B)"
    return f"placed in {height:,} B{room}: no placement needs less than {lower_bound:,} B"


def describe_banks(placed: Any) -> list[str]:
    lines = []
    for k, (bank, height) in enumerate(zip(placed.banks, placed.heights, strict=True)):
        room = "" if bank.size_bytes is None else f" of {bank.size_bytes:,} B"
        lines.append(f"{bank.name}: {int((placed.bank == k).sum())} buffers in {height:,} B{room}")
    known = "proved, no placement takes less"
    if not placed.proved:
        known = f"no placement takes less than {duration(placed.lower_bound_ns, 4)}"
    if placed.truncated:
        known += "; the time limit ended the search"
    lines.append(
        f"traffic takes {duration(placed.time_ns, 4)}, {duration(placed.spill_ns, 4)} more than if all were in the "
        f"fastest bank; {placed.spilled_bytes:,} B are outside it: {known}"
    )
    return lines


def bank_summary(placed: Any) -> dict[str, Any]:
    return {
        "banks": [
            {"name": bank.name, "size_bytes": bank.size_bytes, "mb_per_s": bank.mb_per_s, "height": height,
             "buffers": int((placed.bank == k).sum())}
            for k, (bank, height) in enumerate(zip(placed.banks, placed.heights, strict=True))
        ],
        "time_ns": placed.time_ns,
        "lower_bound_ns": placed.lower_bound_ns,
        "spill_ns": placed.spill_ns,
        "spilled_bytes": placed.spilled_bytes,
        "proved": placed.proved,
        "truncated": placed.truncated,
    }  # fmt: skip


def describe_written(back: Any, result: Any) -> list[str]:
    if back is None:
        return []
    lines = []
    if back.rewritten:
        lines.append(
            f"written with {back.operators} operators: peak of {back.peak_bytes:,} B, arena of {back.arena_bytes:,} B "
            "(partial sums in tensors of their own)"
        )
        if back.peak_bytes >= back.unchanged_peak_bytes:
            lines.append(
                f"the model as it is needs no more, {back.unchanged_peak_bytes:,} B: write it without --rewrite"
            )
    by: dict[str, list[str]] = {}
    for name, reason in back.whole.items():
        by.setdefault(reason, []).append(name)
    for reason, names in by.items():
        more = f" and {len(names) - 1} more stay" if names[1:] else " stays"
        lines.append(f"{names[0]!r}{more} whole: {reason}")
    return lines
