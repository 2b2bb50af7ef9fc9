"""Small pictures as SVG text: the same bytes everywhere, readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 720
STYLE = """
  .bg{fill:#fff} .t{fill:#1b1f24} .s{fill:#57606a} .g{stroke:#d0d7de;fill:none} .a{stroke:#57606a;fill:none}
  .o{fill:#eef1f4}
  .c0{fill:#0072b2} .c1{fill:#c04e00} .c2{fill:#00815d} .c3{fill:#8e5ea2} .c4{fill:#6e7781} .w{fill:#fff}
  .l0{stroke:#0072b2} .l1{stroke:#c04e00} .l2{stroke:#00815d} .l3{stroke:#8e5ea2} .l4{stroke:#6e7781}
  .l0,.l1,.l2,.l3,.l4{fill:none;stroke-width:2}
  @media (prefers-color-scheme: dark){
  .bg{fill:#0d1117} .t{fill:#e6edf3} .s{fill:#9ea7b3} .g{stroke:#30363d} .a{stroke:#9ea7b3}
  .o{fill:#1f262e} .w{fill:#0d1117}
  .c0{fill:#58b1ea} .c1{fill:#ff9d57} .c2{fill:#3cc79b} .c3{fill:#c9a3dc} .c4{fill:#9ea7b3}
  .l0{stroke:#58b1ea} .l1{stroke:#ff9d57} .l2{stroke:#3cc79b} .l3{stroke:#c9a3dc} .l4{stroke:#9ea7b3}}
"""


class Picture:
    """Shapes one after the other; classes are those of STYLE: c0 to c4 fill, l0 to l4 draw lines, t and s are texts."""

    def __init__(self, title: str, height: int) -> None:
        self.height = height
        self.shapes = [f'<text class="t" x="16" y="28" font-size="16" font-weight="600">{escape(title)}</text>']
        self.title = title

    def text(self, x: float, y: float, words: object, kind: str = "s", size: float = 13, anchor: str = "start") -> None:
        place = f'x="{_n(x)}" y="{_n(y)}" font-size="{size}" text-anchor="{anchor}"'
        self.shapes.append(f'<text class="{kind}" {place}>{escape(str(words))}</text>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str, round_by: float = 0) -> None:
        sides = f'width="{_n(width)}" height="{_n(height)}"' + (f' rx="{_n(round_by)}"' if round_by else "")
        self.shapes.append(f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" {sides}/>')

    def squares(self, corners: Sequence[tuple[float, float]], side: float, kind: str) -> None:
        """Many squares of one class as one path."""
        edge = _n(side)
        path = "".join(f"M{_n(x)} {_n(y)}h{edge}v{edge}h-{edge}z" for x, y in corners)
        self.shapes.append(f'<path class="{kind}" d="{path}"/>')

    def bits(self, rows: Sequence[Sequence[int]], x: float, y: float, side: float, ones: str = "c0") -> None:
        """Rows of bits: a square each, a one in the class `ones`."""
        for value, kind in ((0, "o"), (1, ones)):
            at = [
                (x + (side + 1) * k, y + (side + 1) * i)
                for i, row in enumerate(rows)
                for k, b in enumerate(row)
                if b == value
            ]
            if at:
                self.squares(at, side, kind)

    def line(self, points: Sequence[tuple[float, float]], kind: str = "a", dashed: bool = False) -> None:
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self.shapes.append(f'<path class="{kind}" d="{path}"' + (' stroke-dasharray="5 4"/>' if dashed else "/>"))

    def dot(self, x: float, y: float, kind: str, radius: float = 3.5) -> None:
        self.shapes.append(f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>')

    def legend(self, names: Sequence[str], x: float, y: float) -> None:
        for i, name in enumerate(names):
            self.rect(x, y - 10, 11, 11, f"c{i}", 2)
            self.text(x + 16, y, name)
            x += 34 + 7 * len(name)

    def __str__(self) -> str:
        box = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" font-family="system-ui, sans-serif">'
        back = f'<rect class="bg" width="{WIDTH}" height="{self.height}" rx="8"/>'
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", f"<style>{STYLE}</style>", back, *self.shapes, "</svg>", ""]
        )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from low to high."""
    raw = (high - low) / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def lines(
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_name: str,
    y_name: str,
    *,
    from_zero: bool = False,
) -> str:
    """Return a line chart; a series whose name ends in '*' is dashed, and takes the last colour."""
    picture = Picture(title, 320)
    left, right, top, bottom = 84, WIDTH - 24, 76, 270
    names = [name.removesuffix("*") for name in series]
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points] + ([0] if from_zero else [])
    pad = 0.05 * (max(ys) - min(ys))
    low_y, high_y, low_x, high_x = min(ys) - (0 if from_zero else pad), max(ys) + pad, min(xs), max(xs)
    at = lambda x, y: (  # noqa: E731
        left + (x - low_x) / (high_x - low_x) * (right - left),
        bottom - (y - low_y) / (high_y - low_y) * (bottom - top),
    )
    for y in ticks(low_y, high_y, 4):
        picture.line([(left, at(0, y)[1]), (right, at(0, y)[1])], "g")
        picture.text(left - 8, at(0, y)[1] + 4, f"{y:,.6g}", anchor="end", size=12)
    for x in ticks(low_x, high_x, 7):
        picture.text(at(x, low_y)[0], bottom + 18, f"{x:,.6g}", anchor="middle", size=12)
    picture.line([(left, bottom), (right, bottom)])
    picture.text((left + right) / 2, bottom + 40, x_name, anchor="middle")
    picture.text(16, 66, y_name)
    picture.legend(names, left + 8 * len(y_name), 66)
    for i, (name, points) in enumerate(series.items()):
        picture.line([at(x, y) for x, y in points], f"l{i}", name.endswith("*"))
        if len(points) < 16 and not name.endswith("*"):
            for x, y in points:
                picture.dot(*at(x, y), f"c{i}")
    return str(picture)


def bars(
    title: str, values: Mapping[str, float], note: str, *, mark: tuple[str, float] | None = None, unit: str = ""
) -> str:
    """Return horizontal bars from 0, with a dashed line at `mark`."""
    picture = Picture(title, 92 + 30 * len(values))
    left, right, top = 212, WIDTH - 90, 66
    most = max([*values.values(), mark[1] if mark else 0])
    picture.text(16, 52, note)
    for i, (name, value) in enumerate(values.items()):
        y = top + 30 * i
        picture.text(left - 10, y + 15, name, "t", anchor="end")
        picture.rect(left, y, (right - left) * value / most, 20, "c0", 2)
        picture.text(left + (right - left) * value / most + 6, y + 15, f"{_number(value)}{unit}")
    if mark:
        x = left + (right - left) * mark[1] / most
        picture.line([(x, top - 6), (x, top + 30 * len(values))], "l1", True)
        picture.text(x, top + 30 * len(values) + 16, mark[0], anchor="end" if x > WIDTH / 2 else "start")
    return str(picture)
