"""Orders for a machine: what a search sees of it, a calibrated surrogate, and a search that ends with a judge."""
