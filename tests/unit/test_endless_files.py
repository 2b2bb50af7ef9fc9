"""Files of gigabytes that hold next to nothing: refused by their size or their first line, not read whole."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import edgewatt as ew
from reorder.edges.methods.given import read_order
from traces.base.errors import InputError

GIGABYTES = 3 << 30
HEADS = {
    "m.mtx": b"%%MatrixMarket matrix coordinate real general\n3 3 1\n",
    "header.mtx": b"%%MatrixMarket matrix coordinate real general\n%",
    "array.mtx": b"%%MatrixMarket matrix array real general\n3 3\n",
    "n8-l1.tsv": b"1\t1\t0.5\n",
}


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let files take a gigabyte, and see that none did."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20, "KiB"


def sparse(path: Path, head: bytes = b"") -> Path:
    with path.open("wb") as stream:
        stream.write(head)
        stream.truncate(GIGABYTES)
    return path


@pytest.mark.parametrize("name", HEADS)
def test_matrices_without_an_end_of_line(name: str, tmp_path: Path) -> None:
    """The line was read whole: minutes, and memory beyond the bound."""
    file = sparse(tmp_path / name, HEADS[name])
    with pytest.raises(InputError, match=f"{name}:[23]: a line of more than 65,536 characters"):
        ew.load(file)


@pytest.mark.parametrize(
    "read",
    [
        ew.load,
        ew.dram.load_part,
        ew.results.load_records,
        ew.config.load_sweep,
        ew.cache.load_trace,
        ew.run,
        read_order,
    ],
)
@pytest.mark.parametrize(
    "suffix", ["npz", "npy", "json", "yaml", "txt", "safetensors", "onnx", "tflite", "mtx", "csv", "gz"]
)
def test_a_file_of_nothing(read: Callable[[Path], object], suffix: str, tmp_path: Path) -> None:
    file = sparse(tmp_path / f"x.{suffix}")
    with pytest.raises(InputError, match=r"x\."):
        read(file)
