"""The layers that stand for those of Feinberg et al. 2020: shipped, synthetic in their shape, of the reference data.

The paper's pruned networks are not at hand. Synthetic fc7: rows of AlexNet's fc7 (4096 columns at 9 %), plain and with
32 shared values as Deep Compression leaves them. Synthetic conv4: half an AlexNet conv4 (192 x 192 x 3 x 3 at 37 % on
13 x 13) as direct sparse convolution, a product per output position.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import edgewatt as ew
from hwmodel.dram.energy import wire_constants_pj
from hwmodel.parts.part import Part
from reorder.tuples.files import read_matrix
from traces.base.resources import config_root
from traces.formats import to_bits
from traces.trace.spmv import SpmvProblem, lay_out_spmv

Order = npt.NDArray[np.int64] | None

PART = "lpddr4-3733"
"""Table I's 59.7 GB/s are eight x16 channels of it."""
EFFORT = 0.1
"""Of the search for an order; 0.3 takes three times as long for 0.4 % fewer ones (synthetic fc7)."""
FORMATS = ("fp16", "int8")
STRIDES = (32, 64, 128, 256, 512)
CHANNELS = 48  # of a convolution's 192 output channels, in the default selection
PLAYED_CHANNELS = 16  # of these, those that the GPU model plays in the default selection
REFERENCE = ("ad01_dense0_d10", "resnet8_conv7_d20")
ENCODERS = ("dbi-dc", "base-xor+dbi-dc", "base-xor-zdr+dbi-dc")


def convolution_matrix(weights: npt.ArrayLike, height: int, width: int) -> Any:
    """Return a convolution's weights float[Cout, Cin, R, S] as the matrix that direct sparse convolution stores.

    SciPy csr [Cout, Cin * height * width], height and width those of the padded image: the column is the offset of the
    weight's first input, c * height * width + r * width + s. Zero weights are not stored. Its tuples can be ordered.
    """
    from scipy.sparse import csr_array

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
    weights: npt.NDArray[np.float32] | None = None

    def lay_out(self, order: Order, value_format: str) -> SpmvProblem:
        """Return the product as memory accesses, the tuples in a given order."""
        if self.weights is None:
            return lay_out_spmv(self.matrix, self.x, positions=order, value_format=value_format, vector_format="fp16")
        return lay_out_convolution(
            self.weights, self.x, positions=order, padding=1, value_format=value_format, vector_format="fp16"
        )

    def first(self, channels: int | None) -> StoredLayer:
        """Return the first output channels of a convolution; all of any other layer, or without a number."""
        if self.weights is None or channels is None:
            return self
        return StoredLayer(self.matrix[:channels], self.x, self.weights[:channels])

    def arrays(self, order: Order, value_format: str) -> Iterator[tuple[npt.NDArray[Any], str]]:
        """Yield everything that has to move once, with the direction it goes."""
        order = np.arange(self.matrix.nnz) if order is None else order
        problem = self.lay_out(None, value_format)
        y = np.stack([problem.products(p) for p in range(len(problem.x_shift))], axis=-1)
        yield to_bits(self.matrix.data, value_format)[0][order], "read"
        yield self.matrix.indices[order].astype(np.uint16), "read"
        yield self.matrix.indptr.astype(np.uint32), "read"
        yield problem.x.astype(np.float16), "read"
        yield y.astype(np.float16), "write"


