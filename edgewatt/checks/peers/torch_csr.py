"""PyTorch's sparse CSR tensors on the CPU."""

from __future__ import annotations

from edgewatt.checks.peer import CLIP, PEERS, Float32, MatrixLayer, MissingPeer, Step
from traces.base.errors import install_command


@PEERS.register("torch", summary="torch.sparse_csr_tensor @ values, bias and activation in place")
def torch_csr(layers: list[MatrixLayer], values: Float32) -> Step:
    import warnings

    try:
        import torch
    except ImportError:
        raise MissingPeer(f"PyTorch is not installed: {install_command('bench')}") from None
    torch.set_num_threads(1)
    table = torch.from_numpy(values)
    prepared = []
    for layer in layers:
        m = layer.matrix
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # sparse CSR is said to be in beta
            matrix = torch.sparse_csr_tensor(
                torch.from_numpy(m.indptr), torch.from_numpy(m.indices), torch.from_numpy(m.data), m.shape
            )
        prepared.append((layer, matrix, table[layer.sources], table[layer.targets], torch.from_numpy(layer.bias)))

    def step() -> None:
        with torch.inference_mode():
            for layer, matrix, source, target, bias in prepared:
                torch.mm(matrix, source, out=target)
                target.add_(bias)
                if layer.activation != "identity":
                    target.clamp_(0, CLIP if layer.activation == "clip" else None)

    return step
