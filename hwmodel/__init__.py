"""The machine: fast memory, line caches, encoders, bus, DRAM and energy, as array replay and as SimPy system."""
