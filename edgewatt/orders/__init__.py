"""Orders of work and of tuples beside each other: what `edgewatt order` and `edgewatt order-tuples` report."""
