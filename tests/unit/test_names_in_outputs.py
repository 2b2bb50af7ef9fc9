"""Names that a file gives in what is written for other programs, and numbers that only YAML 1.1 has."""

import time
from pathlib import Path

import numpy as np
import pytest

from edgewatt.config.starter import _first_line
from edgewatt.operators.arena import place_buffers


@pytest.mark.parametrize("name", ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)"])
def test_names_of_buffers_are_no_formulas(name: str, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(f'id,lower,upper,size\n"{name}",0,2,8\nplain,1,3,8\n')
    place_buffers(str(tmp_path / "b.csv"), output=str(tmp_path / "o.csv"))
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[1].lstrip('"').startswith("'" + name[0]) and lines[2].startswith("plain,")


def test_numbers_with_colons_are_words(tmp_path: Path) -> None:
    """YAML 1.1 reads them as numbers of base 60: quadratic time, 107 s for a megabyte."""
    (tmp_path / "s.yaml").write_text("description: " + "1:" * 500_000 + "1\n")
    before = time.process_time()
    assert _first_line(tmp_path / "s.yaml").startswith("1:1:1")
    assert time.process_time() - before < 5


def test_no_loader_of_yaml_but_one() -> None:
    root = Path(__file__).parents[2]
    files = [
        file for package in ("edgewatt", "hwmodel", "reorder", "traces") for file in (root / package).rglob("*.py")
    ]
    assert (
        np.array([("yaml.safe_load" in text or "yaml.load" in text) for text in map(Path.read_text, files)]).sum() == 0
    )
