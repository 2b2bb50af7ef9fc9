"""Operator graphs in the application."""
