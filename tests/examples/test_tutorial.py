"""The commands and the Python of the tutorial run as printed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_tutorial(tmp_path: Path) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    text = TUTORIAL.read_text()
    commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert len(commands) >= 8
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "edgewatt"
        code = "from edgewatt.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stderr)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4, done.stderr
