"""Records and what is done with many of them: store, rows, tables, comparison."""
