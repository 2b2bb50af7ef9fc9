"""Caches, buses, systems and parts that another distribution brings as YAML files: listed, used, hashed."""

import json
from pathlib import Path

import pytest

from tests.outside import run_with, write_distribution

pytestmark = pytest.mark.application

FILES = {
    "own-buffer": "description: a small buffer\nsize_bytes: 1024\nline_bytes: 64\nways: 4\npolicy: plru\n",
    "own-wires": "description: sixteen wires\nbus_bytes: 2\nblock_bytes: 32\n",
    "own-part": "extends: lpddr4-3200\nname: own-part\nnote: slower\ntiming: {tRCD_ns: {value: 25, source: a guess}}\n",
    "own-board": "caches: [own-buffer]\nbus: own-wires\nencoder: dbi-ac\ndram: {part: own-part}\n",
}
GROUPS = {"caches": "own-buffer", "buses": "own-wires", "parts": "own-part", "systems": "own-board"}
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
SHOW = (
    f"GROUPS = {GROUPS!r}"
    + """
import json, sys
import edgewatt as ew
record = ew.run(json.loads(sys.argv[1]))[0]
schema = json.dumps(ew.schema())
print(json.dumps({
    "hash": record.hash, "config": record.config, "plugins": record.provenance.get("plugins"),
    "listed": {kind: next(e for e in ew.catalogue(kind) if e["name"] == name) for kind, name in GROUPS.items()},
    "schema": [name in schema for name in GROUPS.values()],
}))
"""
)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "boards").mkdir()
    for name, text in FILES.items():
        (tmp_path / "boards" / f"{name}.yaml").write_text(text)
    points = "".join(f"[edgewatt.{kind}]\n{name} = boards\n" for kind, name in GROUPS.items())
    return write_distribution(tmp_path, "boards", "2.1", {"boards/__init__": ""}, points)


def test_files_of_another_distribution(installed: Path) -> None:
    config = {"network": NETWORK, "system": "own-board"}
    done = run_with(installed, "-c", SHOW, json.dumps(config), cwd=installed)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == [True] * 4
    assert {entry["distribution"] for entry in found["listed"].values()} == {"boards"}
    used = found["config"]
    assert (used["caches"][0]["policy"], used["bus"]["bus_bytes"], used["encoder"]) == ("plru", 2, "dbi-ac")
    assert used["dram"]["part"] == "own-part" and found["plugins"]["dram"][0]["version"] == "2.1"
    (installed / "run.yaml").write_text(json.dumps(config))
    (installed / "bare.yaml").write_text(json.dumps({"network": NETWORK}))
    for words in (["run.yaml"], ["bare.yaml", "-s", "system=own-board"]):
        ran = run_with(installed, "-m", "edgewatt", "run", *words, "-o", "r", "--json", "-", cwd=installed)
        assert [row["hash"] for row in json.loads(ran.stdout)] == [found["hash"]], ran.stderr
    path = installed / "boards" / "own-buffer.yaml"
    path.write_text(path.read_text().replace("1024", "2048"))
    again = json.loads(run_with(installed, "-c", SHOW, json.dumps(config), cwd=installed).stdout)
    assert again["hash"] != found["hash"], "what the file says is part of the point"
