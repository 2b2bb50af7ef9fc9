"""Damage to configurations: each is refused with file, line and column, or runs; nothing crashes, hangs or eats memory.

python -m fuzz.configurations 5000 [FIRST]        (from tests/)

A configuration may ask for as much work as it likes (4 x 10^9 steps of a search): then it says how far it is, and ends
when it is told to. A run that reports is stopped after some seconds, as Ctrl-C does it; one that is silent for 20 s of
computing hangs.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import edgewatt as ew
from traces.base.errors import EdgewattError

SILENT_S, ENOUGH_S, MEMORY_BYTES = 20, 4, 2 << 30
WORDS = [
    "null", "true", "-1", "0", "1e308", "1e999", ".inf", ".nan", '"8"', "[]", "{}", "[[]]", "yes", "~", "<script>",
    "../../etc/passwd", "*x", "!!python/name:os.system", "2000000000000000000000", "'", '"', "{", "}", "[", "]", ":",
    "-", "|", ">", "#", "%", "@", "`", "?", "\t", "\u202eabc", "\x00", "\x07", "\ufeff", "9" * 400, "a: b", "? x",
    "&a [*a]",
]  # fmt: skip
NUMBERS = ["1", "2", "3", "7", "1000", "65536", "4294967296", "9223372036854775807", "0.5", "1e-9", "\u00b2", "8 KiB"]


def delete_line(lines: list[str], pick: random.Random) -> None:
    del lines[pick.randrange(len(lines))]


def repeat_line(lines: list[str], pick: random.Random) -> None:
    lines.insert(pick.randrange(len(lines) + 1), pick.choice(lines))


def change_word(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    words = re.findall(r"[\w.+-]+", lines[at]) or [""]
    lines[at] = lines[at].replace(pick.choice(words), pick.choice(WORDS), 1)


def change_number(lines: list[str], pick: random.Random) -> None:
    """Put another number where one stands: it is more often taken, and run."""
    at = pick.randrange(len(lines))
    if numbers := list(re.finditer(r"(?<![\w.])[0-9.]+(?![\w.])", lines[at])):
        start, stop = pick.choice(numbers).span()
        lines[at] = lines[at][:start] + pick.choice(NUMBERS) + lines[at][stop:]


def misspell(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    if lines[at]:
        place = pick.randrange(len(lines[at]))
        lines[at] = lines[at][:place] + pick.choice("abcxyz:-{}[]\"' ,&*") + lines[at][place + pick.randrange(2) :]


def cut(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    lines[at:] = [lines[at][: pick.randrange(len(lines[at]) + 1)]]


def indent(lines: list[str], pick: random.Random) -> None:
    at = pick.randrange(len(lines))
    lines[at] = " " * pick.randrange(4) + lines[at].lstrip()


Mutation = Callable[[list[str], random.Random], None]
MUTATIONS: list[Mutation] = [delete_line, repeat_line, change_word, change_word, misspell, misspell, cut, indent]

# Small enough to run in a tenth of a second, with every section between them.
BASES = {
    "run": """name: small
network:
  generate: {kind: random-layered, n_layers: 2, width: 6, density: 0.5, seed: 1}
  prune: {density: 0.5, scope: layer}
orderings: [two-optimal, {kind: connection-reordering, iterations: 50, time_limit_s: 1}]
strides: [none, {kind: sort, stride: 4}]
formats: [bf16, int8]
fast_memory: {size: 5, policy: lru, pinning: literal, curve: [4, 8]}
layout: {kind: auto, id_bits: 16}
caches:
  - {size_bytes: 256, line_bytes: 32, ways: 2, policy: lru}
  - {size_bytes: 1024, line_bytes: 64, ways: 4, policy: fifo, write: through}
encoder: dbi-ac
dram:
  part: lpddr4-3200
seed: 3
""",
    "system": """network: {generate: {kind: uniform-layers, widths: [6, 8, 4], density: 0.5}}
system: edge
encoder: base-xor+dbi-dc
layout: {kind: auto, lanes: 2}
sample: 1
timing: system
dram: {part: lpddr4-3200, controller: {page_policy: closed}}
engine: {outstanding_misses: 4, accesses_per_ns: 0.5}
""",
    "scratchpad": """network: {generate: {kind: random-layered, n_layers: 2, width: 6, density: 0.5}}
scratchpad: {size_bytes: 4096, policy: min, stream_bytes: 1024}
technology: lop-45nm
formats: [fp16]
encoder: dbi-dc
dram: {part: ddr4-3200-x8}
""",
    "sweep": """base:
  network: {generate: {kind: random-layered, n_layers: 2, width: 6, density: 0.5}}
  fast_memory: {size: 5}
grid:
  seed: [0, 1]
  fast_memory.size: [4, 5]
zip:
  encoder: [raw, dbi-dc]
  orderings: [two-optimal, by-source]
""",
    "trace": """trace: {file: small.din}
caches:
  - {size_bytes: 1024, line_bytes: 64, ways: 4, policy: lru}
dram: {part: lpddr4-3200}
""",
}


class _Silent(Exception):
    """Nothing was heard of a run for too long."""


class _Stopped(Exception):
    """A run that reports was told to stop."""


def heard_of(config: str) -> None:
    """Run a configuration and listen to it. Raises _Silent, _Stopped, or what the run raises."""
    began = time.process_time()

    def listen(done: int, total: int | None, text: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, SILENT_S)
        if time.process_time() - began > ENOUGH_S:
            raise _Stopped

    def silent(number: int, frame: object) -> None:
        raise _Silent

    before = signal.signal(signal.SIGPROF, silent)
    signal.setitimer(signal.ITIMER_PROF, SILENT_S)
    try:
        ew.run(config, progress=listen)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def damaged(pick: random.Random) -> str:
    """Return one of the configurations, damaged."""
    lines = pick.choice(list(BASES.values())).splitlines()
    for _ in range(pick.choice((1, 1, 2, 3))):
        pick.choice([*MUTATIONS, *[change_number] * 6])(lines, pick)
        lines = lines or [""]
    return "\n".join(lines)


def main() -> int:
    """Damage the configurations so often and run what is still one; exit status 1 on a find."""
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    cases = range(first, first + int(sys.argv[1]))
    os.environ.setdefault("EDGEWATT_MAX_BYTES", "1536M")
    finds, refused, ran, stopped = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        Path("small.din").write_text("".join(f"{'rw'[k % 2]} {64 * k:x} 4\n" for k in range(40)))
        for case in cases:
            text = damaged(random.Random(case))
            Path("c.yaml").write_text(text, encoding="utf-8", newline="")
            before, wrong = _peak_bytes(), ""
            started = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    heard_of("c.yaml")
                ran += 1
            except EdgewattError:
                refused += 1
            except _Stopped:
                stopped += 1
            except _Silent:
                wrong = f"silent for {SILENT_S} s"
            except BaseException as error:
                wrong = f"{type(error).__name__}: {error}"
            if _peak_bytes() - before > MEMORY_BYTES:
                wrong = wrong or "more than 2 GB"
            if wrong:
                finds += 1
                print(f"case {case}: {wrong[:300]}: after {time.process_time() - started:.0f} s: {text!r}", flush=True)
            if (case + 1) % 500 == 0:
                print(f"to case {case}: {refused} refused, {ran} ran, {stopped} stopped, {finds} finds", flush=True)
    print(f"{len(cases)} configurations: {refused} refused, {ran} ran, {stopped} stopped as asked; {finds} finds")
    return int(finds > 0)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
