"""A network and its order of work as one self-contained C file: no libc, no allocation, tables in that order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.processor.inference import compile_inference
from hwmodel.processor.work import Ids, OrderedWork, ordered_work
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name
from traces.networks.network import Network
from traces.networks.quantization import to_bytes

MOST_CONNECTIONS = 1 << 23  # a file of about 150 MB
FIRST, LAST = 1, 2

FLOAT_BODY = """
void {name}_run(const float *input, float *output) {{
    const {index} *source = {name}_source;
    const float *weight = {name}_weight;
    {constants}
    for (uint32_t i = 0; i < {n_inputs}u; i++) {name}_value[{name}_input_row[i]] = input[{name}_input_column[i]];
    for (uint32_t r = 0; r < {runs}u; r++) {{
        const {name}_run_t run = {name}_runs[r];
        float sum = run.flags & 1 ? {begin} : {name}_value[run.target];
        for (uint32_t k = 0; k < run.count; k++) sum += *weight++ * {name}_value[*source++];
        if (run.flags & 2) {{
            {finish}
        }}
        {name}_value[run.target] = sum;
    }}
    for (uint32_t i = 0; i < {n_outputs}u; i++) output[i] = {name}_value[{name}_output_row[i]];
}}
"""

LANES_BODY = """
/* input: {name}_LANES vectors of {name}_INPUTS numbers, one after the other; output: as many of {name}_OUTPUTS. */
void {name}_run(const float *input, float *output) {{
    for (uint32_t first = 0; first < {name}_LANES; first += {block}) {{
        const {index} *source = {name}_source;
        const float *weight = {name}_weight;
        for (uint32_t l = 0; l < {block}; l++) {{
            float *{name}_value = {name}_lanes + l;
            const float *vector = input + (first + l) * {name}_INPUTS;
            {constants}
            for (uint32_t i = 0; i < {n_inputs}u; i++)
                {name}_value[(uint32_t){name}_input_row[i] * {block}] = vector[{name}_input_column[i]];
        }}
        for (uint32_t r = 0; r < {runs}u; r++) {{
            const {name}_run_t run = {name}_runs[r];
            float *target = {name}_lanes + (uint32_t)run.target * {block};
            float sums[{block}];
            for (uint32_t l = 0; l < {block}; l++) sums[l] = run.flags & 1 ? {begin} : target[l];
            for (uint32_t k = 0; k < run.count; k++) {{
                const float w = *weight++, *x = {name}_lanes + (uint32_t)*source++ * {block};
                for (uint32_t l = 0; l < {block}; l++) sums[l] += w * x[l];
            }}
            for (uint32_t l = 0; l < {block}; l++) {{
                float sum = sums[l];
                if (run.flags & 2) {{
                    {finish}
                }}
                target[l] = sum;
            }}
        }}
        for (uint32_t l = 0; l < {block}; l++)
            for (uint32_t i = 0; i < {n_outputs}u; i++)
                output[(first + l) * {name}_OUTPUTS + i] = {name}_lanes[(uint32_t){name}_output_row[i] * {block} + l];
    }}
}}
"""
MOST_LANES = 1024
BLOCKS = (16, 8, 4, 2, 1)  # lanes at a time, whose sums a compiler keeps in registers

INT8_BODY = """
static uint8_t {name}_to_byte(float x, int32_t zero, int32_t least) {{
    volatile float shifted; /* adding 1.5 * 2^23 rounds half to even */
    int32_t u;
    x = x < -1024.0f ? -1024.0f : x > 1024.0f ? 1024.0f : x;
    shifted = x + 12582912.0f;
    u = (int32_t)(shifted - 12582912.0f) + zero;
    return (uint8_t)(u < least ? least : u > 255 ? 255 : u);
}}

/* input: bytes, real value = (byte - input_zero) * input_scale. output: sums, real value = sum * output_scale. */
void {name}_run(const uint8_t *input, int32_t *output) {{
    const {index} *source = {name}_source;
    const int8_t *weight = {name}_weight;
    {constants}
    for (uint32_t i = 0; i < {n_inputs}u; i++) {name}_value[{name}_input_row[i]] = input[{name}_input_column[i]];
    for (uint32_t r = 0; r < {runs}u; r++) {{
        const {name}_run_t run = {name}_runs[r];
        int32_t sum = run.flags & 1 ? run.start : {name}_sum[run.sum];
        for (uint32_t k = 0; k < run.count; k++) sum += (int32_t)*weight++ * {name}_value[*source++];
        if (run.flags & 2)
            {name}_value[run.target] = {name}_to_byte((float)sum * run.multiplier, run.zero, run.least);
        {name}_sum[run.sum] = sum;
    }}
    for (uint32_t i = 0; i < {n_outputs}u; i++) output[i] = {name}_sum[{name}_output_sum[i]];
}}

