"""Execution on the processor at hand: inference in a given order, what it costs, and a model that predicts it."""
