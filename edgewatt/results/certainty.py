"""How sure an energy is: the constants behind it are drawn within their ranges, and energies are compared again.

Constants of one source err together (one data sheet, one model of memories on chip), those of different sources apart.
A draw moves each source by one number z in (-1, 1): an energy between `low` and `high` becomes pj x (high / pj)^z for
z > 0 and pj x (low / pj)^-z else, so that the nominal figure is the median. The draws fill the
cube of all z evenly (M. Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018), always the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, shown

Floats = npt.NDArray[np.float64]

DRAWS = 4000
"""500 would do for a glance; with 4,000 that fill the cube evenly a share is that of many more random ones."""
SOURCES = ("DRAM", "wires", "on-chip memory", "arithmetic")
"""Where constants come from: currents of the device's data sheet, its interface, the model of memories on chip, and
published figures of arithmetic."""

_WIRES = re.compile(r"(dq|dbi|dqs|ck|ca|wck|extra)\w*?_")
_ON_CHIP = re.compile(r"(l\d+|scratchpad)_")
_ARITHMETIC = re.compile(r"multiply_add|instruction|core_|engine_|addition")


@lru_cache(maxsize=256)
def source_of(term: str) -> int:
    if _ON_CHIP.match(term):
        return 2
    if _ARITHMETIC.match(term):
        return 3
    return 1 if _WIRES.match(term) else 0


def by_source(energy: Mapping[str, Any]) -> Floats:
    """Return float64[len(SOURCES), 3]: pJ, low and high of a record's energy (`energy_pj`) by source.

    Terms of records that were made before terms had ranges share the range of their sum.
    """
    added = [[0.0] * 3 for _ in SOURCES]
    for name, term in energy["terms"].items():
        pj = term.get("pj") if isinstance(term, Mapping) else None
        values = () if pj is None else (pj, term.get("low", pj), term.get("high", pj))
        if not values or not all(isinstance(value, float | int) and not abs(value) > 1e300 for value in values):
            raise InputError(f"the energy term {name!r} of a record holds no numbers: {shown(values)}")
        of_source = added[source_of(name)]
        for k, value in enumerate(values):
            of_source[k] += value
    sums = np.array(added)
    if not any("low" in term for term in energy["terms"].values()) and "memory_low" in energy:
        others = energy.get("onchip", 0.0) + energy.get("compute", 0.0)
        for columns, whole, ends in (
            ((0, 1), energy["total"] - others, ("memory_low", "memory_high")),
            ((2, 3), others, ("beside_memory_low", "beside_memory_high")),
        ):
            for k, end in enumerate(ends, 1):
                if whole and end in energy:
                    sums[list(columns), k] *= energy[end] / whole
    return sums


@cache
def directions() -> Floats:
    ratio = 1.0
    for _ in range(64):  # the root of x^(d + 1) = x + 1
        ratio = (1.0 + ratio) ** (1.0 / (len(SOURCES) + 1))
    steps = ratio ** -np.arange(1.0, len(SOURCES) + 1)
    return np.asarray(2.0 * ((0.5 + np.arange(1, DRAWS + 1)[:, None] * steps) % 1.0) - 1.0)


def drawn(sums: Floats) -> Floats:
    """Return float64[points, DRAWS]: the energy of each point in each draw. sums: `by_source` of each, stacked."""
    pj, low, high = np.moveaxis(sums, 2, 0)
    down, up = (np.divide(end, pj, out=np.ones_like(pj), where=pj > 0) for end in (low, high))
    down, up = np.clip(down, 1e-9, 1.0), np.maximum(up, 1.0)
    total = np.zeros((len(sums), DRAWS))
    for source, along in enumerate(directions().T):
        of = np.s_[:, source, None]
        total += pj[of] * np.where(along > 0, up[of] ** along, down[of] ** -along)
    return total


def spread_of(changes: Sequence[float] | Floats) -> tuple[float, float]:
    low, high = np.quantile(np.asarray(changes), (0.05, 0.95))
    return float(low), float(high)
