"""Feinberg et al. 2020, Figures 8, 9, 10 and 14: energy, time and L1 traffic by stride, on a GPU with eight channels.

A stride costs no time if the GPU of papers.studies.gpu needs no longer than for the order given. Figure 8 adds the core
energy of the traffic behind the L2, so a slower stride pays for its time.

The pruned networks are not at hand, and their matrices are large: the first rows of layers of their shapes are taken.
Densities of AlexNet are those of its pruning (Han et al. 2015); Deep Compression leaves 32 values in a fully connected
layer (Han et al. 2016). Of the networks pruned gradually (half of MobileNet's weights, a fifth of ResNet's and the
LSTM's) and by Baidu's rule (a tenth) the paper prints no densities: ours are estimates, from 0.1 to 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix

import edgewatt as ew
from hwmodel.dram.energy import wire_constants_pj
from hwmodel.parts.part import Part
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.gpu import GpuSpec, gpu_time, simulate_gpu_spmv
from papers.studies.spmv import SpmvProblem, lay_out_spmv
from traces.formats import to_bits

Order = npt.NDArray[np.int64] | None

PART = "lpddr4-3733"
"""Table I's 59.7 GB/s are eight x16 channels of it."""
EFFORT = 0.1
"""Of the search for an order; 0.3 takes three times as long for 0.4 % fewer ones (synthetic fc7)."""
FORMATS = ("fp16", "int8")
STRIDES = (32, 64, 128, 256, 512)
LAYERS: dict[str, tuple[tuple[int, ...], float, int]] = {  # shape, density, shared values (0: none)
    "an_dc fc6": ((4096, 9216), 0.09, 32),
    "an_dc fc7": ((4096, 4096), 0.09, 32),
    "an_ip fc7": ((4096, 4096), 0.09, 0),
    "an_ip conv4": ((384, 192, 3, 3), 0.37, 0),
    "mn_agp pointwise": ((1024, 1024), 0.5, 0),
    "rn_agp conv": ((512, 4608), 0.2, 0),
    "vd_agp lstm": ((6000, 1500), 0.2, 0),
    "vd_bd encoder": ((33278, 1500), 0.1, 0),
}
ENCODERS = ("dbi-dc", "base-xor+dbi-dc", "base-xor-zdr+dbi-dc")


def convolution_matrix(weights: npt.ArrayLike, height: int, width: int) -> Any:
    """Return a convolution's weights float[Cout, Cin, R, S] as the matrix that direct sparse convolution stores.

    SciPy csr [Cout, Cin * height * width], height and width those of the padded image: the column is the offset of the
    weight's first input, c * height * width + r * width + s. Zero weights are not stored. Its tuples can be ordered.
    """
    kernel = np.asarray(weights, np.float32)
    outputs, inputs = kernel.shape[:2]
    row, channel, down, right = np.nonzero(kernel)
    start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=outputs))))
    offsets = (channel * height + down) * width + right
    return csr_array((kernel[np.nonzero(kernel)], offsets, start), shape=(outputs, inputs * height * width))


def lay_out_convolution(
    weights: npt.ArrayLike, image: npt.ArrayLike, *, stride: int = 1, padding: int = 0, **stored: Any
) -> SpmvProblem:
    """Lay out a direct sparse convolution: weights float[Cout, Cin, R, S], image float[Cin, H, W].

    The matrix is `convolution_matrix` of the padded image; output position (h, w) shifts its columns by
    (h * Wp + w) * stride. stored: as of lay_out_spmv; positions are an order of its tuples. y is [Cout, Hout, Wout].
    """
    kernel, picture = np.asarray(weights, np.float32), np.asarray(image, np.float32)
    padded = np.pad(picture, ((0, 0), (padding, padding), (padding, padding)))
    _, height, width = padded.shape
    rows, columns = (height - kernel.shape[2]) // stride + 1, (width - kernel.shape[3]) // stride + 1
    down, right = np.divmod(np.arange(rows * columns), columns)
    shifts = (down * width + right) * stride, np.arange(rows * columns), rows * columns
    return lay_out_spmv(convolution_matrix(kernel, height, width), padded.reshape(-1), shifts=shifts, **stored)


