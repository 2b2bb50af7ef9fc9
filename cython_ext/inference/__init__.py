"""Inference in the order of the work: kernels, threads, what the processor can do."""
