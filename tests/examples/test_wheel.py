"""The wheel alone, where there is neither checkout nor compiler: from installation to a verdict."""

import os
import resource
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import edgewatt

ROOT = Path(edgewatt.__file__).parents[1]
CPU_S = 60

pytestmark = pytest.mark.application


@pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="a wheel is built in a checkout")
def test_the_wheel_alone_reaches_a_verdict(tmp_path: Path) -> None:
    """Without the checkout on the path, no program but Python, an empty home, and at most 60 s of CPU."""
    wheels, site = tmp_path / "wheels", tmp_path / "site"
    build = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(wheels), "-b", str(tmp_path / "made")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = wheels.glob("edgewatt-*.whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    (tmp_path / "home").mkdir()
    environment = {
        "PATH": str(tmp_path / "home"), "HOME": str(tmp_path / "home"), "COLUMNS": "80",
        "PYTHONPATH": os.pathsep.join([str(site), sysconfig.get_path("purelib")]), "PYTHONNOUSERSITE": "1",
    }  # fmt: skip

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))

    def python(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=tmp_path / "home", env=environment, capture_output=True,
                              text=True, preexec_fn=limited, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert python("-c", "import edgewatt; print(edgewatt.__file__)").startswith(str(site))
    start = python("-m", "edgewatt", "--help").rpartition("Start with:")[2].split()
    answer = python("-m", *start, "-o", "results")
    assert "take" in answer and "energy" in answer, answer
