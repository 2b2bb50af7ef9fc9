"""Ctrl-C in `order` and `pays` keeps the best order so far; export refuses settings that it would not use."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from traces.generators.networks import random_layered
from traces.networks.checks import check_order
from traces.readers.native import save

pytestmark = pytest.mark.application


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    file = tmp_path_factory.mktemp("interrupted") / "net.npz"
    made = random_layered(4, 200, 0.1, seed=1)
    save(made, str(file))
    return made, file


def wait_until_busy(child, seconds):
    """Wait until a process took so much time of a processor: on a busy machine its search begins late."""
    stat = Path(f"/proc/{child.pid}/stat")
    if not stat.exists():
        time.sleep(2 * seconds)
    while stat.exists() and child.poll() is None:
        if sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) >= seconds * os.sysconf("SC_CLK_TCK"):
            break
        time.sleep(0.1)


@pytest.mark.parametrize("options", [
    ["-m", "connection-reordering", "-s", "iterations=100000000"],
    ["-m", "residency", "-s", "moves=2000000000"],
    ["--system", "scratchpad-8k", "-s", "moves=2000000000"],
])  # fmt: skip
def test_ctrl_c_keeps_the_best_order(network, tmp_path, options):
    made, file = network
    out = tmp_path / "order.npz"
    command = [sys.executable, "-m", "edgewatt", "order", str(file), "-o", str(out), *options]
    for seconds in (4.0, 20.0):  # on a slow machine the first may end before the search has begun
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
        )  # fmt: skip
        wait_until_busy(child, seconds)
        child.send_signal(signal.SIGINT)
        printed, said = child.communicate(timeout=120)
        # A shell says 130 of both: with -m, Python itself ends by the signal where it met it in exec("...").
        assert child.returncode in (130, -signal.SIGINT), said
        if out.exists():
            break
    assert "interrupted" in printed
    check_order(made, np.load(out)["edges"])


def test_export_uses_settings_of_a_network_or_names_an_unknown_one(network, tmp_path):
    _, file = network
    out = tmp_path / "net.c"
    command = [sys.executable, "-m", "edgewatt", "export", str(file), "-f", "c", "-o", str(out)]
    plain = subprocess.run(command, capture_output=True, text=True)
    assert plain.returncode == 0, plain.stderr
    before = out.read_text()
    wrong = subprocess.run([*command, "-s", "nonsense=1"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "nonsense" in wrong.stderr
    used = subprocess.run([*command, "-s", "orderings=by-source"], capture_output=True, text=True)
    assert used.returncode == 0, used.stderr
    assert out.read_text() != before