/* The same on real numbers. */
void {name}_run_real(const float *input, float *output) {{
    static uint8_t bytes[{n_columns} + 1];
    static int32_t sums[{n_outputs} + 1];
    for (uint32_t i = 0; i < {n_columns}u; i++)
        bytes[i] = {name}_to_byte(input[i] / {name}_input_scale[i], {name}_input_zero[i], 0);
    {name}_run(bytes, sums);
    for (uint32_t i = 0; i < {n_outputs}u; i++) output[i] = (float)sums[i] * {name}_output_scale[i];
}}
"""


def export_c(
    network: Network,
    order: Any = None,
    *,
    dtype: str = "float32",
    name: str = "network",
    calibration: npt.ArrayLike | None = None,
    lanes: int = 1,
) -> str:
    """Return C99 source that computes `lanes` input vectors at a time in exactly the given order.

    It defines NAME_INPUTS, NAME_OUTPUTS, NAME_ARENA_BYTES (all the memory it writes) and ``void NAME_run(input,
    output)``: float to float, or for int8 bytes to 32-bit sums, with ``NAME_run_real`` from float to float. int8,
    calibration: as of `compile_inference`. lanes: more than one (float32 alone): NAME_LANES, and input and output are
    so many vectors, one after the other.
    """
    if dtype not in ("float32", "int8"):
        raise unknown_name("dtype of a C file", dtype, ("float32", "int8"))
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,40}", name):
        raise InputError(f"name {name!r} is not a C identifier of at most 41 characters")
    if network.n_connections > MOST_CONNECTIONS:
        raise InputError(f"{network.n_connections} connections are too many for a C file (at most {MOST_CONNECTIONS})")
    whole_number(lanes, "lanes", 1, MOST_LANES)
    if lanes > 1 and dtype != "float32":
        raise InputError(f"{dtype} takes one input vector at a time: lanes are for float32")
    work = ordered_work(network, order)
    row, n_rows = work.rows(keep_all=False, apart=False)
    flags = _flags(work)
    words = _integer(n_rows)
    inputs = network.inputs[work.fed_inputs]
    tables = [
        _table(f"{name}_source", words, row[work.sources]),
        _table(f"{name}_input_row", words, row[inputs]),
        _table(f"{name}_input_column", "uint32_t", work.fed_inputs),
    ]
    fields = {
        "name": name, "index": words, "runs": len(flags), "n_inputs": len(inputs), "n_columns": len(network.inputs),
        "n_outputs": len(network.outputs), "lanes": lanes,
    }  # fmt: skip
    make = _float_parts if dtype == "float32" else _int8_parts
    more, body, arena, extra = make(work, row, n_rows, flags, fields, calibration)
    real = len(network.inputs) + 1 + 4 * (len(network.outputs) + 1)
    written = f"{arena} bytes" + (f", and {real} more by {name}_run_real" if dtype == "int8" else "")
    head = (
        f"/* {_comment(network.name)}: {network.n_connections} connections in {len(flags)} runs, {dtype}; written by "
        f"edgewatt.\n * Memory written: {written}. Order of work: exactly that of the tables below. */\n"
        f"#include <stdint.h>\n\n#define {name}_INPUTS {len(network.inputs)}\n"
        f"#define {name}_OUTPUTS {len(network.outputs)}\n#define {name}_ARENA_BYTES {arena}\n"
        + (f"#define {name}_LANES {lanes}\n" if lanes > 1 else "")
    )
    return head + "\n".join([*tables, *more]) + body.format(**fields, **extra)


Parts = tuple[list[str], str, int, dict[str, str]]


def _float_parts(
    work: OrderedWork, row: Ids, n_rows: int, flags: Ids, fields: dict[str, Any],
    calibration: npt.ArrayLike | None,
) -> Parts:  # fmt: skip
    name, network, lanes = fields["name"], work.network, int(fields["lanes"])
    block = next(size for size in BLOCKS if lanes % size == 0)
    targets = work.targets[work.starts[:-1]]
    kinds = work.activation[targets]
    runs = [
        f"{{{t}, {n}, {f | k << 2}, {_real(b)}}}"
        for t, n, f, k, b in zip(
            row[targets].tolist(), np.diff(work.starts).tolist(), flags.tolist(), kinds.tolist(),
            work.biases[targets].tolist(), strict=True,
        )
    ]  # fmt: skip
    more = [
        _table(f"{name}_weight", "float", map(_real, work.weights.tolist())),
        _table(f"{name}_output_row", "uint32_t", row[network.outputs]),
        f"typedef struct {{ {fields['index']} target; uint32_t count; uint8_t flags; float start; }} {name}_run_t;",
        _table(f"{name}_runs", f"{name}_run_t", runs),
        f"static float {name}_{'value' if lanes == 1 else 'lanes'}[{max(1, n_rows) * block}];",
    ]
    clipped = network.activation == "clipped-relu"
    finish = (
        "if (sum != 0.0f) { sum += run.start; sum = sum < 0.0f ? 0.0f : sum > 32.0f ? 32.0f : sum; }"
        if clipped
        else "if (run.flags >> 2 == 1 && sum < 0.0f) sum = 0.0f;"
    )
    ids, values = work.constants
    constants = _assignments(f"{name}_value", block * row[ids], map(_real, values.tolist()))
    return more, FLOAT_BODY if lanes == 1 else LANES_BODY, 4 * block * n_rows, {
        "begin": "0.0f" if clipped else "run.start", "finish": finish, "constants": constants, "block": f"{block}u",
    }  # fmt: skip


def _int8_parts(
    work: OrderedWork, row: Ids, n_rows: int, flags: Ids, fields: dict[str, Any],
    calibration: npt.ArrayLike | None,
) -> Parts:  # fmt: skip
    name, network = fields["name"], work.network
    given = network.batch if calibration is None else np.asarray(calibration, np.float32)
    if given is None:
        raise InputError(
            f"{network.name} carries no inputs: int8 needs a calibration, float[B, {len(network.inputs)}]: "
            "save the network with such a batch (network.with_(batch=...)), or give calibration=... in Python"
        )
    exact = compile_inference(network.with_(batch=None)).neurons(given)
    q = work.quantized(exact)
    fed = network.in_degree > 0
    unfed = network.outputs[~fed[network.outputs]]
    if len(unfed):
        raise InputError(f"neuron {unfed[0]}: an output without incoming connections has no sum in 8 bits")
    targets = work.targets[work.starts[:-1]]
    sums = np.zeros(network.n_neurons, np.int64)
    needed = np.flatnonzero((np.bincount(targets, minlength=network.n_neurons) > 1) | (fed & network.is_output))
    sums[needed] = np.arange(1, len(needed) + 1)  # 0: of those that need none
    relu = (work.activation[targets] == 1).astype(np.int64)
    columns = (
        row[targets], np.diff(work.starts), sums[targets], flags, q.zero[targets], relu * q.zero[targets],
        q.start[targets],
    )  # fmt: skip
    runs = [
        "{" + ", ".join(map(str, cells)) + f", {_real(m)}}}"
        for *cells, m in zip(*(c.tolist() for c in columns), q.multiplier[targets].tolist(), strict=True)
    ]
    more = [
        _table(f"{name}_weight", "int8_t", q.weights),
        _table(f"{name}_output_sum", "uint32_t", sums[network.outputs]),
        _table(f"{name}_input_scale", "float", map(_real, q.scale[network.inputs].tolist())),
        _table(f"{name}_input_zero", "int32_t", q.zero[network.inputs]),
        _table(f"{name}_output_scale", "float", map(_real, q.sum_scale[network.outputs].tolist())),
        "typedef struct { uint32_t target, count, sum; uint8_t flags; int32_t zero, least, start; float multiplier; } "
        f"{name}_run_t;",
        _table(f"{name}_runs", f"{name}_run_t", runs),
        f"static uint8_t {name}_value[{max(1, n_rows)}];",
        f"static int32_t {name}_sum[{len(needed) + 1}];",
    ]
    ids, values = work.constants
    constants = _assignments(f"{name}_value", row[ids], to_bytes(values, q.scale[ids], q.zero[ids]).tolist())
    return more, INT8_BODY, n_rows + 4 * (len(needed) + 1), {"constants": constants}


def _flags(work: OrderedWork) -> Ids:
    """Return per run FIRST where nothing was added before, LAST where the target is finished."""
    targets = work.targets[work.starts[:-1]]
    flags = np.zeros(len(targets), np.int64)
    flags[np.unique(targets, return_index=True)[1]] = FIRST
    flags[::-1][np.unique(targets[::-1], return_index=True)[1]] |= LAST
    return flags


def _integer(n: int) -> str:
    return "uint8_t" if n <= 1 << 8 else "uint16_t" if n <= 1 << 16 else "uint32_t"


def _real(value: float) -> str:
    """The float32 number exactly, in hexadecimal."""
    return f"{float(np.float32(value)).hex()}f"


def _table(name: str, kind: str, values: Iterable[Any]) -> str:
    cells = [str(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)] or ["0"]
    if cells[0].startswith("{"):
        lines = [f"    {cell}," for cell in cells]
    else:
        lines = ["    " + ", ".join(cells[k : k + 12]) + "," for k in range(0, len(cells), 12)]
    return f"static const {kind} {name}[{len(cells)}] = {{\n" + "\n".join(lines) + "\n};"


def _assignments(table: str, rows: Ids, values: Iterable[Any]) -> str:
    return " ".join(f"{table}[{row}] = {value};" for row, value in zip(rows.tolist(), values, strict=True))


def _comment(text: str) -> str:
    """A name that may come from a file, without what would end a comment."""
    return re.sub(r"[^A-Za-z0-9 ._()+-]", "_", text)[:80]
