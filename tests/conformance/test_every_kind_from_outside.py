"""Every kind of `edgewatt list` takes members of other distributions: named in configurations, on the command line and
in Python, listed with their origin, in the JSON Schema, named in records, and computed again when they change."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgewatt.catalogue import lists
from edgewatt.config.kinds import NAMED_BY
from edgewatt.plugins import KINDS, registry
from tests.outside import run_with, write_distribution
from tests.outside_kinds import CACHE, CASES, Case, settings
from tests.outside_members import C_POLICY
from traces.base import registry as registries
from traces.base.resources import GROUPS

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5, "seed": 1}}
EVERY = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.name}")
NAMED = [case for case in CASES if case.config]
FILE_KINDS = {"parts": "dram", "caches": "cache", "buses": "bus", "systems": "systems"}
FILE_KINDS |= {"technologies": "onchip", "sweeps": "sweeps"}


def group_of(kind: str) -> str:
    """Return the entry points' group of a kind."""
    return str(registry(kind).entry_point_group) if kind in KINDS else GROUPS[FILE_KINDS[kind]]


def test_every_kind_has_a_case() -> None:
    """A new kind is caught here: of lists, of points, and any registry that reads entry points."""
    kinds = {case.kind for case in CASES}
    assert kinds == set(lists())
    assert {case.kind for case in NAMED} >= set(NAMED_BY.values()) | set(FILE_KINDS) - {"sweeps"}
    assert all(bool(case.config) != bool(case.because) for case in CASES)
    for kind in KINDS:
        registry(kind)
    groups = {one.entry_point_group for one in registries._ALL if one.entry_point_group}
    outside = {group for group in groups if group.startswith("edgewatt.") and group.split(".")[1] in _documented()}
    assert groups - outside == set(), "a registry whose members are in no list and no case"
    assert set(GROUPS) == set(FILE_KINDS.values())


def _documented() -> set[str]:
    return {group_of(case.kind).split(".")[1] for case in CASES}


def test_the_guide_names_every_group() -> None:
    guide = (ROOT / "docs" / "guides" / "extending.md").read_text()
    assert [case.kind for case in CASES if f"`{group_of(case.kind)}`" not in guide] == []


def technology() -> str:
    text = (ROOT / "configs" / "onchip" / "lop-22nm.yaml").read_text()
    return text.replace("technology_nm: 22", "technology_nm: 21")


def install(folder: Path, version: str, change: str = "") -> Path:
    """Install all members as one distribution of another author; change: what all its files end with."""
    site = folder / "site"
    (site / "theirs").mkdir(parents=True)
    modules, points = {"theirs/__init__": ""}, ""
    for number, case in enumerate(CASES):
        source = technology() if case.source == "TECHNOLOGY" else case.source
        if case.is_file:
            (site / "theirs" / f"{case.name}.yaml").write_text(source + change)
        else:
            modules[f"theirs/member_{number}"] = source + change
        module = "theirs" if case.is_file else f"theirs.member_{number}"
        points += f"[{group_of(case.kind)}]\n{case.name} = {module}\n"
    (folder / "policy.c").write_text(C_POLICY)
    compiler = ["cc", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'cython_ext'}"]
    subprocess.run([*compiler, "-o", site / "theirs" / "first_way.so", folder / "policy.c"], check=True)
    write_distribution(site, "theirs", version, modules, points)
    return site


