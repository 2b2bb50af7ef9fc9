"""Runs of accelerator simulators as memory traffic with the true bytes of each word, one module per tool."""
