"""The guide to extending: its examples are added to a copy of the tree, then installed as a distribution."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "extending.md").read_text()
FILES = dict(re.findall(r"```(?:python|yaml)\n# file: (\S+)\n(.*?)```", GUIDE, re.DOTALL))
CLOCK = {"caches": [{"size_bytes": 256, "ways": 2, "policy": "clock"}]}
FAN_IN, PIN = {"kind": "by-fan-in", "first": "many"}, {"file": "t.pin", "format": "pin"}
MEMBERS = {  # the member's file -> its kind in lists, its entry-point group, what a configuration says to use it
    "hwmodel/caches/policies/clock.py": ("cache-policies", "edgewatt.cache_policies", CLOCK),
    "hwmodel/encoders/nibble_dbi.py": ("encoders", "edgewatt.encoders", {"encoder": "nibble-dbi"}),
    "reorder/edges/by_fan_in.py": ("orderings", "edgewatt.orderings", {"orderings": FAN_IN}),
    "configs/dram/lpddr4-2666.yaml": ("parts", "edgewatt.parts", {"dram": {"part": "lpddr4-2666"}}),
    "traces/formats/ternary.py": ("formats", "edgewatt.formats", {"formats": "ternary"}),
    "traces/trace_readers/pin.py": ("trace-readers", "edgewatt.trace_readers", {"trace": PIN}),
    "traces/trace_writers/nvmain.py": ("trace-writers", "edgewatt.trace_writers", None),
    "edgewatt/reporting/charts/hit_rates.py": ("charts", "edgewatt.charts", None),
}  # fmt: skip
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


def name_of(path: str) -> str:
    """Return the member's name: the stem of a data file, else what the source registers."""
    found = re.search(r'(?:register|add)\(\s*"([^"]+)"', FILES[path])
    return found[1] if found else Path(path).stem


def test_every_example_is_one_file_and_its_test() -> None:
    assert set(FILES) == {*MEMBERS, *(path for path in FILES if path.startswith("tests/"))}
    assert len(FILES) == 2 * len(MEMBERS)
    assert not [path for path in FILES if (ROOT / path).exists()], "an example must be new"


def python(folder: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with all examples in it; kernels and data are the same files."""
    folder = tmp_path_factory.mktemp("tree")
    link = lambda source, target: os.symlink(source, target)  # noqa: E731
    for package in ("traces", "hwmodel", "reorder", "edgewatt", "configs", "cython_ext"):
        shutil.copytree(
            ROOT / package, folder / package, copy_function=link, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("path", [path for path in FILES if path.startswith("tests/")])
def test_the_examples_own_test_passes(tree: Path, path: str) -> None:
    done = python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(tree / path), cwd=tree)
    assert done.returncode == 0, done.stdout + done.stderr


USE = """
import json, sys
import edgewatt as ew
kind, name, config = json.loads(sys.argv[1])
entry = next(entry for entry in ew.catalogue(kind) if entry["name"] == name)
found = {"entry": entry, "schema": name in json.dumps(ew.schema())}
if config is not None:
    record = ew.run(config)[0]
    found |= {"hash": record.hash, "config": record.config, "provenance": record.provenance.get("plugins")}
print(json.dumps(found))
"""


def use(folder: Path, path: str, cwd: Path, *, commands: bool = True) -> dict:
    """List the member and run a configuration with it from Python; with `commands` also from YAML and options."""
    kind, _, change = MEMBERS[path]
    (cwd / "t.pin").write_text("0x7f00: R 0x1f40\n0x7f04: W 0x1f60\n")
    config = None if change is None else change if "trace" in change else {"network": NETWORK, **change}
    done = python(folder, "-c", USE, json.dumps([kind, name_of(path), config]), cwd=cwd)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] or config is None
    if not commands:
        return found
    listed = python(folder, "-m", "edgewatt", "list", kind, "--json", "-", cwd=cwd)
    assert name_of(path) in [entry["name"] for entry in json.loads(listed.stdout)], listed.stderr
    if config is not None:
        (cwd / "run.yaml").write_text(json.dumps(config))
        ran = python(folder, "-m", "edgewatt", "run", "run.yaml", "-o", "r", "--json", "-", cwd=cwd)
        assert [row["hash"] for row in json.loads(ran.stdout)] == [found["hash"]], ran.stderr
        plain = {"trace": {"file": "t.pin", "format": "dinero"}} if "trace" in change else {"network": NETWORK}
        (cwd / "run.yaml").write_text(json.dumps(plain))
        settings = [f"{key}={json.dumps(value)}" for key, value in change.items()]
        ran = python(folder, "-m", "edgewatt", "run", "run.yaml", "-s", *settings, "-o", "r", "--json", "-", cwd=cwd)
        assert [row["hash"] for row in json.loads(ran.stdout)] == [found["hash"]], ran.stderr
    return found


@pytest.mark.parametrize("path", MEMBERS)
def test_it_is_one_of_ours(tree: Path, path: str, tmp_path: Path) -> None:
    found = use(tree, path, tmp_path)
    assert "distribution" not in found["entry"] and not found.get("provenance")
    assert "plugins" not in found.get("config", {})


def outside(folder: Path, path: str, version: str, more: str = "") -> Path:
    """Install a member as another author's distribution in a folder of its own; return what goes on the path."""
    site = folder / f"site-{version}"
    package, name = site / "theirs", name_of(path)
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    source = re.sub(
        r"from (?:traces|hwmodel|reorder|edgewatt)[\w.]* import", "from edgewatt.plugins import", FILES[path]
    )
    value = "theirs" if path.endswith(".yaml") else f"theirs.{Path(path).stem}"
    (package / Path(path).name).write_text(source + more)
    info = site / f"theirs-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[{MEMBERS[path][1]}]\n{name} = {value}\n")
    return site