USE = """
import json, os, sys, traceback
import numpy as np, scipy.sparse
import edgewatt as ew
from edgewatt.cli import app
from typer.testing import CliRunner

given = json.loads(sys.argv[1])
BASE, CACHE = given["base"], given["cache"]
with open("base.yaml", "w") as stream:
    json.dump(BASE, stream)
with open("layer.dense", "w") as stream:
    stream.write("1 0 2\\n0 3 4.5\\n")
with open("t.own", "w") as stream:
    stream.write("access 40 in\\naccess 80 out\\n")
with open("t.din", "w") as stream:
    stream.write("r 40 20\\nw 80 20\\n")
with open("buffers.csv", "w") as stream:
    stream.write("id,lower,upper,size\\na,0,1,8\\nb,2,3,8\\n")
with open("slow.json", "w") as stream:
    json.dump({"one-line": "slow", "tck_ns": 1.25}, stream)
matrix = scipy.sparse.csr_matrix(np.arange(1, 7, dtype=np.float32)[None])
scipy.sparse.save_npz("matrix.npz", matrix)
from traces.generators.networks import random_layered
network = random_layered(n_layers=2, width=8, density=0.5, seed=1)
import shutil; shutil.copy(given["net"], "net.npz")
trace = ew.build_trace(network)
ew.cache.save_trace(trace, "trace.npz")
ew.run(BASE, results="results")


def command(*words):
    if os.path.exists("out"):
        os.remove("out")
    done = CliRunner().invoke(app, words)
    written = open("out").read() if os.path.exists("out") else ""
    said = {"said": done.output, "out": done.stdout, "written": written}
    return {"status": done.exit_code, "error": repr(done.exception), **said}


found = []
schema = json.dumps(ew.config.schema())
for case in given["cases"]:
    one = {"schema": case["name"] in schema}
    listed = command("list", case["kind"], "--json", "-")
    one["listed"] = [entry for entry in json.loads(listed["said"]) if entry["name"] == case["name"]]
    if case["config"]:
        config = {key: value for key, value in BASE.items() if not ("trace" in case["config"] and key == "network")}
        config |= case["config"]
        record = ew.run(config, results=os.path.join("kept", case["name"]))[0]
        with open("named.yaml", "w") as stream:
            json.dump(config, stream)
        rows = command("run", "named.yaml", "-o", "yaml", "--json", "-")
        one |= {"hash": record.hash, "plugins": record.provenance.get("plugins", {}), "yaml": rows}
        one["kept"] = len(os.listdir(os.path.join("kept", case["name"], "records")))
        one["differences"] = ew.results.rerun(record)
    if given["all"]:
        one["command"] = command(*case["command"])
        try:
            exec(case["python"], dict(globals()))
            one["python"] = ""
        except BaseException:
            one["python"] = traceback.format_exc()
        if "settings" in case:
            one["set"] = command(*case["settings"], "-o", "set", "--json", "-")
    found.append(one)
print("FOUND" + json.dumps(found))
"""


def use(site: Path, folder: Path, *, every: bool) -> dict[str, dict[str, Any]]:
    cases = []
    for case in CASES:
        one = {"kind": case.kind, "name": case.name, "config": case.config}
        one |= {"python": case.python, "command": case.command}
        if case.config and "trace" not in case.config:
            one["settings"] = settings(case.config)
        cases.append(one)
    net = str(ROOT / "configs" / "examples" / "networks" / "digits_small.npz")
    words = {"net": net, "base": {"network": NETWORK}, "cache": CACHE, "cases": cases, "all": every}
    done = run_with(site, "-c", USE, json.dumps(words), cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout[done.stdout.index("FOUND") + 5 :])
    return {case.name: one for case, one in zip(CASES, found, strict=True)}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The installed distribution, and the folder in which it is used."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "work").mkdir()
    return install(folder, "3.4"), folder / "work"


@pytest.fixture(scope="module")
def used(places: tuple[Path, Path]) -> dict[str, dict[str, Any]]:
    return use(*places, every=True)


@EVERY
def test_it_is_listed_with_its_origin(used: dict[str, dict[str, Any]], places: tuple[Path, Path], case: Case) -> None:
    (entry,) = used[case.name]["listed"]
    assert (entry["distribution"], entry["version"]) == ("theirs", "3.4"), entry


@EVERY
def test_it_works_in_python(used: dict[str, dict[str, Any]], case: Case) -> None:
    assert used[case.name]["python"] == ""


@EVERY
def test_it_works_on_the_command_line(used: dict[str, dict[str, Any]], case: Case) -> None:
    done = used[case.name]["command"]
    assert done["status"] == 0, done
    assert case.says in done["said"] + done["written"], done


