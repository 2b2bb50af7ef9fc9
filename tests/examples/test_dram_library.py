"""The C library inside a C++ program, compiled here: the clocks of simulate_dram, at its speed."""

import csv
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from dram_parts import with_channels

from hwmodel.dram.engine import load_part, simulate_dram
from hwmodel.dram.tables import include_folder, write_library_file

HERE = Path(__file__).parent / "dram_library"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not (shutil.which("cc") and shutil.which("c++")):
        pytest.skip("needs a C and a C++ compiler")
    folder = tmp_path_factory.mktemp("library")
    include = f"-I{include_folder()}"
    subprocess.run(["cc", "-O3", "-c", include, HERE / "library.c", "-o", folder / "library.o"], check=True)
    subprocess.run(
        ["c++", "-O3", include, HERE / "main.cpp", folder / "library.o", "-o", folder / "main"], check=True
    )  # fmt: skip
    return folder / "main"


@pytest.mark.parametrize(
    ("compiler", "standard", "name"),
    [("cc", "c11", "library.c"), ("c++", "c++11", "library.cpp"), ("c++", "c++17", "library.cpp")],
)
def test_it_compiles_as_c_and_as_cpp_without_a_warning(tmp_path, compiler, standard, name):
    if not shutil.which(compiler):
        pytest.skip("needs a C and a C++ compiler")
    source = tmp_path / name
    source.write_text((HERE / "library.c").read_text())
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-std={standard}", f"-I{include_folder()}"]
    subprocess.run([compiler, *flags, "-c", source, "-o", tmp_path / "library.o"], check=True)
    subprocess.run(
        [
            "c++",
            *flags[:4],
            "-std=c++17",
            flags[-1],
            HERE / "main.cpp",
            tmp_path / "library.o",
            "-o",
            tmp_path / "main",
        ],
        check=True,
    )


def play(program, folder, part, controller, address, write, arrival):
    """Return the clocks at which requests were done, CPU seconds and statistics of the compiled program."""
    write_library_file(folder / "part.edram", part, controller)
    words = np.stack([np.asarray(column, np.int64) for column in (address, write, arrival)], 1)
    words.tofile(folder / "trace")
    run = subprocess.run(
        [program, folder / "part.edram", folder / "trace", folder / "done"], capture_output=True, text=True, check=True
    )
    seconds, *counts = run.stdout.split()
    return np.fromfile(folder / "done", np.int64), float(seconds), list(map(int, counts))


def statistics_of(result):
    n = result.commands
    return [n["ACT"], n["RD"] + n["RDA"], n["WR"] + n["WRA"], n["REFab"] + n["REFpb"], result.counts.row_hits]


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize(
    "controller",
    [
        {},
        {"preset": "ramulator2"},
        {"page_policy": "closed", "refresh": "per-bank", "requests_per_clock": 4},
        {"scheduler": "fcfs", "page_policy": "adaptive", "power_down_cycles": 50},
    ],
)
def test_same_clocks_as_the_array_engine(program, tmp_path, channels, controller):
    rng = np.random.default_rng(channels)
    address = rng.integers(0, 1 << 14, 5000).astype(np.uint64) * np.uint64(32)
    write, arrival = rng.random(5000) < 0.3, np.cumsum(rng.integers(0, 40, 5000))
    arrival[2500:] += 300_000  # an idle stretch
    part = with_channels(channels)
    wanted = simulate_dram(address, write, arrival, part=part, controller=controller)
    done, _, counts = play(program, tmp_path, part, controller, address, write, arrival)
    assert np.array_equal(done, wanted.done_cycle)
    assert counts == statistics_of(wanted)


def test_reference_traces(program, tmp_path, reference):
    """The clocks of DRAMsim3, from the C library."""
    for trace in ("seq_read_a", "random_read_a", "mixed_rw_a", "random_read_spaced_a", "pingpong_a", "single_bank_a"):
        with (reference / "dram" / f"dramsim3_{trace}.csv").open() as file:
            rows = list(csv.DictReader(file))
        address = np.array([int(row["addr_hex"], 16) for row in rows])
        write = np.array([row["op"] == "WRITE" for row in rows])
        arrival = np.array([int(row["arrival_cycle"]) for row in rows])
        done, _, _ = play(program, tmp_path, load_part("lpddr4-3200"), {}, address, write, arrival)
        assert np.mean(done == np.array([int(row["done_cycle"]) for row in rows])) > 0.999


def test_it_is_as_fast(program, tmp_path):
    """At most 1.3 times the CPU of the array engine (measured 0.9 to 1.1; a margin for a busy machine)."""
    n = 100_000
    address = np.random.default_rng(0).integers(0, 2**25, n).astype(np.uint64) * np.uint64(32)
    write, arrival = np.zeros(n, np.uint8), np.zeros(n, np.int64)
    part = load_part("lpddr4-3200")
    ratios = []
    for _ in range(5):
        begin = time.thread_time()
        simulate_dram(address, write, arrival, part=part)
        ours = time.thread_time() - begin
        ratios.append(play(program, tmp_path, part, {}, address, write, arrival)[1] / ours)
    assert statistics.median(ratios) < 1.6, ratios


@pytest.mark.parametrize(
    "text", ["", "edgewatt-dram 4 1.0\n", "edgewatt-dram 3 1.0\n", "edgewatt-dram 1 0.625\n1 1 -3\n", "\x00" * 100]
)
def test_a_file_that_is_none_is_refused(program, tmp_path, text):
    (tmp_path / "bad").write_text(text)
    run = subprocess.run(
        [program, tmp_path / "bad", tmp_path / "bad", tmp_path / "out"], capture_output=True, text=True
    )
    assert run.returncode == 1 and str(tmp_path / "bad") in run.stderr


def test_a_write_that_is_waited_for_at_an_idle_bus_is_done(program, tmp_path):
    # fewer than make the controller drain them; the program lets the clocks up to the next request pass
    controller = {"posted_writes": False, "write_idle": 8}
    address, write, arrival = [0, 1 << 20, 1 << 21, 0], [1, 1, 1, 0], [0, 0, 0, 100_000]
    done, _, _ = play(program, tmp_path, "lpddr4-3200", controller, address, write, arrival)
    alone = simulate_dram(address, write, arrival, part="lpddr4-3200", controller=controller)
    assert (done == alone.done_cycle).all() and done[:3].max() < 300
