"""Intel MKL: inspector-executor sparse products, handles made and optimised outside the clock; and mkl_scsrmm, the
CSRMM of Gleinig et al. 2023: column-major, one-based, no handle; until MKL 2023."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.checks.peer import PEERS, Float32, MatrixLayer, MissingPeer, Step
from traces.base.errors import install_command

NON_TRANSPOSE, GENERAL, ROW_MAJOR, EXPECTED_CALLS = 10, 20, 101, 100_000
SEQUENTIAL = 1


class Description(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]


def load_mkl() -> Any:
    libraries = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")) + sorted(
        Path(sys.prefix, "Library", "bin").glob("mkl_rt*.dll")
    )
    for base in [Path(p) for p in sys.path if p.endswith("site-packages")]:
        libraries += sorted(base.parent.parent.glob("libmkl_rt.so*"))
    if not libraries:
        raise MissingPeer(f"MKL is not installed: {install_command('bench')}")
    try:
        library = ctypes.CDLL(str(libraries[-1].resolve()))
    except OSError as error:
        raise MissingPeer(f"MKL does not load on this machine: {error}") from None
    if "MKL_THREADING_LAYER" not in os.environ:
        library.MKL_Set_Threading_Layer(SEQUENTIAL)
    return library


def checked(status: int, what: str) -> None:
    if status != 0:
        raise MissingPeer(f"MKL refused {what} with status {status}")


def address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@PEERS.register("mkl", summary="MKL mkl_sparse_s_mm (s_mv for one vector), inspector-executor handles made once")
def mkl_csr(layers: list[MatrixLayer], values: Float32) -> Step:
    library = load_mkl()
    vectors = values.shape[1]
    description = Description(GENERAL, 40, 50)
    one = ctypes.c_float(1.0)
    prepared = []
    for layer in layers:
        m = layer.matrix
        arrays = [np.ascontiguousarray(a, np.int32) for a in (m.indptr[:-1], m.indptr[1:], m.indices)]
        handle = ctypes.c_void_p()
        checked(
            library.mkl_sparse_s_create_csr(
                ctypes.byref(handle), 0, m.shape[0], m.shape[1], *map(address, arrays), address(m.data)
            ),
            "a matrix",
        )
        if vectors == 1:
            library.mkl_sparse_set_mv_hint(handle, NON_TRANSPOSE, description, EXPECTED_CALLS)
        else:
            library.mkl_sparse_set_mm_hint(handle, NON_TRANSPOSE, description, ROW_MAJOR, vectors, EXPECTED_CALLS)
        checked(library.mkl_sparse_optimize(handle), "to optimise a matrix")
        source, target = values[layer.sources], values[layer.targets]
        prepared.append((layer, handle, arrays, address(source), target, address(target)))

    def step() -> None:
        for layer, handle, _, source, target, sums in prepared:
            np.copyto(target, layer.bias)
            if vectors == 1:
                library.mkl_sparse_s_mv(NON_TRANSPOSE, one, handle, description, source, one, sums)
            else:
                library.mkl_sparse_s_mm(
                    NON_TRANSPOSE, one, handle, description, ROW_MAJOR, source, vectors, vectors, one, sums, vectors
                )
            layer.finish(target)

    return step


@PEERS.register("mkl-scsrmm", summary="MKL mkl_scsrmm of the old sparse BLAS (mkl==2021.3.0), column-major, one-based")
def mkl_scsrmm(layers: list[MatrixLayer], values: Float32) -> Step:
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
        for layer, _, (rows, columns, inner, leading), (data, index, begin, end, source, sums), target in prepared:
            np.copyto(target, layer.bias)
            library.mkl_scsrmm(
                b"N", rows, columns, inner, ctypes.byref(one), general, data, index, begin, end, source, leading,
                ctypes.byref(one), sums, leading,
            )  # fmt: skip
            layer.finish(target)
        if pending:  # the first result, which is checked, goes to the caller's table, which lies the other way
            pending.clear()
            np.copyto(values, table)

    return step
