"""Another distribution's `traces` is named before anything of it runs, on the command line and in Python."""

import os
import shutil
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
    environment.pop("PYTHONSAFEPATH", None)  # of sanitizer runs: here the current folder is what counts
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
    done = python("-c", "import edgewatt; print(edgewatt.config.diagnose()['traces_package'])", cwd=tmp_path)
    assert done.stdout.strip() == str(ROOT / "traces"), done.stderr


@pytest.fixture
def without_kernels(tmp_path: Path) -> Path:
    """A checkout as after a pull: sources, and of the kernels no or old binaries."""
    for name in ("edgewatt", "traces", "cython_ext", "hwmodel", "reorder"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return tmp_path


def test_kernels_that_are_not_built_are_one_line_with_the_remedy(without_kernels: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(without_kernels)}
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    remedy = f"build the kernels with:  cd {without_kernels} && {sys.executable} setup.py build_ext --inplace"
    done = run("-m", "edgewatt", "doctor")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"edgewatt: cython_ext.common.cpu is not built; {remedy}\n"
    done = run("-c", "import edgewatt; edgewatt.order")
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: cython_ext.") and remedy in done.stderr
    (without_kernels / "cython_ext" / "common" / "cpu.py").write_text("simd_level = 'of older sources'\n")
    done = run("-c", "import cython_ext.nothing")
    assert "No module named 'cython_ext.nothing'" in done.stderr and remedy not in done.stderr
