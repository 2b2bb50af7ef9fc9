"""Commands on damaged and hostile files of every sort: one message that names the file, and nothing is written."""

import json
import pickle
import random
from pathlib import Path

import pytest
import yaml
from branching_models import tflite_cells
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.readers.native import save

pytestmark = pytest.mark.application

COMMANDS = {  # @: the file; OUT: what would be written
    "report": (["report", "@", "-o", "OUT"], ".json"),
    "compare": (["compare", "results", "@", "--json", "OUT"], ".json"),
    "schedule": (["schedule", "@", "--json", "OUT"], ".tflite"),
    "banks": (["schedule", "cells.tflite", "--banks", "@", "--json", "OUT"], ".yaml"),
    "bench": (["bench", "@", "-b", "8", "--json", "OUT"], ".yaml"),
    "network": (["bench", "@", "-b", "8", "--json", "OUT"], ".npz"),
    "optimize": (["optimize", "@", "-o", "OUT", "--executor", "inline"], ".yaml"),
    "learn": (["learn", "eon", "@", "--seconds", "1", "-o", "OUT"], ".npz"),
}
CONTENTS = {
    "empty": b"",
    "zeros": bytes(4096),
    "random": random.Random(0).randbytes(4096),
    "picture": b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(500),
    "pickle": pickle.dumps({"a": 1}),
    "2^63": b"9223372036854775808",
    "not finite": b'{"a": NaN, "b": [Infinity, -1e400]}',
    "deep": b"[" * 100_000,
    "deep mappings": b'{"a":' * 50_000,
    "object": b"!!python/object/apply:os.system ['touch executed']\n",
    "network": None,
    "model": None,
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    save(random_layered(3, 12, 0.3, seed=1), folder / "net.npz")
    (folder / "cells.tflite").write_bytes(tflite_cells())
    config = {"network": {"file": "net.npz"}, "fast_memory": {"size": 8}, "measure": "io"}
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    ew.run(str(folder / "run.yaml"), results=str(folder / "results"))
    return folder


def refused(words: list[str], file: Path) -> str:
    done = CliRunner().invoke(app, [str(file) if word == "@" else word for word in words])
    assert isinstance(done.exception, (InputError, SystemExit)), (words, repr(done.exception))
    assert done.exit_code in (1, 2) and not Path("OUT").exists() and not Path("executed").exists()
    return f"{done.output}{done.exception}"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_in_the_file(work: Path, monkeypatch: pytest.MonkeyPatch, command: str, content: str) -> None:
    monkeypatch.chdir(work)
    words, suffix = COMMANDS[command]
    if (content, suffix) in (("network", ".npz"), ("model", ".tflite")):
        return  # that is what it reads
    data = CONTENTS[content]
    file = work / f"given{suffix}"
    file.write_bytes(
        (work / {"network": "net.npz", "model": "cells.tflite"}[content]).read_bytes() if data is None else data
    )
    assert len(refused(words, file)) < 3000


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "folder", "loop"])
def test_what_is_no_file_at_all(work: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str) -> None:
    monkeypatch.chdir(work)
    words, suffix = COMMANDS[command]
    file = work / f"{kind}{suffix}"
    if kind == "folder":
        file.mkdir(exist_ok=True)
    elif kind == "loop" and not file.is_symlink():
        file.symlink_to(file.name)
    assert file.name in refused(words, file)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "9223372036854775808", "-1", "1e400", "null", '"text"', "[]"])
def test_a_record_with_another_number(work: Path, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    """Its checksum does not fit."""
    monkeypatch.chdir(work)
    (record,) = (work / "results" / "records").iterdir()
    text = record.read_text()
    total = json.loads(text)["canonical"]["results"]["io"]["total"]
    assert f'"total":{total}' in text
    (work / "given.json").write_text(text.replace(f'"total":{total}', f'"total":{number}'))
    for command in ("report", "compare"):
        assert "given.json" in refused(COMMANDS[command][0], work / "given.json")