@pytest.mark.parametrize("case", NAMED, ids=lambda case: f"{case.kind}: {case.name}")
def test_a_configuration_names_it(used: dict[str, dict[str, Any]], case: Case) -> None:
    """One point, whoever says it: a program, a file, an option."""
    found = used[case.name]
    assert found["schema"] or case.kind not in {*NAMED_BY.values(), *FILE_KINDS}, "it is not in the JSON Schema"
    for said in ("yaml", *(["set"] if "set" in found else [])):
        assert found[said]["status"] == 0, found[said]
        assert [row["hash"] for row in json.loads(found[said]["said"])] == [found["hash"]]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: f"{case.kind}: {case.name}")
def test_its_record_says_who_brought_it(used: dict[str, dict[str, Any]], case: Case) -> None:
    found = used[case.name]
    brought = [one for ones in found["plugins"].values() for one in ones if one["name"] == case.name]
    (entry,) = found["listed"]
    assert brought == [{"name": case.name, **{key: entry[key] for key in ("distribution", "version", "code")}}]
    assert found["differences"] == [], "the same run again is the same"


@pytest.mark.parametrize("name", ["last-source", "backwards", "last-first", "stack", "fp8_e3m4"])
def test_what_a_command_reports_says_who_brought_it(used: dict[str, dict[str, Any]], name: str) -> None:
    """Members that no record names: those of commands that find orders, schedules and places."""
    report = json.loads(used[name]["command"]["out"])
    (entry,) = used[name]["listed"]
    origin = {"name": name, **{key: entry[key] for key in ("distribution", "version", "code")}}
    assert [one for ones in report["plugins"].values() for one in ones] == [origin]


def test_one_that_changed_is_computed_again(
    used: dict[str, dict[str, Any]], places: tuple[Path, Path], tmp_path: Path
) -> None:
    """Another version, in the same results folders."""
    again = use(install(tmp_path, "3.5"), places[1], every=False)
    for case in NAMED:
        assert again[case.name]["hash"] != used[case.name]["hash"], case.name
        assert (used[case.name]["kept"], again[case.name]["kept"]) == (1, 2), case.name


def test_one_that_cannot_be_loaded_stops_nobody(places: tuple[Path, Path], tmp_path: Path) -> None:
    """It is listed with the reason; all others, ours too, go on."""
    site = install(tmp_path, "3.5")
    for file in site.glob("theirs/member_*.py"):
        file.write_text("raise RuntimeError('not today')\n")
    (tmp_path / "slow.json").write_text("{}")
    code = """
import json, sys
import edgewatt as ew
from hwmodel.part_readers.reader import import_part
from edgewatt.plugins import InputError
for kind, name in json.loads(sys.argv[1]):
    (entry,) = [entry for entry in ew.config.catalogue(kind) if entry["name"] == name]
    assert "theirs 3.5 cannot be loaded: RuntimeError: not today" in entry["summary"], entry
    assert len(ew.config.catalogue(kind)) > 1
network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
ew.run({"network": network})
try:
    import_part("slow.json")
except InputError as error:
    assert "no memory specification of a known format" in str(error), error
from traces.generators.networks import random_layered
found = ew.orders.bench(random_layered(n_layers=2, width=8, density=0.5), batch=4, order=None)
assert "not today" in found.missing["einsum"]
"""
    members = [(case.kind, case.name) for case in CASES if not case.is_file]
    done = run_with(site, "-c", code, json.dumps(members), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_name_nobody_brings_is_refused_where_it_stands(places: tuple[Path, Path], tmp_path: Path) -> None:
    """With line and column, and the outside member whose name is like it."""
    (tmp_path / "t.own").write_text("access 40 in\n")
    (tmp_path / "wrong.yaml").write_text("trace:\n  file: t.own\n  format: own-trcae\n")
    done = run_with(places[0], "-m", "edgewatt", "run", "wrong.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "wrong.yaml:3:11" in done.stderr and "did you mean 'own-trace'" in done.stderr.replace("\n", " ")
