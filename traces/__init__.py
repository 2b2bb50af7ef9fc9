"""The work: networks, operator graphs, number formats, memory layouts and the access traces they give."""

# `traces` is also the name of an unrelated distribution: edgewatt.installation looks for this line before any import.
__edgewatt__ = True
