"""Encoders on 16 MiB beside memcpy, and tuple orders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import edgewatt as ew
from bench.harness import Case

BYTES = 16 << 20


def cases() -> Iterator[Case]:
    data = np.random.default_rng(0).integers(0, 256, BYTES, dtype=np.uint8)
    out = np.empty_like(data)
    copy = lambda: np.copyto(out, data)  # noqa: E731
    for chain in ("raw", "dbi-dc", "dbi-ac", "base-xor+dbi-dc", "base-xor-zdr", "transition"):
        encode = lambda chain=chain: {"ones": int(ew.encode(data, chain, element_bytes=2).ones)}  # noqa: E731
        yield Case(chain, encode, BYTES, "byte", copy, "memcpy")
