"""Chains of convolutions, one byte a value, with additions of an earlier tensor."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from traces.base.errors import InputError, brief, did_you_mean, unknown_name
from traces.base.memory import claim

KINDS = ("conv", "depthwise")
MAX_VALUES = 2**40


@dataclass(frozen=True)
class ConvolutionLayer:
    """A convolution with a square kernel and zero padding. Sizes are values (height, width, channels).

    adds: the layer whose input is added to this layer's output (a residual connection), or None.
    """

    kind: str
    kernel: int
    stride: int
    padding: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    adds: int | None = None

    @property
    def in_values(self) -> int:
        """Values of the input."""
        return self.in_h * self.in_w * self.in_c

    @property
    def out_values(self) -> int:
        """Values of the output."""
        return self.out_h * self.out_w * self.out_c

    @property
    def per_value(self) -> int:
        """Multiplications of one output value."""
        return self.kernel**2 * (self.in_c if self.kind == "conv" else 1)

    @property
    def weights(self) -> int:
        """Values of the kernel."""
        return self.per_value * self.out_c


@dataclass(frozen=True)
class LayerChain:
    """Layers that each read what the one before wrote."""

    layers: tuple[ConvolutionLayer, ...]
    name: str = "chain"

    def __post_init__(self) -> None:
        if not self.layers:
            raise InputError(f"{self.name}: a chain has at least one layer")
        for k, layer in enumerate(self.layers):
            where = f"{self.name}: layer {k}"
            if layer.kind not in KINDS:
                raise unknown_name(f"kind of layer {k} of {self.name}", layer.kind, KINDS)
            for f in fields(ConvolutionLayer):
                value = getattr(layer, f.name)
                if f.name not in ("kind", "adds", "padding") and value < 1:
                    raise InputError(f"{where}: {f.name} is {value}: at least 1")
            if layer.padding < 0 or layer.padding >= layer.kernel:
                raise InputError(f"{where}: padding is {layer.padding}: from 0 to kernel - 1")
            if max(layer.in_values, layer.out_values) * layer.per_value > MAX_VALUES:
                raise InputError(f"{where}: more than 2^40 multiplications")
            for axis in ("h", "w"):
                size, out = getattr(layer, f"in_{axis}"), getattr(layer, f"out_{axis}")
                made = (size + 2 * layer.padding - layer.kernel) // layer.stride + 1
                if out != made:
                    raise InputError(f"{where}: out_{axis} is {out}, but kernel, stride and padding make it {made}")
            if layer.kind == "depthwise" and layer.in_c != layer.out_c:
                raise InputError(f"{where}: a depthwise layer has as many channels out as in")
            if k:
                last = self.layers[k - 1]
                if (last.out_h, last.out_w, last.out_c) != (layer.in_h, layer.in_w, layer.in_c):
                    raise InputError(f"{where}: its input is not what layer {k - 1} writes")
            if layer.adds is not None:
                if not 0 <= layer.adds <= k:
                    raise InputError(f"{where}: adds the input of layer {layer.adds}, which is not before it")
                first = self.layers[layer.adds]
                if (first.in_h, first.in_w, first.in_c) != (layer.out_h, layer.out_w, layer.out_c):
                    raise InputError(f"{where}: adds the input of layer {layer.adds}, which has another shape")

    @property
    def multiplications(self) -> int:
        """Of the chain run layer by layer."""
        return sum(layer.out_values * layer.per_value for layer in self.layers)


def _layer(row: dict[str, str | None], names: Sequence[str], where: str) -> ConvolutionLayer:
    values: dict[str, int | None] = {}
    for name in names:
        word = (row.get(name) or "").strip()
        if name == "adds" and not word:
            continue
        if not (word.isascii() and word.isdecimal()) or len(word) > 12:
            raise InputError(f"{where}: {name} is {word[:40]!r}: a whole number of at most 12 digits is wanted")
        values[name] = int(word)
    return ConvolutionLayer(kind=(row["kind"] or "").strip(), **values)  # type: ignore[arg-type]


def read_chain(path: str | Path) -> LayerChain:
    """Read a CSV file with a column for each field of ConvolutionLayer (`adds` may be absent or empty).

    Raises InputError naming the line.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    names = [f.name for f in fields(ConvolutionLayer)]
    try:
        claim(path.stat().st_size, str(path))
        with path.open(newline="", encoding="utf-8", errors="replace") as stream:
            rows = csv.DictReader(stream, restkey="")
            for name in names[:-1]:
                if name not in (rows.fieldnames or ()):
                    raise InputError(f"{path}: line 1: no column {name!r}{did_you_mean(name, rows.fieldnames or ())}")
            layers = [_layer(row, names[1:], f"{path}: line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise InputError(f"{path}: {brief(error)}") from None
    return LayerChain(tuple(layers), path.name)
