"""Operator schedules: which order of the operators needs the least memory or traffic (Ahn et al. 2020)."""
