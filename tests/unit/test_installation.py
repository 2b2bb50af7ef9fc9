"""Another distribution's `traces` is named before anything of it runs, on the command line and in Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").write_text("raise SystemExit('foreign code ran')\n")
    return tmp_path


def python(*arguments: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("command", [["doctor"], ["--version"], ["list", "formats"]])
@pytest.mark.parametrize("by_path", [True, False])
def test_a_foreign_traces_package_is_named(foreign: Path, command: list[str], by_path: bool) -> None:
    done = python("-m", "edgewatt", *command, cwd=foreign, path=str(foreign) if by_path else "")
    assert done.returncode == 1 and done.stdout == ""
    assert f"{foreign}/traces/__init__.py is not edgewatt's" in done.stderr and "Mend it with" in done.stderr
    assert "Traceback" not in done.stderr and "foreign code ran" not in done.stderr


def test_python_says_so_too(foreign: Path) -> None:
    done = python("-c", "import edgewatt; edgewatt.run", cwd=foreign)
    assert "ForeignTracesError" in done.stderr and "is not edgewatt's" in done.stderr
    assert "foreign code ran" not in done.stderr


def test_ours_is_found(tmp_path: Path) -> None:
    done = python("-c", "import edgewatt; print(edgewatt.diagnose()['traces_package'])", cwd=tmp_path)
    assert done.stdout.strip() == str(ROOT / "traces"), done.stderr
