"""Every file under configs/ does what its first comment says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from traces.base.resources import config_root, shipped_names

EXAMPLES = sorted((config_root() / "examples").glob("*.yaml"))
SWEEPS = shipped_names("sweeps")
PROGRESS = re.compile(r"\w+: \d+ of \d+ \(")  # a line now and then where a slow machine takes long


def edgewatt(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "80"}
    code = "from edgewatt.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, env=environment
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[subprocess.CompletedProcess[str], Path]]:
    """Run an example by the command that its first lines name, once for all tests; return the run and its folder."""

    @cache
    def run(name: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        folder, example = tmp_path_factory.mktemp(name), config_root() / "examples" / f"{name}.yaml"
        lines = example.read_text().splitlines()
        command = next(line for line in lines if line.startswith("#   edgewatt ")).split()[2]
        extra = {"sweep": ["-j", "2"], "optimize": ["-s", "optimize.trials=12"], "run": ["--json", "table.json"]}
        return edgewatt(command, str(example), "-o", "out", *extra.get(command, []), cwd=folder), folder

    return run


@pytest.mark.parametrize("example", [path.stem for path in EXAMPLES])
def test_example(example: str, ran: Any) -> None:
    done, folder = ran(example)
    assert done.returncode == 0, done.stderr
    known = "edgewatt: strides order tuples for Base+XOR"  # said where an encoder of the grid does not use them
    said = [line for line in done.stderr.splitlines() if not PROGRESS.match(line) and not line.startswith(known)]
    assert not said
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list((folder / "out" / "records").glob("*.json"))


def test_the_table_of_formats(ran: Any) -> None:
    _, folder = ran("formats")
    rows: list[dict[str, Any]] = json.loads((folder / "table.json").read_text())
    assert len(rows) == len({(r["ordering"], r["stride"], r["format"]) for r in rows}) == 2 * 3 * 3
    for row in rows:
        assert row["io_lower"] <= row["io"] == row["reads"] + row["writes"]
        assert row["toggles"] > 0 and row["ones"] > 0 and 0 < row["hit_rate"] < 1
        assert row["energy_pj"] >= row["io_energy_pj"] + row["dram_energy_pj"] > 0
        assert (folder / row["record"]).is_file()
    first = rows[0]
    assert (first["ordering"], first["stride"], first["format"]) == ("two-optimal", "none", "fp32")
    assert first["io"] <= first["io_upper"], "Theorem 1"
    greedy = {r["format"]: r["ones"] for r in rows if r["ordering"] == "two-optimal" and r["stride"] == "greedy 32"}
    natural = {r["format"]: r["ones"] for r in rows if r["ordering"] == "two-optimal" and r["stride"] == "none"}
    assert all(greedy[name] < natural[name] for name in natural)


def test_quickstart_says_what_to_take_where(ran: Any) -> None:
    done, folder = ran("quickstart")
    rows: list[dict[str, Any]] = json.loads((folder / "table.json").read_text())
    assert len(rows) == 2 * 3 and {row["inputs"] for row in rows} == {64}
    for hardware in dict.fromkeys(row["onchip"] for row in rows):
        plain, blocks, found = (row["energy_pj"] for row in rows if row["onchip"] == hardware)
        assert found < min(blocks, plain)
    lines = done.stdout.splitlines()
    assert len(lines) <= 20 and "64 KiB scratchpad min: take residency. It saves " in lines[0]


@pytest.mark.parametrize("name", SWEEPS)
def test_shipped_sweep(name: str, tmp_path: Path) -> None:
    """It says how many points it has and what to type, and its last point, which no default decides, runs."""
    from edgewatt.catalogue import catalogue
    from edgewatt.runs.compute import run_points
    from edgewatt.runs.plan import load_sweep

    text = (config_root() / "sweeps" / f"{name}.yaml").read_text()
    points = load_sweep(name).points
    assert re.findall(r"# (\d+) points", text) == [str(len(points))]
    commands = re.findall(r"#   edgewatt (.*)", text)
    assert commands == [f"sweep {name}", f"report results/{name} -o report.html"]
    entry = next(entry for entry in catalogue("sweeps") if entry["name"] == name)
    assert entry["summary"].endswith("?")
    record = run_points(points[-1:], stages=tmp_path / "stages")[0]
    assert record.hash == points[-1].hash and record.results["io"]["total"] > 0


def test_a_shipped_sweep_by_name(tmp_path: Path) -> None:
    (tmp_path / "memory-parts").write_text("network: {}")
    assert len(json.loads(edgewatt("list", "sweeps", "--json", "-", cwd=tmp_path).stdout)) == len(SWEEPS)
    dry = edgewatt("sweep", "ordering-memory", "-s", "orderings=[by-source]", "--dry-run", "-j", "1", cwd=tmp_path)
    assert dry.stdout.startswith("6 points, 6 to compute\n") and "no point is finished yet" in dry.stdout, dry.stderr
    assert "memory-parts:1:1: " in edgewatt("sweep", "memory-parts", cwd=tmp_path).stderr, "a file of one's own wins"


@pytest.mark.parametrize("system", shipped_names("systems"))
def test_named_systems(system: str, tmp_path: Path) -> None:
    from edgewatt import run

    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    assert run({"network": network, "system": system})[0].results["energy_pj"]["total"] > 0


@pytest.mark.parametrize("cache", shipped_names("cache"))
@pytest.mark.parametrize("bus", shipped_names("bus"))
def test_named_pieces(cache: str, bus: str) -> None:
    from edgewatt import run

    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    assert run({"network": network, "caches": cache, "bus": bus})[0].results["time_ns"] > 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["run", "nonesuch.yaml"], 2, "nonesuch.yaml: no such file"),
        (["run", "QUICKSTART", "-s", "encoder=dbi-dd"], 2, "did you mean 'dbi-dc'"),
        (["run", "QUICKSTART", "-o", "/dev/null/results"], 2, "choose another folder"),
        (["run", "QUICKSTART", "-o", "file/results"], 2, "choose another folder"),
        (["run", "QUICKSTART", "--json", "nowhere/table.json"], 2, "cannot be written"),
        (["report", "file"], 2, "damaged"),
        (["report", "."], 2, "no results here"),
        (["collect", ".", "-o", "x.xls"], 2, ".parquet or .csv"),
        (["compare", "file", "file"], 2, "damaged"),
        (["rerun", "nonesuch.json"], 2, "nonesuch.json: no such file or folder"),
        (["list", "orderigns"], 2, "did you mean 'orderings'"),
        (["sweep", "memory-prats"], 2, "memory-prats: no such file, and no shipped sweep or example of that name"),
    ],
)
def test_command_line_errors(
    arguments: list[str], status: int, said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from edgewatt.cli import main

    (tmp_path / "file").write_text("x")
    quickstart = str(config_root() / "examples" / "quickstart.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["edgewatt", *(quickstart if a == "QUICKSTART" else a for a in arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == status, shown
    assert said in shown.err and "Traceback" not in shown.err


def test_schema_accepts_every_example() -> None:
    import jsonschema
    import yaml

    from edgewatt.catalogue import schema

    class Loader(yaml.SafeLoader):
        """Reads 1e4 as a number, as edgewatt does."""

    validator = jsonschema.Draft202012Validator(schema())
    for example in [*EXAMPLES, *(config_root() / "sweeps" / f"{name}.yaml" for name in SWEEPS)]:
        data = yaml.load(example.read_text(), Loader)
        assert not list(validator.iter_errors(data)), example
    assert list(validator.iter_errors({"netwrok": {}}))
    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    for right, wrong in (
        ({"dram": {"part": "lpddr4-3200"}}, {"dram": {"part": "lpddr4-3201"}}),
        ({"dram": {"part": "own/part.yaml"}}, {"dram": {"part": "part.json"}}),
        ({"caches": [{"size_bytes": 256, "policy": "srrip"}]}, {"caches": [{"size_bytes": 256, "policy": "lur"}]}),
        ({"layout": {"kind": "best"}}, {"layout": {"kind": "beste"}}),
        ({"system": "edge"}, {"system": "egde"}),
        ({"technology": "none"}, {"technology": "lop-23nm"}),
    ):  # fmt: skip
        assert not list(validator.iter_errors({"network": network, **right})), right
        assert list(validator.iter_errors({"network": network, **wrong})), wrong


def test_command_line_tour(tmp_path: Path) -> None:
    """Sweep, report, collect, compare and rerun, as a user would."""
    base = str(config_root() / "examples" / "own-network.yaml")
    for name, seed in (("a", 1), ("b", 2)):
        done = edgewatt("sweep", base, "-s", f"network.generate.seed={seed}", "-o", name, "-j", "1", cwd=tmp_path)
        assert done.returncode == 0 and "4 computed" in done.stdout, done.stderr
    again = edgewatt("sweep", base, "-s", "network.generate.seed=1", "-o", "a", cwd=tmp_path)
    assert "4 finished before" in again.stdout
    dry = edgewatt("sweep", base, "-s", "seed=9", "-o", "c", "--dry-run", cwd=tmp_path)
    assert "4 points, 4 to compute" in dry.stdout and not (tmp_path / "c").exists()
    for output in ("t.csv", "t.parquet"):
        assert "4 rows" in edgewatt("collect", "a", "-o", output, cwd=tmp_path).stdout
    compared = edgewatt("compare", "a", "b", cwd=tmp_path)
    assert compared.returncode == 0 and "network.generate.seed: 1 -> 2" in compared.stdout, compared.stderr
    record = next((tmp_path / "a" / "records").glob("*.json"))
    assert "repeated, identical" in edgewatt("rerun", str(record), cwd=tmp_path).stdout


def test_the_readme_shows_what_the_quickstart_prints(ran: Any) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    start = readme.index("64 KiB scratchpad min: take")
    shown = readme[start : readme.index("\n-v: ", start)].splitlines()
    assert [line.rstrip() for line in ran("quickstart")[0].stdout.splitlines()[: len(shown)]] == shown
