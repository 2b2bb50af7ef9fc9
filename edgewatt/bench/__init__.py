"""Real clocks: our inference beside the sparse and dense libraries, in one process."""
