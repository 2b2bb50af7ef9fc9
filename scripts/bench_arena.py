"""CPU time of arena placement at a capacity, beside MiniMalloc where its program is given (files alternate).

python scripts/bench_arena.py FOLDER [--minimalloc PROGRAM] [--capacity 1048576] [--rounds 1]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.files import read_buffers


def main() -> None:
    """Print one line per file and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minimalloc", type=Path)
    parser.add_argument("--capacity", type=int, default=1_048_576)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    totals = [0.0, 0.0]
    for file in sorted(given.folder.glob("*.csv")):
        buffers = read_buffers(file).buffers
        best = [float("inf"), float("inf")]
        for _ in range(given.rounds):
            started = time.process_time()
            arena = allocate(buffers.lower, buffers.upper, buffers.size, capacity=given.capacity)
            best[0] = min(best[0], time.process_time() - started)
            if given.minimalloc:
                best[1] = min(best[1], minimalloc(given.minimalloc, file, given.capacity))
        totals = [total + one for total, one in zip(totals, best, strict=True)]
        fits = "fits" if arena.height <= given.capacity else f"{arena.height} bytes"
        print(f"{file.name}: {buffers.count} buffers, {fits}, {best[0]:.2f} s, MiniMalloc {best[1]:.2f} s", flush=True)
    print(f"total {totals[0]:.2f} s, MiniMalloc {totals[1]:.2f} s")


def minimalloc(program: Path, file: Path, capacity: int) -> float:
    """Return the user CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with tempfile.NamedTemporaryFile() as out:
        command = [program, f"--capacity={capacity}", f"--input={file}", f"--output={out.name}"]
        subprocess.run(command, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
