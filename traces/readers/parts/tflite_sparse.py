"""Sparse constants of TensorFlow Lite: each dimension, and each dimension of a block, is dense or a list of indices.

The format is that of the Tensor Algebra Compiler (Kjolstad et al., OOPSLA 2017), as schema.fbs of TensorFlow Lite
describes it: dimensions are nested in `traversal_order`; numbers from the rank on are dimensions of a block, of the
original dimensions that `block_map` lists.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.memory import claim
from traces.base.sparse import row_pointers

SPARSE = 1  # format of a dimension
MOST_DIMENSIONS = 64  # of an array of NumPy
_LISTS = {1: ("Int32Vector", 4), 2: ("Uint16Vector", 2), 3: ("Uint8Vector", 1)}


def dense(reader: Any, sparsity: Any, values: npt.NDArray[Any], shape: tuple[int, ...], at: str) -> npt.NDArray[Any]:
    """Return the constant with its zeros. reader: has `fail`, `claim`, `numbers`, `children` and `schema`."""
    order, blocks = reader.numbers(sparsity, "TraversalOrder"), reader.numbers(sparsity, "BlockMap")
    levels, rank, size = reader.children(sparsity, "DimMetadata"), len(shape), math.prod(shape)
    fits = len(levels) == len(order) <= MOST_DIMENSIONS and sorted(order) == list(range(rank + len(blocks)))
    if not fits or any(not 0 <= b < rank for b in blocks):
        raise reader.fail(f"{at}: its sparse dimensions do not fit its shape {list(shape)}: damaged")
    reader.claim(values.itemsize * size)
    claim((values.itemsize + 8 * (len(order) + 2)) * size, str(reader.path), at)
    node, coordinates = np.zeros(1, np.int64), np.zeros((len(order), 1), np.int64)
    sides = [0] * len(order)
    for k, level in enumerate(levels):
        if int(level.Format()) == SPARSE:
            segments, indices = (_list(reader, level, name, at) for name in ("ArraySegments", "ArrayIndices"))
            row_pointers(segments, len(node), len(indices), f"{reader.path}: {at}: the segments of its dimension {k}")
            if len(indices) > size:
                raise reader.fail(f"{at}: {len(indices)} positions in its dimension {k}, its shape has {size}: damaged")
            parent = np.repeat(np.arange(len(node)), np.diff(segments))
            child, node = indices, np.arange(len(indices))
            sides[k] = int(indices.max(initial=-1)) + 1
        else:
            sides[k] = int(level.DenseSize())
            if sides[k] < 1 or len(node) * sides[k] > size:
                raise reader.fail(f"{at}: its dimension {k} of {sides[k]} does not fit its shape: damaged")
            parent, child = np.divmod(np.arange(len(node) * sides[k]), sides[k])
            node = node[parent] * sides[k] + child
        coordinates = coordinates[:, parent]
        coordinates[k] = child
    if len(node) != len(values):
        raise reader.fail(f"{at}: {len(values)} values for {len(node)} positions: damaged")
    where = {dimension: k for k, dimension in enumerate(order)}
    index = [coordinates[where[d]] for d in range(rank)]
    for j, d in enumerate(blocks):
        inner = where[rank + j]
        if int(levels[inner].Format()) == SPARSE:
            raise reader.fail(f"{at}: sparse blocks are not read: store it densely")
        index[d] = index[d] * sides[inner] + coordinates[inner]
    if any(((i < 0) | (i >= side)).any() for i, side in zip(index, shape, strict=True)):
        raise reader.fail(f"{at}: an index lies outside its shape {list(shape)}: damaged")
    result = np.zeros(shape, values.dtype)
    result[tuple(index)] = values
    result.setflags(write=False)
    return result


def _list(reader: Any, level: Any, name: str, at: str) -> npt.NDArray[np.int64]:
    kind, table = int(getattr(level, f"{name}Type")()), getattr(level, name)()
    if kind not in _LISTS or table is None:
        raise reader.fail(f"{at}: a sparse dimension without its lists: damaged")
    vector, width = _LISTS[kind]
    numbers = getattr(reader.schema, vector)()
    numbers.Init(table.Bytes, table.Pos)
    return np.array(reader.numbers(numbers, "Values", width), np.int64)
