"""The papers' figures as sweeps, and their printed claims beside what we measure (scripts/papers/figures)."""

from papers.claims import paper_figures
from papers.page import paper_page
from papers.reproduction import reproduce

__all__ = ["paper_figures", "paper_page", "reproduce"]
