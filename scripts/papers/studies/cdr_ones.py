"""Feinberg et al. 2020, Figures 12, 13 and 15: ones on the wires by stride, distance of bases and number format.

Ones of values and ids, row pointers and vectors left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row
from papers.studies.cdr_strides import EFFORT, ENCODERS, FORMATS, LAYERS, ROWS, WITHIN, layer, ones_of, ordered
from traces.formats import to_bits

BASES: tuple[int | str, ...] = (32, 64, 128, "row", "matrix")
FEWER: dict[str, tuple[int | str, ...]] = {"bases": (32, 128, "matrix"), "strides": (32, 128, "row")}


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a layer; with `full` every stride and distance, three times the effort, and eight times the rows."""
    every = {"bases": BASES, "strides": WITHIN} if full else FEWER
    effort = {"effort": 3 * EFFORT, "rows": 8 * ROWS} if full else {"effort": EFFORT, "rows": ROWS}
    return [{"layer": name, **effort, **{key: list(values) for key, values in every.items()}} for name in LAYERS]


def compute(job: Job) -> dict[str, Any]:
    """Count the ones of a layer in every order."""
    matrix, plain, dbi = layer(job["layer"], job["rows"]).matrix, ENCODERS[1], ENCODERS[0]
    given = np.arange(matrix.nnz)
    result: dict[str, Any] = {"tuples": matrix.nnz / matrix.shape[0], "by_stride": {}, "bases": {}, "formats": {}}
    for value_format in FORMATS:
        before = ones_of(matrix, given, value_format)
        result["by_stride"][value_format] = {"dbi": before[dbi], "given": before[plain]} | {
            str(stride): ones_of(matrix, ordered(matrix, stride, value_format, effort=job["effort"]).positions,
                                 value_format)[plain]
            for stride in job["strides"]
        }  # fmt: skip
    for base in job["bases"]:
        order = ordered(matrix, "row", "fp16", base_interval=base, effort=job["effort"])
        result["bases"][str(base)] = [order.original_ones, order.ones]
    for value_format in ("fp16", "bf16"):
        order = ordered(matrix, 128, value_format, effort=job["effort"])
        result["formats"][value_format] = [order.original_ones_values, order.original_ones, order.ones]
    # The other reading of bfloat16: the upper half of the float32 bits, not rounded.
    bits = to_bits(matrix.data, "fp32")[0].view(np.uint32) >> 16
    result["formats"]["bf16 truncated"] = [ew.encode(bits.astype(np.uint16), plain, element_bytes=2).ones]
    return result


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """Rows of Figure 12 (by stride), 13 (by base) and 15 (by format): per cent of ones saved."""
    shape, density, shared = LAYERS[job["layer"]]
    base = {**job, "shared": shared > 0, "tuples": result["tuples"], "size": int(np.prod(shape))}
    found: list[Row] = []
    for value_format, ones in result["by_stride"].items():
        row = {**base, "number": 12, "format": value_format, "density": density}
        gain = 100 * (ones["32"] - ones["row"]) / ones["given"] if {"32", "row"} <= ones.keys() else None
        found += [
            {**row, "stride": s, "of given": ones[s] / ones["given"], "below dbi": 100 * (1 - ones[s] / ones["dbi"]),
             "32 to row": gain if s == "row" else None}
            for s in map(str, job["strides"])
        ]  # fmt: skip
    found += [{**base, "number": 13, "base": b, "saved": 100 * (1 - after / before)}
              for b, (before, after) in result["bases"].items()]  # fmt: skip
    values = {name: 100 * (ones[0] / result["formats"]["fp16"][0] - 1) for name, ones in result["formats"].items()}
    found += [{**base, "number": 15, "format": name, "saved": 100 * (1 - ones[2] / ones[1]), "against fp16": values}
              for name, ones in result["formats"].items() if len(ones) > 1]  # fmt: skip
    return found


FIGURES = [
    Figure(
        "cdr-ones", "feinberg-2020", "12, 13, 15",
        "Figures 12, 13 and 15: ones by stride, distance of bases and format",
        "Layers in the shapes and densities of Table II with Gaussian values. Values and ids under Base+XOR and DBI; "
        "bfloat16 both rounded and truncated.",
        jobs, compute, rows,
        (Chart("12", "stride", ("of given",), "ones over those as given", series="layer", panel="format",
               where={"number": 12}),
         Chart("13", "base", ("saved",), "% of ones saved, whole rows", series="layer", where={"number": 13}),
         Chart("15", "layer", ("saved",), "% of ones saved at stride 128", series="format", where={"number": 15},
               bars=True)),
        (1.5, 36), version=2,
    )
]  # fmt: skip
