"""SciPy's compressed sparse rows."""

from __future__ import annotations

from edgewatt.checks.peer import PEERS, Float32, MatrixLayer, Step


@PEERS.register("scipy", summary="SciPy csr_array @ values, bias and activation by NumPy in place")
def scipy_csr(layers: list[MatrixLayer], values: Float32) -> Step:
    """One product per layer; SciPy returns a new array, which is copied to its place with the bias."""
    import numpy as np

    def step() -> None:
        for layer in layers:
            result = values[layer.targets]
            np.add(layer.matrix @ values[layer.sources], layer.bias, out=result)
            layer.finish(result)

    return step
