"""What all kernels share: the SIMD level."""
