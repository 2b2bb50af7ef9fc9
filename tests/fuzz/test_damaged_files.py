"""A short slice of `python -m fuzz.damage 10000`: damaged files give an InputError or a result, in time and memory."""

from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("tflite")
pytest.importorskip("zstandard")

from fuzz.damage import attack
from fuzz.samples import samples


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return samples(tmp_path_factory.mktemp("samples"))


def test_every_reader_survives_damage(files: dict, tmp_path: Path) -> None:
    finds = [f"{name}: {find}" for name, sample in files.items() for find in attack(sample, 40, 1, tmp_path)]
    assert not finds, "\n".join(finds[:5])


def test_whole_files_are_read(files: dict, tmp_path: Path) -> None:
    for name, (file, data, read) in files.items():
        (tmp_path / file).write_bytes(data)
        assert read(tmp_path / file) is not None, name
