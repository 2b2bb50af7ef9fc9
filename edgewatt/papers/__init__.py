"""The papers' figures as sweeps, and their printed claims beside what we measure (configs/papers)."""

from edgewatt.papers.claims import paper_figures
from edgewatt.papers.page import paper_page
from edgewatt.papers.reproduction import reproduce

__all__ = ["paper_figures", "paper_page", "reproduce"]
