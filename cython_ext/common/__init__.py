"""What all kernels share: the SIMD level, checks of arguments, and which entries make none."""

UNCHECKED = frozenset(
    {"connections.Annealer", "contents.LineData", "engine", "greedy.Ego", "residency.Residency",
     "runs.Passes", "runs.read_sums", "runs.write_bytes", "schedule.Costs", "streaming.Streaming"}
)  # fmt: skip
"""Kernels, or classes and functions of them, that follow ids, pointers or addresses as they are given: wrong ones read
and write outside arrays. Their callers in edgewatt check. All other public entries look at their arguments first and
raise ValueError."""
