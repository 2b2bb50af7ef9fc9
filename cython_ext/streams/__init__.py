"""The stream of runs that an inference works through: where values lie, which runs go in pairs, its tables."""
