"""Feinberg et al. 2020, Figures 12, 13 and 15: ones on the wires by stride, distance of bases and number format.

Ones of values and ids, row pointers and vectors left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.stand_ins.cdr_layers import (
    CHANNELS,
    EFFORT,
    ENCODERS,
    STRIDES,
    change,
    layer,
    names,
    ones_of,
    ordered,
)
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from traces.formats import to_bits

BASES: tuple[int | str, ...] = (32, 64, 128, "row", "matrix")
WITHIN: tuple[int | str, ...] = (*STRIDES, "row")
FEWER: dict[str, tuple[int | str, ...]] = {"bases": (32, 128, "matrix"), "strides": (32, 128, "row")}


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a layer; with `full` every stride and distance, three times the effort, and all of a convolution."""
    every = {"bases": BASES, "strides": WITHIN} if full else FEWER
    job = {"effort": 3 * EFFORT if full else EFFORT, **{name: list(values) for name, values in every.items()}}
    return [{"layer": name, **job} | ({} if full else {"channels": CHANNELS}) for name in names(full)]


def compute(job: Job) -> dict[str, Any]:
    """Count the ones of a layer in every order."""
    whole = layer(job["layer"])
    matrix = whole.first(job.get("channels")).matrix
    given = np.arange(matrix.nnz)
    kept: dict[Any, Any] = {}

    def order_of(stride: int | str, value_format: str, base: int | str = 32) -> Any:
        key = (stride, value_format, base)
        if key not in kept:
            kept[key] = ordered(matrix, stride, value_format, base_interval=base, effort=job["effort"])
        return kept[key]

    by_stride: dict[str, Any] = {}
    for value_format in ("fp16", "int8"):
        by_stride[value_format] = {"given": ones_of(matrix, given, value_format)}
        for stride in job["strides"]:
            by_stride[value_format][str(stride)] = ones_of(
                matrix, order_of(stride, value_format).positions, value_format
            )
    bases = {str(b): order_of("row", "fp16", b) for b in job["bases"]}
    formats: dict[str, Any] = {}
    for value_format in ("fp16", "bf16"):
        order = order_of(128, value_format)
        formats[value_format] = {
            "values": order.original_ones_values,
            "before": order.original_ones,
            "after": order.ones,
        }
    formats["bf16 truncated"] = _truncated(matrix)
    return {
        "by_stride": by_stride,
        "bases": {b: [f.original_ones, f.ones] for b, f in bases.items()},
        "formats": formats,
    }


def _truncated(matrix: Any) -> dict[str, int]:
    """The other reading of bfloat16: the upper half of the float32 bits, not rounded."""
    import edgewatt as ew

    bits = to_bits(matrix.data, "fp32")[0].view(np.uint32) >> 16
    return {"values": ew.encode(bits.astype(np.uint16), ENCODERS[1], element_bytes=2).ones}


def tables(done: Done) -> list[StudyTable]:
    """Return a table a figure."""
    plain = ENCODERS[1]
    rows12, rows13, rows15 = [], [], []
    strides = [s for s in WITHIN if any(str(s) in r["by_stride"]["fp16"] for _, r in done)]
    bases = [str(b) for b in BASES if any(str(b) in r["bases"] for _, r in done)]
    for job, r in done:
        for value_format, ones in r["by_stride"].items():
            base = ones["given"][plain]
            cells = (change(ones[str(s)][plain], base) if str(s) in ones else "" for s in strides)
            rows12.append((job["layer"], value_format, ones["given"]["dbi-dc"], base, *cells,
                           f"{100 * (ones[str(WITHIN[0])][plain] - ones['row'][plain]) / base:.1f} %"))  # fmt: skip
        pairs = (r["bases"].get(b) for b in bases)
        rows13.append((job["layer"], *(f"{p[1]} ({change(p[1], p[0])})" if p else "" for p in pairs)))
        f = r["formats"]
        rows15.append((
            job["layer"], *(change(f[v]["after"], f[v]["before"]) for v in ("fp16", "bf16")),
            *(change(f[v]["values"], f["fp16"]["values"]) for v in ("bf16", "bf16 truncated")),
        ))  # fmt: skip
    marks12 = [
        (f, str(s), job["layer"], ones[str(s)][plain] / ones["given"][plain])
        for job, r in done for f, ones in r["by_stride"].items() for s in strides if str(s) in ones
    ]  # fmt: skip
    marks13 = [
        ("", b, job["layer"], r["bases"][b][1] / r["bases"][b][0]) for job, r in done for b in bases if b in r["bases"]
    ]
    marks15 = [
        ("", job["layer"], v, 100 * (1 - r["formats"][v]["after"] / r["formats"][v]["before"]))
        for job, r in done for v in ("fp16", "bf16")
    ]  # fmt: skip
    return [
        StudyTable(
            "Figure 12: ones under Base+XOR and DBI by stride",
            ("layer", "format", "DBI alone, as given", "Base+XOR and DBI, as given", *map(str, strides), "32 to row"),
            rows12,
            Drawing("12", "stride", "ones over those as given", marks12),
        ),
        StudyTable(
            "Figure 13: ones by the distance of bases, whole rows",
            ("layer", *bases),
            rows13,
            Drawing("13", "a base every so many bytes", "ones over those as given", marks13),
        ),
        StudyTable(
            "Figure 15: reordering in fp16 and bf16, and the values as given against fp16",
            ("layer", "fp16", "bf16", "bf16 values", "truncated"),
            rows15,
            Drawing("15", "layer", "% of ones saved at stride 128", marks15, bars=True),
        ),
    ]


