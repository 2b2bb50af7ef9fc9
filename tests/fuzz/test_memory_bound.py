"""Every reader on twenty files or more that ask for more than the bound: nothing takes twice the bound."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile_sizes import READERS

pytest.importorskip("onnx")
pytest.importorskip("tflite")


@pytest.mark.parametrize("reader", READERS)
def test_memory_stays_within_twice_the_bound(reader: str, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_sizes", reader, tmp_path], cwd=root, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) >= 12, done.stderr[-2000:]
    wrong = [line for line in lines if not line.endswith(": read") and ": refused " not in line]
    assert not wrong, "\n".join(wrong)
