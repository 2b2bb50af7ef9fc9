"""Nothing in the current folder runs: not in workers, not in pools, not in `python -m edgewatt`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
NETWORK = "{generate: {kind: random-layered, n_layers: 2, width: 8, density: 0.5}}"
SHADOWED = (
    "queue",
    "selectors",
    "signal",
    "json",
    "concurrent",
    "multiprocessing",
    "numpy",
    "zipfile",
    "typer",
    "yaml",
)
COMMANDS = {
    "sweep": ["sweep", "s.yaml", "-j", "2", "-o", "out"],
    "order": ["order", "n.npz", "-m", "residency", "-s", "workers=2", "-s", "starts=2", "--time-limit", "0.5"],
    "order-tuples": ["order-tuples", "m.mtx", "-j", "2", "--stride", "4"],
}
CONSOLE = "import sys; sys.argv[0] = 'edgewatt'; sys.path.pop(0); from edgewatt.__main__ import main; main()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:

    from traces.generators.networks import random_layered
    from traces.readers.native import save

    (tmp_path / "s.yaml").write_text(f"base: {{network: {NETWORK}, measure: io}}\ngrid: {{seed: [0, 1, 2]}}\n")
    save(random_layered(n_layers=2, width=20, density=0.5), tmp_path / "n.npz")
    rows = "\n".join(f"{r} {c} 1.5" for r in range(1, 9) for c in range(1, 9))
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n8 8 64\n{rows}\n")
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text(f"open('RAN-{name}', 'w').close(); raise SystemExit('local code ran')\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("start", [["-m", "edgewatt"], ["-c", CONSOLE]], ids=["module", "console"])
def test_nothing_local_runs(folder: Path, command: str, start: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, *start, *COMMANDS[command]], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert not list(folder.glob("RAN-*")), done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["edgewatt.cli", "typer", "edgewatt.cli.run", "cython_ext", "yaml"])
@pytest.mark.parametrize("module_form", [False, True], ids=["console", "module"])
def test_ctrl_c_while_the_command_loads_is_no_traceback(tmp_path: Path, module: str, module_form: bool) -> None:
    """SIGINT in the middle of an import, as it comes to whoever changes their mind at once."""
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts the tests in the background ignores it
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["edgewatt", "run", "quickstart", "-o", "out"]
"""
    code += (
        "import runpy; runpy.run_module('edgewatt', run_name='__main__')" if module_form else CONSOLE.split("; ", 3)[3]
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 130 and done.stderr == "edgewatt: interrupted\n", done.stderr


def test_the_console_script_is_that_command() -> None:
    assert "edgewatt = edgewatt.__main__:main" in (ROOT / "setup.cfg").read_text()
