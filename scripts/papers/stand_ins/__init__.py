"""Layers and graphs that stand for those of papers whose own are not at hand; several studies share them."""
