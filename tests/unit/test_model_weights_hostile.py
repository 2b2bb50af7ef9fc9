"""Shards that lie, and what a run left that was damaged since: one message, or the same result as without it."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from reorder.tuples.shards import order_weights
from reorder.tuples.shards.output import JOURNAL
from traces.base.errors import InputError
from traces.readers.parts.weights import INDEX, ModelWeights

DENSE = np.arange(1, 25, dtype=np.float32).reshape(4, 6)


def shard(tensors: dict[str, tuple[str, Any, bytes]]) -> bytes:
    """Return a file of NAME: (type, shape, bytes), whatever they claim."""
    header, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(data for *_, data in tensors.values())


def whole(*numbers: int) -> bytes:
    return np.array(numbers, "<i8").tobytes()


def model(folder: Path, data: bytes, name: str = "m.safetensors") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    return folder


def csr(indptr: tuple[int, ...], indices: tuple[int, ...], shape: tuple[int, int]) -> bytes:
    return shard(
        {
            "a.data": ("F32", [len(indices)], np.ones(len(indices), "<f4").tobytes()),
            "a.indices": ("I64", [len(indices)], whole(*indices)),
            "a.indptr": ("I64", [len(indptr)], whole(*indptr)),
            "a.shape": ("I64", [2], whole(*shape)),
        }
    )


def blocks(values: list[int], columns: tuple[int, ...], shape: tuple[int, int]) -> bytes:
    return shard(
        {
            "a.values": ("F32", values, np.ones(int(np.prod(values[1:])) * len(columns), "<f4").tobytes()),
            "a.crow_indices": ("I64", [2], whole(0, len(columns))),
            "a.col_indices": ("I64", [len(columns)], whole(*columns)),
            "a.shape": ("I64", [2], whole(*shape)),
        }
    )


def header(text: str) -> bytes:
    return len(text).to_bytes(8, "little") + text.encode()


PLACE = '{{"a": {{"dtype": "F32", "shape": {}, "data_offsets": {}}}}}'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header(PLACE.format("[1e999]", "[0, 0]")), "not a list of sizes"),
        (header(2 * PLACE.format("[0, 0]", "[0, 0]")).replace(b"}}{", b"}, "), "its header gives a name twice"),
        (header(PLACE.format("[-1, 0]", "[0, 0]")), "not a list of sizes"),
        (header(PLACE.format("[0, 0]", "[0, 0, 0]")), "damaged or not a safetensors"),
        (header(PLACE.format("[" + "9, " * 1_000_000 + "9]", "[0, 0]")), "not a list of sizes"),  # a product of hours
        (csr((0, 5, -(2**63), -1, 2), (0, 1), (4, 8)), "row pointers falls"),  # differences go round
        (csr((0, -(2**63), 2), (0, 1), (2, 8)), "row pointers falls"),
        (csr((0, 2), (0, 2**39), (1, 2**40)), "does not fit 32 bits"),
        (shard({"a": ("F32", [1 << 40, 0], b"")}), "1099511627776 rows of 'a' would take"),
        (blocks([0, 1 << 40, 1], (), (1 << 40, 1)), "1099511627776 rows of 'a' would take"),
        (blocks([1, 1, 4], (2**62 - 1,), (1, 8)), "a block outside the matrix"),  # times four it is 2^64 - 4
        (
            shard(
                {
                    "a.compressed": ("F32", [0], b""),
                    "a.bitmask": ("U8", [0], b""),
                    "a.shape": ("I64", [2], whole(1 << 40, 0)),
                }
            ),
            "1099511627776 rows of 'a' would take",
        ),
        (
            shard({"a": ("F32", [2, 2], bytes(16)), "a.indptr": ("F32", [1], bytes(4))}),
            "takes the name of tensor 'a.indptr': exclude it",
        ),
    ],
)  # fmt: skip
def test_shards_that_lie_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        order_weights(model(tmp_path / "m", data), tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.safetensors")), "no whole shard"


def test_blocks_of_any_width_may_be_none(tmp_path: Path) -> None:
    found = order_weights(model(tmp_path / "m", blocks([0, 1, 1 << 40], (), (1, 1 << 40))), tmp_path / "out")
    assert [each.tuples for each in found] == [0]


def test_tensors_on_each_other_are_refused(tmp_path: Path) -> None:
    one = '"{}": {{"dtype": "F32", "shape": [2, 2], "data_offsets": [{}, {}]}}'
    text = "{" + one.format("a", 0, 16) + ", " + one.format("b", 8, 24) + "}"
    with pytest.raises(InputError, match="'a' and 'b' lie on each other"):
        ModelWeights(model(tmp_path / "m", header(text) + bytes(24)))


def test_a_name_taken_in_another_shard(tmp_path: Path) -> None:
    folder = model(tmp_path / "m", save({"a": DENSE}), "1.safetensors")
    model(folder, save({"a.indptr": np.ones(1, np.float32)}), "2.safetensors")
    with pytest.raises(InputError, match=r"2\.safetensors: a matrix written as CSR takes the name"):
        order_weights(folder, tmp_path / "out")
    assert order_weights(model(tmp_path / "n", save({"b": DENSE})), tmp_path / "out")


@pytest.mark.parametrize("name", [JOURNAL, "m", "m.safetensors.partial"])
def test_shards_have_names_of_shards(tmp_path: Path, name: str) -> None:
    folder = model(tmp_path / "m", save({"a": DENSE}), name)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(InputError, match=r"ends in \.safetensors"):
        order_weights(folder, tmp_path / "out")


def test_a_shard_has_a_name_that_a_file_can_have(tmp_path: Path) -> None:
    folder = model(tmp_path / "m", save({"a": DENSE}))
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": "x" * 5000}}))
    with pytest.raises(InputError, match="which is not a file beside it"):
        order_weights(folder, tmp_path / "out")


def test_a_pipe_is_no_shard(tmp_path: Path) -> None:
    folder = model(tmp_path / "m", save({"a": DENSE}))
    os.mkfifo(folder / "pipe.safetensors")
    with pytest.raises(InputError, match="no regular file"):
        order_weights(folder, tmp_path / "out")


def test_what_is_not_kept_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All zeros but one: rows are looked at in parts, and the rest of them is not held."""
    monkeypatch.setattr("traces.readers.parts.weights._COUNTED_BYTES", 96)
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "40K")
    dense = np.zeros((1000, 24), np.float32)
    dense[777, 7] = 1
    for number, tensors in enumerate(
        (
            {"a": dense},
            {
                "a.compressed": dense[dense != 0],
                "a.bitmask": np.packbits(dense != 0, axis=1, bitorder="little"),
                "a.shape": np.array(dense.shape),
            },
        )
    ):
        matrix = ModelWeights(model(tmp_path / f"m{number}", save(tensors))).matrix("a")
        columns, words = matrix.entries(0, 1000)
        assert (columns.tolist(), words.view(np.float32).tolist()) == ([7], [1.0])
        assert matrix.pointers[777:779].tolist() == [0, 1]


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Path, list, dict[str, bytes]]:
    source, out = model(tmp_path / "m", save({"a": DENSE, "b": np.ones(3, np.float32)})), tmp_path / "out"
    found = order_weights(source, out, stride=2)
    return source, out, found, {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.mark.parametrize("change", ["sent", "sent wide", "figure", "start", "deep", "long"])
def test_a_damaged_journal_is_not_believed(run: tuple, change: str) -> None:
    source, out, found, files = run
    first, *lines = files[JOURNAL].decode().splitlines()
    groups = [line for line in lines if '"start"' in line]
    sent = next(line for line in lines if '"sent"' in line)
    changed = {
        "sent": '{"matrix":"a","sent":{"x":1}}',
        "sent wide": '{"matrix":"a","sent":{"original_ones_values":1e999,"ones_ids":[]}}',
        "figure": sent.replace("1", "2").replace("3", "4"),
        "start": groups[0].replace('"start":0', '"start":2'),
        "deep": "[" * 100_000,
        "long": "x" * (3 << 20),
    }[change]
    keep = [line for line in lines if line != sent]
    (out / JOURNAL).write_text("\n".join([first, *keep, changed]) + "\n")
    assert order_weights(source, out, stride=2) == found
    assert (out / "m.safetensors").read_bytes() == files["m.safetensors"]


def test_a_damaged_shard_is_made_again(run: tuple) -> None:
    source, out, found, files = run
    data = files["m.safetensors"]
    (out / "m.safetensors").write_bytes(data[:-20])
    assert order_weights(source, out, stride=2) == found and (out / "m.safetensors").read_bytes() == data
    journal = [line for line in files[JOURNAL].decode().splitlines() if '"shard"' not in line]
    for at in range(8, len(data), 5):  # half written, and damaged since
        (out / "m.safetensors").unlink()
        (out / "m.safetensors.partial").write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        (out / JOURNAL).write_text("\n".join(journal) + "\n")
        assert order_weights(source, out, stride=2) == found
        assert (out / "m.safetensors").read_bytes() == data, at
    assert (load_file(out / "m.safetensors")["b"] == 1).all()


@pytest.mark.parametrize("full", [JOURNAL, "m.safetensors.partial"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_message(run: tuple, full: str) -> None:
    source, out, _, _ = run
    for file in out.iterdir():
        file.unlink()
    (out / full).symlink_to("/dev/full")
    with pytest.raises(InputError, match="cannot be written"):
        order_weights(source, out, stride=2)
