"""Write the figures of the documentation: python docs/figures [NAME ...]. Tests compare them with what lies there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import learning
import machine
import operators
import pruning
import work

HERE = Path(__file__).resolve().parent
FIGURES = {**work.FIGURES, **machine.FIGURES, **operators.FIGURES, **learning.FIGURES, **pruning.FIGURES}


def main(names: list[str], folder: Path = HERE.parent / "_static" / "figures") -> None:
    """Compute and write the figures named, or all of them."""
    os.chdir(HERE.parents[1])
    folder.mkdir(exist_ok=True, parents=True)
    for name in names or FIGURES:
        (folder / f"{name}.svg").write_text(FIGURES[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
