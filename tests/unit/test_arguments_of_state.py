"""Arguments that were believed: orders and levels of encoders, caches larger than memory, threads by the thousand."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import edgewatt as ew
from edgewatt import InputError
from hwmodel.bus import Bus
from traces.generators.networks import random_layered

DATA = np.arange(64, dtype=np.uint8)
SIZES = {"element_bytes": 4, "bus_bytes": 2, "block_bytes": 32}


@pytest.mark.parametrize("size", [0, 63, 65, 128])
def test_extra_wires_of_other_bytes(size: int) -> None:
    sent = ew.encode(DATA, "3-lwc", **SIZES)
    assert (ew.decode(sent, "3-lwc", **SIZES) == DATA).all()
    with pytest.raises(InputError):
        ew.decode(sent.data, "3-lwc", flags=sent.flags, extra=np.full(size, 255, np.uint8), **SIZES)


@pytest.mark.parametrize("lane", [-1, 2, 2**40, 1.5])
def test_a_lane_that_is_none(lane: int) -> None:
    with pytest.raises(InputError, match="lane"):
        Bus(2).restore([0, 0], [0, 0], lane)


@pytest.mark.parametrize("levels", [([0], [0, 0]), ([0, 0, 0], [0, 0]), ([0, 0], [0, 300]), ([0, -1], [0, 0])])
def test_levels_of_another_bus(levels: tuple[list[int], list[int]]) -> None:
    with pytest.raises(InputError, match="level"):
        Bus(2).restore(*levels, 0)


def test_a_cache_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    with pytest.raises(InputError, match="its table of lines would take"):
        ew.simulate_cache([0], [0], [1], size_bytes=2**31, line_bytes=8, ways=4)


def test_threads_by_the_thousand() -> None:
    before = threading.active_count()
    with pytest.raises(InputError, match="threads must be an integer from 1 to"):
        ew.compile_inference(random_layered(3, 12, 0.4, 1), lanes=64, threads=1000)
    assert threading.active_count() == before


@pytest.mark.application
def test_two_interrupts_end_worker_processes(tmp_path: Path) -> None:
    """What was still to be written to a worker that reads no more kept the process at its end."""
    (tmp_path / "slow_piece.py").write_text(
        "import time\n\n\ndef slow(data: bytes) -> int:\n    time.sleep(60)\n    return len(data)\n"
    )
    code = (
        "import signal\n"
        "from slow_piece import slow\n"
        "from traces.base.workers import Workers\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "print('go', flush=True)\n"
        "with Workers(2, 'processes') as team:\n"
        "    list(team.map(slow, ((k, (bytes(1 << 22),)) for k in range(99)), 99))\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    for pause in (0.0, 0.01, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == b"go\n"
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        finally:
            process.kill()
            process.stdout.close()
