"""Sizes of images and windows of convolutions, as they are written on the command line."""

from __future__ import annotations

from traces.base.checks import is_whole
from traces.base.errors import InputError


def read_image(text: str | None) -> list[int] | None:
    """Read height x width, as 32x32, or channels first, as 3x32x32."""
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) not in (2, 3) or not all(is_whole(side) and len(side) < 10 for side in sides):
        raise InputError(f"--image {text!r}: write height x width, as 32x32 (or channels first, 3x32x32)")
    return [int(side) for side in sides]


def read_windows(given: list[str]) -> dict[str, dict[str, int]] | None:
    """Read TENSOR:stride=2,padding=1 for each tensor."""
    windows: dict[str, dict[str, int]] = {}
    for text in given:
        name, _, values = text.rpartition(":")
        pairs = [value.partition("=") for value in values.split(",")]
        if not name or not all(key and is_whole(number) and len(number) < 10 for key, _, number in pairs):
            raise InputError(f"--window {text!r}: write TENSOR:stride=2,padding=1 (also dilation and pool)")
        windows[name] = {key.strip(): int(number) for key, _, number in pairs}
    return windows or None
