"""NumPy's dense product of the same matrices, zeros included, and SciPy's compressed sparse rows."""

from __future__ import annotations

import numpy as np

from edgewatt.checks.peer import PEERS, Float32, MatrixLayer, MissingPeer, Step

MOST_BYTES = 1 << 31


@PEERS.register("dense-numpy", summary="NumPy matmul of the dense matrices")
def dense_numpy(layers: list[MatrixLayer], values: Float32) -> Step:
    if 4 * sum(layer.matrix.shape[0] * layer.matrix.shape[1] for layer in layers) > MOST_BYTES:
        raise MissingPeer("the dense matrices are larger than 2 GiB")
    prepared = [(layer, np.ascontiguousarray(layer.matrix.toarray(), np.float32)) for layer in layers]

    def step() -> None:
        for layer, matrix in prepared:
            target = values[layer.targets]
            np.matmul(matrix, values[layer.sources], out=target)
            target += layer.bias
            layer.finish(target)

    return step


@PEERS.register("scipy", summary="SciPy csr_array @ values, bias and activation by NumPy in place")
def scipy_csr(layers: list[MatrixLayer], values: Float32) -> Step:
    def step() -> None:
        for layer in layers:
            result = values[layer.targets]
            np.add(layer.matrix @ values[layer.sources], layer.bias, out=result)
            layer.finish(result)

    return step
