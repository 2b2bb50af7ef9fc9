"""Memory traces: accesses with their bytes, and how an order of work becomes one."""
