"""A corpus of ordering problems with best known I/Os, proved floors and a checker in plain Python."""