def names(full: bool) -> list[str]:
    """Return the layers that can be had here; with `full` the wide example, which is like the small one, too."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    available = [name for name in REFERENCE if folder and (Path(folder) / "cdr" / f"{name}.npz").is_file()]
    return [
        "synthetic fc7",
        "synthetic fc7, shared",
        "digits_small",
        *(["digits_wide"] if full else []),
        *available,
        "synthetic conv4",
    ]


@cache
def layer(name: str) -> StoredLayer:
    """Return a layer of `names`."""
    if name == "synthetic conv4":
        kernel = _pruned((192, 192, 3, 3), 0.37)
        return StoredLayer(convolution_matrix(kernel, 15, 15), _activations(192, 13, 13), kernel)
    matrix = _matrix(name)
    return StoredLayer(matrix, _activations(matrix.shape[1]))


def _matrix(name: str) -> Any:
    import scipy.sparse as sp

    if name == "synthetic fc7":
        return sp.csr_matrix(_pruned((64, 4096), 0.09))
    if name == "synthetic fc7, shared":
        return _shared(_matrix("synthetic fc7"))
    if name in REFERENCE:
        return read_matrix(Path(os.environ["EDGEWATT_REFERENCE"]) / "cdr" / f"{name}.npz")
    network = ew.load(config_root() / "examples" / "networks" / f"{name}.npz")
    here = np.flatnonzero(network.layer == 1)  # the hidden layer
    rows, columns = network.targets[here], network.sources[here]
    shape = (int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1)
    return sp.csr_matrix((network.weights[here], (rows - rows.min(), columns - columns.min())), shape=shape)


def _pruned(shape: tuple[int, ...], density: float) -> npt.NDArray[np.float32]:
    dense = np.random.default_rng(7).normal(0, 0.01, shape).astype(np.float32)
    pruned: npt.NDArray[np.float32] = dense * (np.abs(dense) > np.quantile(np.abs(dense), 1 - density))
    return pruned


def _activations(*shape: int) -> npt.NDArray[np.float32]:
    """Half zeros, as after a ReLU."""
    return np.maximum(np.random.default_rng(1).normal(0, 1, shape), 0).astype(np.float32)


def _shared(matrix: Any) -> Any:
    """Leave 32 values: the means of equally full bins."""
    import scipy.sparse as sp

    edges = np.quantile(matrix.data, np.linspace(0, 1, 33))
    place = np.clip(np.searchsorted(edges, matrix.data, side="right") - 1, 0, 31)
    means = np.bincount(place, matrix.data, 32) / np.maximum(np.bincount(place, minlength=32), 1)
    return sp.csr_matrix((means[place].astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def ordered(matrix: Any, stride: int | str, value_format: str, **options: Any) -> Any:
    """Return the tuple order of a stride."""
    options = {"effort": EFFORT, **options}
    return ew.order_tuples(matrix, value_format=value_format, stride=stride, bound=False, **options)


def io_energy_pj(arrays: Iterable[tuple[npt.NDArray[Any], str]], encoder: str) -> float:
    """Return the energy of DQ and DBI when every array crosses the bus once."""
    part, total = ew.load_part(PART), 0.0
    for array, way in arrays:
        flat = array.reshape(-1)
        sent = ew.encode(flat, encoder, element_bytes=flat.itemsize)
        for group, wires in (("dq", sent.wires.data), ("dbi", sent.wires.flag)):
            per_one, per_rise = wire_constants_pj(part, group, way, part.beat_ns)
            total += per_one * int(wires.ones.sum()) + per_rise * int(wires.rising.sum())
    return total


def ones_of(matrix: Any, order: npt.NDArray[np.int64], value_format: str) -> dict[str, int]:
    """Return the ones of values and ids together, by encoder chain."""
    pair = (to_bits(matrix.data, value_format)[0], matrix.indices.astype(np.uint16))
    return {e: sum(ew.encode(a[order], e, element_bytes=a.itemsize).ones for a in pair) for e in ENCODERS[:2]}


@cache
def eight_channels() -> Part:
    """Return the paper's memory: eight x16 channels, interleaved by bursts."""
    part: Part = ew.load_part(PART)
    organisation = replace(part.organisation, channels=8)
    return replace(part, organisation=organisation, address_map="offset:5 channel:3 column:6 bank:3 row:16")


def change(after: float, before: float) -> str:
    """Return a change in per cent."""
    return f"{100 * after / before - 100:+.1f} %"
