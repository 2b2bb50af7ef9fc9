"""The guide to extending: its examples are added to a copy of the tree, then installed as a distribution."""

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
EXAMPLES = ROOT / "docs" / "guides" / "members"
FILES = {
    str(path.relative_to(EXAMPLES)): path.read_text() for path in EXAMPLES.rglob("*") if path.suffix in (".py", ".yaml")
}
CLOCK = {"caches": [{"size_bytes": 256, "ways": 2, "policy": "clock"}]}
FAN_IN, PIN = {"kind": "by-fan-in", "first": "many"}, {"file": "t.pin", "format": "pin"}
MEMBERS = {  # the member's file -> its kind in lists, its entry-point group, what a configuration says to use it
    "hwmodel/caches/policies/clock.py": ("cache-policies", "edgewatt.cache_policies", CLOCK),
    "hwmodel/encoders/nibble_dbi.py": ("encoders", "edgewatt.encoders", {"encoder": "nibble-dbi"}),
    "reorder/edges/methods/by_fan_in.py": ("orderings", "edgewatt.orderings", {"orderings": FAN_IN}),
    "configs/dram/lpddr4-2666.yaml": ("parts", "edgewatt.parts", {"dram": {"part": "lpddr4-2666"}}),
    "traces/formats/ternary.py": ("formats", "edgewatt.formats", {"formats": "ternary"}),
    "traces/trace_files/pin.py": ("trace-readers", "edgewatt.trace_readers", {"trace": PIN}),
    "traces/trace_files/nvmain.py": ("trace-writers", "edgewatt.trace_writers", None),
    "edgewatt/pages/charts/hit_rates.py": ("charts", "edgewatt.charts", None),
}  # fmt: skip
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


def name_of(path: str) -> str:
    """Return the member's name: the stem of a data file, else what the source registers."""
    found = re.search(r'(?:register|add)\(\s*"([^"]+)"', FILES[path])
    return found[1] if found else Path(path).stem


def test_every_example_is_one_file_and_its_test() -> None:
    assert set(FILES) == {*MEMBERS, *(path for path in FILES if path.startswith("tests/"))}
    assert len(FILES) == 2 * len(MEMBERS)
    assert {path for path in MEMBERS if f"members/{path}" not in GUIDE} == set(), "the guide shows every member"
    assert not [path for path in FILES if (ROOT / path).exists()], "an example must be new"