def _gain(ones: Any) -> float:
    """What whole rows save over the smallest stride, of the ones as given."""
    plain = ENCODERS[1]
    return float((ones[str(WITHIN[0])][plain] - ones["row"][plain]) / ones["given"][plain])


def _sensitivity(done: Done) -> tuple[str, str]:
    def average(shared: bool) -> str:
        rows = [r["by_stride"].values() for job, r in done if shared or "shared" not in job["layer"]]
        return f"{100 * float(np.mean([_gain(ones) for formats in rows for ones in formats])):.1f} %"

    return f"{average(True)}; {average(False)} without shared values", ""


def _predictors(done: Done) -> tuple[str, str]:
    """Rank correlations of a layer's gain with its density, its size and the tuples of a row."""
    if len(done) < 3:
        return "takes three layers or more", ""
    from scipy.stats import spearmanr

    matrices = [layer(job["layer"]).first(job.get("channels")).matrix for job, _ in done]
    features = {
        "density": [m.nnz / (m.shape[0] * m.shape[1]) for m in matrices],
        "size": [m.shape[0] * m.shape[1] for m in matrices],
        "tuples a row": [m.nnz / m.shape[0] for m in matrices],
    }
    words = []
    for name, values in features.items():
        by_format = (spearmanr(values, [_gain(r["by_stride"][f]) for _, r in done]) for f in ("fp16", "int8"))
        words.append(f"{name} " + " and ".join(f"{correlation.statistic:+.2f}" for correlation in by_format))
    return f"rank correlation over {len(done)} layers (fp16 and int8): {', '.join(words)}", ""


def _one_base(done: Done) -> tuple[str, str]:
    values = [100 * (1 - after / before) for _, r in done for before, after in [r["bases"]["matrix"]]]
    return f"{np.median(values):.1f} % ({min(values):.1f} to {max(values):.1f})", ""


def _frequent_bases(done: Done) -> tuple[str, str]:
    def saved(base: str) -> str:
        values = [100 * (1 - after / before) for _, r in done for before, after in [r["bases"][base]]]
        return f"{np.median(values):.1f} % with a base every {base} bytes"

    known = [b for b in map(str, BASES) if b.isdigit() and all(b in r["bases"] for _, r in done)]
    return "; ".join(map(saved, known)), ""


def _bfloat16(done: Done) -> tuple[str, str]:
    def share(which: str) -> str:
        values = [100 * (r["formats"][which]["values"] / r["formats"]["fp16"]["values"] - 1) for _, r in done]
        return f"{min(values):+.1f} to {max(values):+.1f} %"

    return f"{share('bf16')} rounded; {share('bf16 truncated')} truncated", ""


def _both_formats(done: Done) -> tuple[str, str]:
    def saved(which: str) -> str:
        values = [100 * (1 - r["formats"][which]["after"] / r["formats"][which]["before"]) for _, r in done]
        return f"{which} {min(values):.0f} to {max(values):.0f} %"

    return f"{saved('fp16')}; {saved('bf16')}", ""


STUDIES.register("cdr-ones", summary="Figures 12, 13 and 15: ones by stride, bases and format")(
    Study(
        jobs,
        compute,
        tables,
        {
            "sensitivity": _sensitivity,
            "predictors": _predictors,
            "one-base": _one_base,
            "frequent-bases": _frequent_bases,
            "bfloat16": _bfloat16,
            "both-formats": _both_formats,
        },
    )
)
