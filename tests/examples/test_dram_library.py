"""The C library inside a C++ program, compiled here: the clocks of simulate_dram, at its speed."""

import csv
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from dram_parts import made, pseudo_channels, with_channels

from hwmodel.dram.energy import core_energy, interface_energy
from hwmodel.dram.engine import load_part, simulate_dram
from hwmodel.dram.library import include_folder, write_library_file
from hwmodel.dram.tables import address_map
from hwmodel.parts.part import COMMANDS

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


@pytest.fixture(scope="module")
def energy_program(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("energy")
    flags = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-std=c11", f"-I{include_folder()}"]
    sources = [HERE / "energy.c", HERE / "library.c"]
    subprocess.run(["cc", *flags, *sources, "-o", folder / "energy"], check=True)
    return folder / "energy"


def issued(trace, part, data):
    """Return a command trace of channel 0 as words for the program, with the bytes of its bursts."""
    fields, words, at = address_map(part, None).fields, [], 0
    for row in trace:
        place = {"column": row["column"] // part.organisation.columns_per_burst, "bank": row["bank"], "row": row["row"],
                 "bank_group": row["bank_group"], "rank": row["rank"]}  # fmt: skip
        address = sum(
            ((int(place.get(f.name, 0)) >> f.target) & ((1 << f.bits) - 1)) << f.source for f in fields
        )  # fmt: skip
        is_burst = COMMANDS[row["command"]] in ("RD", "WR", "RDA", "WRA", "MWR")
        words.append(np.array([row["cycle"], row["command"], address, is_burst], np.int64).tobytes())
        if is_burst:
            words.append(data[at].tobytes())
            at += 1
    return b"".join(words)


def one_channel(name):
    o = {"channels": made(1), **({"pseudo_channels": made(1)} if name.startswith("hbm") else {})}
    return load_part({"extends": name, "name": "one", "organisation": o, "address_map": made(MAPS[name])})


MAPS = {
    "lpddr4-3200": "offset:5 column:6 bank:3 row:16",
    "lpddr5-6400": "offset:5 bank_group:2 column:6 bank:2 row:15",
    "ddr4-3200-x8": "offset:6 bank_group:2 column:7 bank:2 row:16",
    "ddr5-4800-x8": "offset:6 bank_group:3 column:6 bank:2 row:16",
    "hbm2": "offset:5 bank_group:2 column:5 bank:2 row:14",
}


@pytest.mark.parametrize("name", sorted(MAPS))
@pytest.mark.parametrize("dbi", [False, True])
@pytest.mark.parametrize("controller", [{"power_down_cycles": 40}, {"refresh": "per-bank", "page_policy": "closed"}])
def test_energy_of_commands_of_another_timing(energy_program, tmp_path, name, dbi, controller):
    """What the C library says a command trace costs is what core_energy and interface_energy say."""
    part, rng, n = one_channel(name), np.random.default_rng(1), 600
    if ("refresh" in controller and not part.timing.tRFCpb) or (dbi and part.interface.dbi == "none"):
        pytest.skip("the part has none")
    size = part.organisation.burst_bytes
    address = rng.integers(0, 1 << 12, n).astype(np.uint64) * np.uint64(size)
    run = simulate_dram(
        address, rng.random(n) < 0.4, np.cumsum(rng.integers(0, 60, n)), part=part, controller=controller, trace=True
    )  # fmt: skip
    trace = run.command_trace[0]
    data = rng.integers(0, 256, (n, size)).astype(np.uint8)
    names = np.array(COMMANDS)[trace["command"]]
    is_burst = np.isin(names, ("RD", "WR", "RDA", "WRA"))
    hexed = np.full(len(trace), "", object)
    hexed[is_burst] = [bytes(row).hex() for row in data[: is_burst.sum()]]
    table = {column: trace[column] for column in ("rank", "bank_group", "bank", "row", "column")}
    table |= {"timestamp_cycles": trace["cycle"], "command": names, "data_hex": hexed}
    core = {row.term: row.energy_pj for row in core_energy(table, part=part, end_cycle=run.end_cycle)}
    wires = interface_energy(table, part=part, dbi=dbi, end_cycle=run.end_cycle).energy_pj

    (tmp_path / "commands").write_bytes(issued(trace, part, data))
    write_library_file(tmp_path / "part.edram", part)
    arguments = [tmp_path / "part.edram", tmp_path / "commands", str(int(dbi)), str(run.end_cycle), str(size)]
    found = subprocess.run([energy_program, *arguments], capture_output=True, text=True, check=True)
    rest = ("background", "power_down", "self_refresh")
    wanted = [
        core["activate"], core["precharge"], core["read"], core["write"],
        core["refresh"] + core.get("refresh_per_bank", 0) + core.get("refresh_management", 0),
        sum(pj for term, pj in core.items() if term.startswith(rest)),
        *(sum(wires[g]["total"] for g in groups.split() if g in wires) for groups in ("dq dbi", "dqs", "ck wck", "ca")),
    ]  # fmt: skip
    assert [float(word) for word in found.stdout.split()] == pytest.approx(wanted, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ([(0, "RD", 0)], "clock 0: the row is not open"),
        ([(0, "ACT", 0), (9, "ACT", 0)], "clock 9: the bank is open"),
        ([(5, "ACT", 0), (4, "PRE", 0)], "clock 4: the clock goes back"),
        ([(0, "PRE", 0)], "clock 0: the bank is closed already"),
        ([(0, "ACT", 0), (9, "REFab", 0)], "clock 9: a bank of the rank is open"),
        ([(0, "REF2b", 0)], "clock 0: no such command"),
        ([(0, "ACT", 0), (30, "RD", 0), (31, "RD", 32)], "clock 31: the burst overlaps"),
    ],
)
def test_a_command_that_cannot_be_is_refused(energy_program, tmp_path, commands, why):
    words = np.array([[clock, COMMANDS.index(name), address, 0] for clock, name, address in commands], np.int64)
    words.tofile(tmp_path / "commands")
    write_library_file(tmp_path / "part.edram", "lpddr4-3200")
    run = subprocess.run(
        [energy_program, tmp_path / "part.edram", tmp_path / "commands", "0", "100", "32"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 1 and why in run.stderr


def test_pseudo_channels_with_common_queues(program, tmp_path):
    rng, n, part = np.random.default_rng(3), 3000, pseudo_channels()
    address = rng.integers(0, 1 << 14, n).astype(np.uint64) * np.uint64(part.organisation.burst_bytes)
    write, arrival = rng.random(n) < 0.3, np.cumsum(rng.integers(0, 12, n))
    for controller in ({"shared_pseudo_channels": True}, {"preset": "ramulator2"}):
        wanted = simulate_dram(address, write, arrival, part=part, controller=controller)
        done, _, counts = play(program, tmp_path, part, controller, address, write, arrival)
        assert np.array_equal(done, wanted.done_cycle) and counts == statistics_of(wanted)
