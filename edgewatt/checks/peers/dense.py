"""Dense products of the same matrices, zeros included: NumPy's BLAS, PyTorch's and MKL's."""

from __future__ import annotations

import ctypes

import numpy as np

from edgewatt.checks.peer import PEERS, Float32, MatrixLayer, MissingPeer, Step
from edgewatt.checks.peers.mkl_csr import address, load_mkl
from edgewatt.checks.peers.torch_csr import finish, load_torch
from traces.base.errors import InputError

MOST_BYTES = 1 << 31
ROW_MAJOR, NO_TRANSPOSE = 101, 111


def dense_matrices(layers: list[MatrixLayer]) -> list[Float32]:
    """Return the layers' matrices with their zeros, where they fit 2 GiB."""
    if 4 * sum(layer.matrix.shape[0] * layer.matrix.shape[1] for layer in layers) > MOST_BYTES:
        raise MissingPeer("the dense matrices are larger than 2 GiB")
    return [np.ascontiguousarray(layer.matrix.toarray(), np.float32) for layer in layers]


@PEERS.register("dense-numpy", summary="NumPy matmul of the dense matrices")
def dense_numpy(layers: list[MatrixLayer], values: Float32) -> Step:
    """One product per layer, written to its place."""
    prepared = [(layer, m) for layer, m in zip(layers, dense_matrices(layers), strict=True)]

    def step() -> None:
        for layer, matrix in prepared:
            target = values[layer.targets]
            np.matmul(matrix, values[layer.sources], out=target)
            target += layer.bias
            layer.finish(target)

    return step


@PEERS.register("dense-torch", summary="torch.addmm of the dense matrices")
def dense_torch(layers: list[MatrixLayer], values: Float32) -> Step:
    """One product with its bias per layer, written to its place."""
    torch = load_torch()
    table = torch.from_numpy(values)
    prepared = [
        (layer, torch.from_numpy(m), table[layer.sources], table[layer.targets], torch.from_numpy(layer.bias))
        for layer, m in zip(layers, dense_matrices(layers), strict=True)
    ]

    def step() -> None:
        with torch.inference_mode():
            for layer, matrix, source, target, bias in prepared:
                torch.addmm(bias, matrix, source, out=target)
                finish(layer, target)

    return step


@PEERS.register("dense-mkl", summary="MKL cblas_sgemm of the dense matrices")
def dense_mkl(layers: list[MatrixLayer], values: Float32) -> Step:
    """One product per layer on top of the bias."""
    library = load_mkl()
    vectors = values.shape[1]
    if vectors > 2**31 - 1:
        raise InputError("too many input vectors for one product")
    one = ctypes.c_float(1.0)
    prepared = [
        (layer, m, address(m), address(values[layer.sources]), values[layer.targets], address(values[layer.targets]))
        for layer, m in zip(layers, dense_matrices(layers), strict=True)
    ]

    def step() -> None:
        for layer, matrix, place, source, target, out in prepared:
            np.copyto(target, layer.bias)
            rows, inner = matrix.shape
            library.cblas_sgemm(
                ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, rows, vectors, inner, one, place, inner, source, vectors, one,
                out, vectors,
            )  # fmt: skip
            layer.finish(target)

    return step
