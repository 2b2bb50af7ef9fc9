"""Numbers of the Sparse DNN Graph Challenge."""

# Bias of every neuron by layer width, from the challenge's public reference program (reference/radixnet/README.md).
BIASES = {1024: -0.3, 4096: -0.35, 16384: -0.4, 65536: -0.45}
_OTHER_BIAS = -0.3


def default_bias(width: int) -> float:
    """Return the challenge's bias for a layer width; -0.3 for widths it does not have."""
    return BIASES.get(width, _OTHER_BIAS)
