"""What `edgewatt dram`, `part`, `cache` and `accelerator` report."""
