"""The report: one self-contained page about a results folder, and the same charts as figures for a paper."""

from edgewatt.pages.report import report

__all__ = ["report"]