@pytest.mark.parametrize("path", MEMBERS)
def test_the_same_from_outside(path: str, tmp_path: Path) -> None:
    """Listed with its origin; used from YAML, command line and Python; named and hashed; a change is another point."""
    change = MEMBERS[path][2]
    found = []
    for version, more in (("1.0", ""), ("1.0", "# changed\n"), ("1.1", "")):
        cwd = tmp_path / f"{version}-{bool(more)}"
        cwd.mkdir()
        site = outside(cwd, path, version, more)
        found.append(use(f"{site}{os.pathsep}{ROOT}", path, cwd, commands=not found))
        sha256 = hashlib.sha256((site / "theirs" / Path(path).name).read_bytes()).hexdigest()
        origin = {"distribution": "theirs", "version": version, "sha256": sha256}
        assert origin.items() <= found[-1]["entry"].items()
        if change is not None:
            (used,) = found[-1]["config"]["plugins"].values()
            assert used == [{"name": name_of(path), **origin}]
            assert found[-1]["provenance"] == found[-1]["config"]["plugins"]
    if change is not None:
        assert len({each["hash"] for each in found}) == 3, "a changed plug-in is computed again"


@pytest.mark.parametrize("path", [path for path in MEMBERS if path.endswith(".py")])
def test_one_that_cannot_be_loaded_stops_nobody(path: str, tmp_path: Path) -> None:
    site = outside(tmp_path, path, "1.0", "raise RuntimeError('not today')\n")
    done = python(f"{site}{os.pathsep}{ROOT}", "-m", "edgewatt", "list", MEMBERS[path][0], "--json", "-", cwd=tmp_path)
    entry = next(entry for entry in json.loads(done.stdout) if entry["name"] == name_of(path))
    assert "theirs 1.0 cannot be loaded: RuntimeError: not today" in entry["summary"]
    (tmp_path / "run.yaml").write_text(json.dumps({"network": NETWORK}))
    ran = python(f"{site}{os.pathsep}{ROOT}", "-m", "edgewatt", "run", "run.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_plugins_has_every_name() -> None:
    import edgewatt.plugins

    for name in edgewatt.plugins.__all__:
        assert getattr(edgewatt.plugins, name) is not None
