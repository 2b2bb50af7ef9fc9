"""Damage to files, and what a reader may do with it: return, or raise one InputError."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from fuzz.samples import Sample, rezipped, samples
from traces.base.errors import InputError

SECONDS = 20
MEMORY_BYTES = 2 << 30
LINE = 1300  # characters of a message
WORDS = (
    b"0", b"-1", b"1e400", b"nan", b"18446744073709551616", b"9223372036854775807", b"400000000", b"True", b"[[[[",
    b"\xff\xfe", b"\0", b"\n", b",", b"(", b"'", b"99999999999999999999999999999", b"2**70",
)  # fmt: skip


_TIMERS = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}


class _TooLong(Exception):
    pass


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the file with one to four changes."""
    if data[:2] == b"PK" and rng.random() < 0.7:  # below the checksum, which would catch everything else
        return rezipped(data, lambda member: _changed(member, rng), rng.randrange(1 << 20))
    return _changed(data, rng)


def _changed(data: bytes, rng: random.Random) -> bytes:
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(raw) + 1) if rng.random() < 0.5 else rng.randrange(min(len(raw), 128) + 1)
        kind = rng.randrange(10)
        if kind == 0 and at < len(raw):
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del raw[at:]
        elif kind == 2:
            del raw[at : at + rng.randrange(1, 9)]
        elif kind == 3:
            raw[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 4:
            raw[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4), b"\0\0\0\x80"))
        elif kind == 5:
            raw[at : at + 8] = rng.choice((b"\xff" * 8, b"\xff" * 7 + b"\x7f", bytes(8)))
        elif kind == 6:
            word = rng.choice(WORDS)
            raw[at : at + rng.choice((0, len(word)))] = word
        elif kind == 7 and (words := list(re.finditer(rb"[\w.+-]+", raw[: 1 << 14]))):
            raw[slice(*rng.choice(words).span())] = rng.choice(WORDS)
        elif kind == 8 and rng.random() < 0.1:
            raw[at:at] = rng.choice((b"[", b"(", b'{"a":', b"- ", b"-", b"9", b"&a ", b"*a,")) * rng.choice(
                (9, 5000, 50_000)
            )
        else:
            first = rng.randrange(len(raw) + 1)
            raw[at:at] = raw[first : first + rng.randrange(1, 64)]
    return bytes(raw)


def attack(sample: Sample, cases: int, seed: int, folder: Path) -> Iterator[str]:
    """Read damaged copies of a file; yield what went wrong, and the file's bytes."""
    file, data, read = sample
    path = folder / file
    before = _peak_bytes()

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    old = [(number, signal.signal(number, stop)) for number in _TIMERS.values()]
    try:
        for case in range(cases):
            rng = random.Random(f"{seed} {case}")
            given = damaged(data, rng)
            path.write_bytes(given)
            _limit(SECONDS)
            wrong = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read(path)
            except InputError as error:
                said = str(error).split("\n")  # several problems of one file are a line each
                if len(said) > 100 or any(
                    len(line) > LINE or not line.startswith(str(path.parent)) for line in said[1:]
                ):
                    wrong = f"a message of {len(said)} lines: {said[-1]}"
                elif len(said[0]) > LINE:
                    wrong = f"a message of {len(said[0])} characters"
            except _TooLong:
                wrong = f"more than {SECONDS} s"
            except BaseException as error:  # whatever a user would see as a traceback
                wrong = f"{type(error).__name__}: {error}"
            _limit(0)
            if _peak_bytes() - before > MEMORY_BYTES:
                wrong, before = wrong or "more than 2 GB", _peak_bytes()
            if wrong:
                yield f"case {case} of seed {seed}: {wrong[:300]}: {given[:400]!r}"
    finally:
        for number, handler in old:
            signal.signal(number, handler)


def _limit(seconds: float) -> None:
    """Stop after so many seconds of computing; of waiting ten times as many, for a machine may be busy otherwise."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


def _peak_bytes() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """python -m fuzz.damage CASES [NAME ...] (from tests/): damaged copies of every sample; exit status 1 on a find."""
    cases, names = int(sys.argv[1]), sys.argv[2:]
    os.environ.setdefault("EDGEWATT_MAX_BYTES", "1536M")  # what files claim beyond that is refused
    finds = 0
    with tempfile.TemporaryDirectory() as scratch:
        chosen = {name: s for name, s in samples(Path(scratch)).items() if not names or name in names}
        for name, sample in chosen.items():
            started, found = time.process_time(), 0
            for wrong in attack(sample, cases, 0, Path(scratch)):
                found += 1
                if found <= 5:
                    print(f"{name}: {wrong}", flush=True)
            print(f"{name}: {cases} files, {found} finds, {time.process_time() - started:.0f} s", flush=True)
            finds += found
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(main())
