"""The commands of a DRAM, in the order of the compiled engine (cython_ext/dram/state.h)."""

COMMANDS = (
    "ACT", "RD", "WR", "RDA", "WRA", "PRE", "PREA", "REFab", "REFpb", "PDE", "PDX",
    "MWR",  # masked write
    "RFM",  # refresh management: the DRAM refreshes the neighbours of often activated rows
    "CAS",  # starts the data clock (LPDDR5 and later)
    "SRE", "SRX",  # self-refresh entry and exit
    "REF2b",  # refresh of two banks, only in command tables
    "ACT2",  # the second half of an activate, where it is a command of its own (tAAD)
)  # fmt: skip
