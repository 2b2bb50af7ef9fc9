"""What all kernels share: the SIMD level, checks of arguments, and which entries make none."""

UNCHECKED = frozenset(
    {
        "blocks", "connections.Annealer", "contents.LineData", "counts.count_many", "encode", "geometry",
        "greedy.go_ranks", "places", "probe", "residency.Residency", "runs.read_sums", "runs.write_bytes",
        "streams", "topological.components", "topological.least_live",
    }
)  # fmt: skip
"""Kernels, or classes and functions of them, that follow ids and pointers as they are given: wrong ones read and write
outside arrays. Their callers in edgewatt check. All other public entries look at their arguments first and raise
ValueError."""
