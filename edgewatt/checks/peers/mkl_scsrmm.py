"""Intel MKL's mkl_scsrmm, the CSRMM of Gleinig et al. 2023: column-major, one-based, no handle; until MKL 2023."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from edgewatt.checks.peer import PEERS, Float32, MatrixLayer, MissingPeer, Step
from edgewatt.checks.peers.mkl_csr import address, load_mkl


@PEERS.register("mkl-scsrmm", summary="MKL mkl_scsrmm of the old sparse BLAS (mkl==2021.3.0), column-major, one-based")
def mkl_scsrmm(layers: list[MatrixLayer], values: Float32) -> Step:
    """sums = matrix @ values + bias in one call (beta 1, sums filled with the bias), activation by NumPy in place."""
    library = load_mkl()
    if not hasattr(library, "mkl_scsrmm"):
        raise MissingPeer("this MKL has no mkl_scsrmm any more: pip install mkl==2021.3.0")
    vectors = values.shape[1]
    table = np.asfortranarray(values)
    one, general = ctypes.c_float(1.0), ctypes.create_string_buffer(b"GLNF  ")  # F: one-based, so column-major
    prepared: list[Any] = []
    for layer in layers:
        m = layer.matrix
        arrays = [np.ascontiguousarray(a + 1, np.int32) for a in (m.indices, m.indptr[:-1], m.indptr[1:])]
        sizes = [ctypes.byref(ctypes.c_int(size)) for size in (m.shape[0], vectors, m.shape[1], len(table))]
        source, target = table[layer.sources], table[layer.targets]
        prepared.append((layer, arrays, sizes, list(map(address, (m.data, *arrays, source, target))), target))
    pending = [True]

    def step() -> None:
        for layer, _, (rows, columns, inner, leading), (data, index, begin, end, source, place), target in prepared:
            np.copyto(target, layer.bias)
            library.mkl_scsrmm(
                b"N", rows, columns, inner, ctypes.byref(one), general, data, index, begin, end, source, leading,
                ctypes.byref(one), place, leading,
            )  # fmt: skip
            layer.finish(target)
        if pending:  # the first result, which is checked, goes to the caller's table, which lies the other way
            pending.clear()
            np.copyto(values, table)

    return step
