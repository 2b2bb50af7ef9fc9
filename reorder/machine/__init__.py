"""Orders for a machine: what a search sees of it, a calibrated surrogate, and the search that a judge has the last word on."""
