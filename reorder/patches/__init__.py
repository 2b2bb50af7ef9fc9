"""Patch-wise execution of convolution chains: less peak memory for multiplications done again."""
