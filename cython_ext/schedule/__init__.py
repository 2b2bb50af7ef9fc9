"""Operator schedules."""
