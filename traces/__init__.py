"""The work: networks, operator graphs, number formats, memory layouts and the access traces they give."""

# `traces` is also the name of an unrelated distribution; edgewatt checks this marker at start-up (edgewatt.doctor).
__edgewatt__ = True