@dataclass(frozen=True, eq=False)
class StoredLayer:
    """A layer as the CSR matrix it is stored as; with weights (4-D) and image it is a convolution padded by one."""

    matrix: Any
    x: npt.NDArray[np.float32]
    share: float  # of the whole layer's rows, which read one and the same input
    weights: npt.NDArray[np.float32] | None = None

    def lay_out(self, order: Order, value_format: str) -> SpmvProblem:
        """Return the product as memory accesses, the tuples in a given order."""
        if self.weights is None:
            return lay_out_spmv(self.matrix, self.x, positions=order, value_format=value_format, vector_format="fp16")
        return lay_out_convolution(
            self.weights, self.x, positions=order, padding=1, value_format=value_format, vector_format="fp16"
        )

    def arrays(self, order: Order, value_format: str) -> Iterator[tuple[npt.NDArray[Any], str, float]]:
        """Yield everything that has to move once, with the direction it goes and how much of it is these rows'."""
        order = np.arange(self.matrix.nnz) if order is None else order
        problem = self.lay_out(None, value_format)
        y = np.stack([problem.products(p) for p in range(len(problem.x_shift))], axis=-1)
        yield to_bits(self.matrix.data, value_format)[0][order], "read", 1.0
        yield self.matrix.indices[order].astype(np.uint16), "read", 1.0
        yield self.matrix.indptr.astype(np.uint32), "read", 1.0
        yield problem.x.astype(np.float16), "read", self.share
        yield y.astype(np.float16), "write", 1.0


@cache
def layer(name: str, rows: int) -> StoredLayer:
    """Return the first rows (of a convolution: output channels) of a layer of LAYERS."""
    whole, density, shared = LAYERS[name]
    shape = (min(rows, whole[0]), *whole[1:])
    share = shape[0] / whole[0]
    dense = np.random.default_rng(7).normal(0, 0.01, shape).astype(np.float32)
    weights = dense * (np.abs(dense) > np.quantile(np.abs(dense), 1 - density))
    if shared:
        weights = _shared(weights, shared)
    if len(shape) == 4:
        return StoredLayer(convolution_matrix(weights, 15, 15), _activations(shape[1], 13, 13), share, weights)
    return StoredLayer(csr_matrix(weights), _activations(shape[1]), share)


def _activations(*shape: int) -> npt.NDArray[np.float32]:
    """Half zeros, as after a ReLU."""
    return np.maximum(np.random.default_rng(1).normal(0, 1, shape), 0).astype(np.float32)


