"""Residency-interval annealing."""
