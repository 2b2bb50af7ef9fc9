"""A configuration of a stranger names files: a pipe that nobody writes or an endless device is one message."""

import os
import re
from pathlib import Path

import pytest

import edgewatt as ew
from edgewatt import InputError
from edgewatt.config.loading import changes_of, read_with_paths
from traces.generators.networks import random_layered
from traces.readers.native import save

NETWORK = "network: {file: net.npz}\n"
MEMORY = "fast_memory: {size: 8}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(random_layered(3, 8, 0.4, seed=1), tmp_path / "net.npz")
    os.mkfifo(tmp_path / "pipe.yaml")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        MEMORY + "network: {file: NAME}\n",
        "trace: {file: NAME}\nsystem: edge\n",
        NETWORK + MEMORY + "orderings: [{kind: file, path: NAME}]\n",
        NETWORK + MEMORY + "orderings: [{kind: eon, checkpoint: NAME}]\n",
        NETWORK + "system: NAME\n",
        NETWORK + "system: edge\ntechnology: NAME\n",
        NETWORK + "system: edge\ndram: {part: NAME}\n",
    ],
)
@pytest.mark.parametrize("name", ["pipe.yaml", "/dev/zero"])
def test_no_pipe_and_no_device_is_read(folder: Path, text: str, name: str) -> None:
    (folder / "run.yaml").write_text(text.replace("NAME", str(folder / name)))
    with pytest.raises(InputError, match=r"a pipe or a device|unknown shipped|no such part|no such file"):
        ew.run(folder / "run.yaml", results=folder / "results")


@pytest.mark.parametrize("line", ("kind: file, path: NAME", "kind: eon, checkpoint: NAME"))
def test_files_of_orderings_are_looked_for_beside_the_configuration(
    folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of networks and traces are; those of `-s` in the working folder."""
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    said = f"orderings: [{{{line.replace('NAME', 'sub/mine.bin')}}}]\n"
    (folder / "run.yaml").write_text(NETWORK + MEMORY + said)
    with pytest.raises(InputError, match=re.escape(str(folder / "sub" / "mine.bin"))):
        ew.run(folder / "run.yaml", results=folder / "results")
    (folder / "sweep.yaml").write_text(f"base: run.yaml\ngrid: {{{said.strip()}}}\n".replace("sub/", "swept/"))
    with pytest.raises(InputError, match=re.escape(str(folder / "swept" / "mine.bin"))):
        ew.sweep(folder / "sweep.yaml", results=folder / "results")
    key = line.split(", ")[1].split(":")[0]
    document = read_with_paths(folder / "run.yaml")
    document.apply(changes_of([f"orderings.0.{key}=here.bin"], document))
    assert document.data["orderings"][0][key] == str(folder / "elsewhere" / "here.bin")


def test_a_name_that_no_file_can_have_is_one_message(folder: Path) -> None:
    for line in ("orderings: [{kind: file, path: NAME}]", "orderings: [{kind: eon, checkpoint: NAME}]"):
        (folder / "run.yaml").write_text(f"{NETWORK}{MEMORY}{line.replace('NAME', 'x' * 5000)}\n")
        with pytest.raises(InputError, match="cannot be read"):
            ew.run(folder / "run.yaml", results=folder / "results")


def test_nor_is_the_base_of_a_sweep(folder: Path) -> None:
    (folder / "sweep.yaml").write_text("base: pipe.yaml\ngrid: {seed: [1]}\n")
    with pytest.raises(InputError, match="a pipe or a device"):
        ew.sweep(folder / "sweep.yaml", results=folder / "results")