def _shared(weights: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Leave so many values other than 0: the means of equally full bins."""
    kept = weights[weights != 0]
    edges = np.quantile(kept, np.linspace(0, 1, count + 1))
    place = np.clip(np.searchsorted(edges, kept, side="right") - 1, 0, count - 1)
    means = np.bincount(place, kept, count) / np.maximum(np.bincount(place, minlength=count), 1)
    result = np.zeros_like(weights)
    result[weights != 0] = means[place]
    return result


def ordered(matrix: Any, stride: int | str, value_format: str, **options: Any) -> Any:
    """Return the tuple order of a stride."""
    options = {"effort": EFFORT, **options}
    return ew.order_tuples(matrix, value_format=value_format, stride=stride, bound=False, **options)


def io_energy_pj(arrays: Iterable[tuple[npt.NDArray[Any], str, float]], encoder: str) -> float:
    """Return the energy of DQ and DBI when every array crosses the bus once."""
    part, total = ew.dram.load_part(PART), 0.0
    for array, way, share in arrays:
        flat = array.reshape(-1)
        sent = ew.encode(flat, encoder, element_bytes=flat.itemsize)
        for group, wires in (("dq", sent.wires.data), ("dbi", sent.wires.flag)):
            per_one, per_rise = wire_constants_pj(part, group, way, part.beat_ns)
            total += share * (per_one * int(wires.ones.sum()) + per_rise * int(wires.rising.sum()))
    return total


def ones_of(matrix: Any, order: npt.NDArray[np.int64], value_format: str) -> dict[str, int]:
    """Return the ones of values and ids together, by encoder chain."""
    pair = (to_bits(matrix.data, value_format)[0], matrix.indices.astype(np.uint16))
    return {e: sum(ew.encode(a[order], e, element_bytes=a.itemsize).ones for a in pair) for e in ENCODERS[:2]}


@cache
def eight_channels() -> Part:
    """Return the paper's memory: eight x16 channels, interleaved by bursts."""
    part: Part = ew.dram.load_part(PART)
    organisation = replace(part.organisation, channels=8)
    return replace(part, organisation=organisation, address_map="offset:5 channel:3 column:6 bank:3 row:16")


GIVEN = "as given"
ROWS, FEW = 32, 8
WITHIN: tuple[int | str, ...] = (*STRIDES, "row")
NAMES = {"dbi": ENCODERS[0], "base-xor": ENCODERS[1], "base-xor, zeros remapped": ENCODERS[2]}


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a layer and format; `full`: three times the effort and eight times the rows."""
    effort = {"effort": 3 * EFFORT if full else EFFORT}
    rows = {name: (FEW if "conv4" in name else ROWS) * (8 if full else 1) for name in LAYERS}
    return [{"layer": name, "format": f, "rows": n, **effort} for name, n in rows.items() for f in FORMATS]


def compute(job: Job) -> dict[str, Any]:
    """Play the layer in the order given and reordered within each stride."""
    played, value_format = layer(job["layer"], job["rows"]), job["format"]
    by_stride: dict[str, Any] = {}
    for stride in (GIVEN, *WITHIN):
        order = None
        if stride != GIVEN:
            order = ordered(played.matrix, stride, value_format, effort=job["effort"]).positions
        result = simulate_gpu_spmv(played.lay_out(order, value_format), GpuSpec())
        timed = gpu_time(result, GpuSpec(), eight_channels())
        arrays = list(played.arrays(order, value_format))
        wires = {name: io_energy_pj(arrays, encoder) for name, encoder in NAMES.items()}
        by_stride[str(stride)] = {
            "time_ns": timed.time_ns, "l1_accesses": int(result.l1_accesses.sum()),
            "l1_misses": int(result.misses_by_stream.sum()), "io_pj": wires, "rest_pj": timed.dram.core_energy_pj,
        }  # fmt: skip
    return by_stride


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row a stride: per cent against the order given, energies against DBI's and against Base+XOR's."""
    given, found = result[GIVEN], []
    for stride in WITHIN:
        now = result[str(stride)]
        row: Row = {**job, "stride": str(stride)}
        for name, key in (("time", "time_ns"), ("L1 accesses", "l1_accesses"), ("L1 misses", "l1_misses")):
            row[name] = 100 * (now[key] / given[key] - 1)
        after = now["io_pj"]["base-xor"]
        for name in ("dbi", "base-xor"):
            before = given["io_pj"][name]
            row[f"IO, {name}"] = 100 * (1 - after / before)
            row[f"DRAM, {name}"] = 100 * (1 - (after + now["rest_pj"]) / (before + given["rest_pj"]))
            row[f"wires, {name}"] = 100 * before / (before + given["rest_pj"])
        found.append(row)
    free = [row for row in found if row["time"] <= 0 and row["stride"] != "row"]
    best = max(free, key=lambda row: row["IO, base-xor"], default=None)
    return [{**row, "free": row is best} for row in found]


def _bars(number: str, what: str) -> Chart:
    y = (f"{what}, dbi", f"{what}, base-xor")
    return Chart(number, "layer", y, f"% of {what} energy saved", panel="format",
                 where={"free": True}, bars=True)  # fmt: skip


def _lines(number: str, y: str) -> Chart:
    return Chart(number, "stride", (y,), f"{y}, % over the order given", series="layer", panel="format")


FIGURES = [
    Figure(
        "cdr-strides", "feinberg-2020", "8, 9, 10, 14",
        "Figures 8, 9, 10 and 14: energy, time and L1 traffic by stride",
        "Layers in the shapes and densities of Table II with Gaussian values; eight x16 channels of LPDDR4-3733 (59.7 "
        "GB/s, Table I). Every array crosses the bus once in Figure 9, of the input the rows' share; Figure 8 adds the "
        "core energy of the simulated traffic. Wires end in VSSQ, and rising edges cost energy. The GPU model has no "
        "latency hiding; at stride 32 no order can cost time, so a stride of 32 that costs none is vacuous.",
        jobs, compute, rows,
        (_bars("8", "DRAM"), _bars("9", "IO"), _lines("10", "time"), _lines("14", "L1 accesses"),
         Table("By stride, %", ("layer", "format", "stride"),
               ("time", "L1 accesses", "L1 misses", "IO, dbi", "IO, base-xor", "DRAM, dbi", "DRAM, base-xor"))),
        (1.2, 30), version=3,
    )
]  # fmt: skip
