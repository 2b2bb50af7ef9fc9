"""Children end without a word when their parent is killed, and import nothing from the current folder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

POOL = """
import os, time
from traces.base.workers import Workers

with Workers(2, "processes") as team:
    print(next(team.map(os.getpid, [(0, ()), (1, ())]))[1], flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_pool_ends_with_its_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    (tmp_path / "pickle.py").write_text("raise SystemExit('taken from the current folder')")
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-P", "pool.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(200):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").exists() and ") Z " in Path(f"/proc/{child}/stat").read_text():
            return  # ended; nobody has asked for its status
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child lived on")