def python(folder: Path | str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
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
from edgewatt.cli import app
from typer.testing import CliRunner
commands, members = json.loads(sys.argv[1])
schema = json.dumps(ew.config.schema())

def command(*arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)

found = {}
for kind, name, config, plain, settings in members:
    listed = command("list", kind, "--json", "-") if commands else ew.config.catalogue(kind)
    one = found[name] = {"entry": next(entry for entry in listed if entry["name"] == name), "schema": name in schema}
    if config is None:
        continue
    record = ew.run(config)[0]
    one |= {"hash": record.hash, "config": record.config, "provenance": record.provenance.get("plugins")}
    for number, (text, more) in enumerate(((config, []), (plain, ["-s", *settings])) if commands else ()):
        file = f"{name}-{number}.yaml"
        with open(file, "w") as stream:
            json.dump(text, stream)
        rows = command("run", file, *more, "-o", f"{name}-{number}", "--json", "-")
        assert [row["hash"] for row in rows] == [record.hash], (name, rows)
print(json.dumps(found))
"""


def use(folder: Path | str, cwd: Path, *, commands: bool = True) -> dict[str, dict]:
    """List every member and run a configuration with it from Python; with `commands` also from YAML and options."""
    (cwd / "t.pin").write_text("0x7f00: R 0x1f40\n0x7f04: W 0x1f60\n")
    members = []
    for path, (kind, _, change) in MEMBERS.items():
        trace = "trace" in (change or ())
        plain = {"trace": {"file": "t.pin", "format": "dinero"}} if trace else {"network": NETWORK}
        config = None if change is None else {**({} if trace else plain), **change}
        settings = [f"{key}={json.dumps(value)}" for key, value in (change or {}).items()]
        members.append([kind, name_of(path), config, plain, settings])
    done = python(folder, "-c", USE, json.dumps([commands, members]), cwd=cwd)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(found[name]["schema"] or config is None for _, name, config, _, _ in members)
    return {path: found[name_of(path)] for path in MEMBERS}


@pytest.fixture(scope="module")
def ours(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    return use(tree, tmp_path_factory.mktemp("ours"))


@pytest.mark.parametrize("path", MEMBERS)
def test_it_is_one_of_ours(ours: dict[str, dict], path: str) -> None:
    found = ours[path]
    assert "distribution" not in found["entry"] and not found.get("provenance")
    assert "plugins" not in found.get("config", {})


def outside(folder: Path, version: str, more: str = "") -> Path:
    """Install all members as another author's distribution in a folder; return what goes on the path."""
    site = folder / f"site-{version}"
    package = site / "theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    groups = ""
    for path, (_, group, _) in MEMBERS.items():
        if more.startswith("raise") and not path.endswith(".py"):
            continue
        source = re.sub(
            r"from (?:traces|hwmodel|reorder|edgewatt)[\w.]* import", "from edgewatt.plugins import", FILES[path]
        )
        (package / Path(path).name).write_text(source + more)
        value = "theirs" if path.endswith(".yaml") else f"theirs.{Path(path).stem}"
        groups += f"[{group}]\n{name_of(path)} = {value}\n"
    info = site / f"theirs-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(groups)
    return site


VERSIONS = ("1.0", "1.1")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, dict[str, dict]]]:
    """The members of each version installed, and what using them gave."""
    found = []
    for version in VERSIONS:
        cwd = tmp_path_factory.mktemp(version)
        site = outside(cwd, version)
        found.append((site, use(f"{site}{os.pathsep}{ROOT}", cwd, commands=not found)))
    return found


@pytest.mark.parametrize("path", MEMBERS)
def test_the_same_from_outside(theirs: list[tuple[Path, dict[str, dict]]], path: str) -> None:
    """Listed with its origin; used from YAML, command line and Python; named and hashed; a change is another point."""
    change = MEMBERS[path][2]
    hashes = set()
    for (_, every), version in zip(theirs, VERSIONS, strict=True):
        found = every[path]
        origin = {"distribution": "theirs", "version": version, "code": ""}
        assert origin.items() <= found["entry"].items()
        if change is not None:
            (used,) = found["config"]["plugins"].values()
            assert used == [{"name": name_of(path), **origin}]
            assert found["provenance"] == found["config"]["plugins"]
            hashes.add(found["hash"])
    if change is not None:
        assert len(hashes) == 2, "a changed plug-in is computed again"


LIST = """
import json, sys
import edgewatt as ew
print(json.dumps({kind: ew.config.catalogue(kind) for kind in sys.argv[1:]}))
"""


def test_one_that_cannot_be_loaded_stops_nobody(tmp_path: Path) -> None:
    path = f"{outside(tmp_path, '1.0', 'raise RuntimeError(' + repr('not today') + ')' + chr(10))}{os.pathsep}{ROOT}"
    kinds = [kind for member, (kind, _, _) in MEMBERS.items() if member.endswith(".py")]
    listed = json.loads(python(path, "-c", LIST, *kinds, cwd=tmp_path).stdout)
    for member, (kind, _, _) in MEMBERS.items():
        if kind in listed:
            entry = next(entry for entry in listed[kind] if entry["name"] == name_of(member))
            assert "theirs 1.0 cannot be loaded: RuntimeError: not today" in entry["summary"]
    (tmp_path / "run.yaml").write_text(json.dumps({"network": NETWORK}))
    ran = python(path, "-m", "edgewatt", "run", "run.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_plugins_has_every_name() -> None:
    import edgewatt.plugins

    for name in edgewatt.plugins.__all__:
        assert getattr(edgewatt.plugins, name) is not None
