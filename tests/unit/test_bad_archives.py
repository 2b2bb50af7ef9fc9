"""Damaged and hostile npz and npy files: one InputError that names the place, and no memory for what they claim."""

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from traces.base.archive import read_npy
from traces.base.errors import InputError
from traces.readers import load, native
from traces.readers.scipy_sparse import from_matrices
from traces.trace_files.npz import load_trace


def npz(path: Path, **arrays: object) -> Path:
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    return path


GOOD = dict(
    data=np.ones(2), indices=np.array([0, 1]), indptr=np.array([0, 1, 2]), shape=np.array([2, 2]), format=b"csr"
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(indices=np.array([0, 5])), r"entry 1 \(row 1, column 5.*outside the shape \(2, 2\)"),
        (dict(indices=np.array([0, -1])), "outside the shape"),
        (dict(indices=np.array([0.0, 1.0])), "'indices' must be one-dimensional integers"),
        (dict(indptr=np.array([0, 3, 2])), "'indptr' falls from 3 to 2 at position 1"),
        (dict(indptr=np.array([0, 2])), "'indptr' must have 3 values from 0 to 2"),
        (dict(data=np.array([1.0, np.nan])), r"entry 1 \(row 1, column 1.* is nan"),
        (dict(data=np.array([1j, 2])), "must be real numbers, not complex"),
        (dict(data=np.ones(3)), "3 values but 2 indices"),
        (dict(data=np.array(["a", "b"])), "must be real numbers"),
        (dict(data=np.array([object(), 1])), "pickled Python objects"),
        (dict(shape=np.array([2, 2, 2])), "two dimensions"),
        (dict(format=b"bsr"), "sparse format 'bsr' is not read"),
        (dict(format=np.array([1, 2])), "sparse format"),
    ],
)
def test_scipy_npz(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(npz(tmp_path / "m.npz", **{**GOOD, **change}))


def test_scipy_npz_without_an_array(tmp_path: Path) -> None:
    for name in GOOD:
        arrays = {key: value for key, value in GOOD.items() if key != name}
        with pytest.raises(InputError, match=f"array '{name}'.* is missing"):
            load(npz(tmp_path / "m.npz", **arrays))


def native_file(path: Path) -> bytes:
    native.save(from_matrices([np.ones((4, 4))]), path)
    return path.read_bytes()


def test_truncated_or_flipped_native_files_never_give_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    data = native_file(path)
    rng = np.random.default_rng(1)
    for cut in range(0, len(data), 37):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match=re.escape(str(path))):
            load(path)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            load(path)  # a flip in a time stamp or such changes nothing
        except InputError as error:
            refused += 1
            assert str(path) in str(error)
    assert refused > 150


def rewritten(path: Path, **changes: bytes | np.ndarray | None) -> Path:
    """Replace or drop members of a native file; bytes are taken as they are."""
    native_file(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for name, value in changes.items():
        if value is None:
            del members[f"{name}.npy"]
            continue
        buffer = io.BytesIO()
        if isinstance(value, np.ndarray):
            np.save(buffer, value)
        members[f"{name}.npy"] = value if isinstance(value, bytes) else buffer.getvalue()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(weights=header("(1000000000000,)") + b"1234"), "claims 4000000000000 bytes, 4 are stored"),
        (dict(weights=header("(9223372036854775807, 9223372036854775807)")), "claims .* bytes"),
        (dict(weights=header("(-4,)")), "shape of other things than lengths"),
        (dict(weights=b"\x93NUMPY\x07\x00"), "unknown npy version|damaged"),
        (dict(weights=b""), "damaged"),
        (dict(weights=np.ones(15, np.float32)), "weights has 15 values, expected 16"),
        (dict(weights=np.full(16, np.inf, np.float32)), r"weights\[0\] is inf"),
        (dict(sources=np.full(16, 200)), "connection 0: source neuron 200 does not exist"),
        (dict(sources=np.full(16, -1)), "connection 0: source neuron -1 does not exist"),
        (dict(sources=None), "array 'sources' is missing"),
        (dict(n_neurons=np.array(10**15)), "a network of 16 connections and 10+ neurons would take .* bytes of memory"),
        (dict(n_neurons=np.array([1, 2])), "'n_neurons' must be one integer"),
        (dict(activation=np.array(3)), "'activation' must be text"),
        (dict(activation=np.array("mish")), "unknown activation 'mish'"),
        (dict(edgewatt_network=np.array(99)), "version 99, this edgewatt reads version 1"),
    ],
)
def test_hostile_native_files(tmp_path: Path, changes: dict[str, bytes | np.ndarray | None], message: str) -> None:
    path = rewritten(tmp_path / "n.npz", **changes)
    with pytest.raises(InputError, match=message):
        load(path)


def test_a_zip_bomb_is_refused_before_it_unfolds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1M")
    path = rewritten(tmp_path / "n.npz", weights=np.zeros(1 << 20, np.float32))
    assert path.stat().st_size < 1 << 14
    with pytest.raises(InputError, match=r"take .* bytes of memory, more than the bound of 1,048,576: refused"):
        load(path)


DESCRIPTIONS = (
    "{'descr': '<f4', 'fortran_order': False, 'shape': (16,), ",  # the parser's TokenError
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 16), }",
    "{'descr': '<f4', 'fortran_order': 'no', 'shape': (16,), }",
    "{'descr': [('a', '<f4', (2**70,))], 'fortran_order': False, 'shape': (16,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 90,
    "{'descr': '|V0', 'fortran_order': False, 'shape': (16,), }",
    "[" * 99,
    "\\x00" * 20,
)


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_damaged_npy_headers(tmp_path: Path, text: str) -> None:
    raw = text.ljust(117).encode() + b"\n"
    whole = b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + bytes(64)
    with pytest.raises(InputError, match=r"n.npz: "):
        load(rewritten(tmp_path / "n.npz", weights=whole))
    (tmp_path / "order.npy").write_bytes(whole)
    with pytest.raises(InputError, match=r"order.npy: "):
        read_npy(tmp_path / "order.npy")


def test_a_header_that_shrank_does_not_load_a_part(tmp_path: Path) -> None:
    path = tmp_path / "n.npz"
    for shape in ("(8,)", "(15,)", "(0,)"):
        with pytest.raises(InputError, match=r"claims .* bytes, 64 are stored: the file is damaged"):
            load(rewritten(path, weights=header(shape) + np.ones(16, "<f4").tobytes()))
    np.save(tmp_path / "o.npy", np.arange(900))
    raw = (tmp_path / "o.npy").read_bytes()
    (tmp_path / "o.npy").write_bytes(raw.replace(b"(900,)", b"(100,)"))
    with pytest.raises(InputError, match="claims 800 bytes, 7200 are stored"):
        read_npy(tmp_path / "o.npy")


def test_text_of_characters_that_do_not_exist(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array("relu"))
    raw = buffer.getvalue()[:-16] + b"\xff" * 16
    with pytest.raises(InputError, match="characters that do not exist"):
        load(rewritten(tmp_path / "n.npz", activation=raw))


@pytest.mark.parametrize("shape", [(-1, 2), (2, -1), (2**62, 2**62)])
def test_hostile_csr_shapes(tmp_path: Path, shape: tuple[int, int]) -> None:
    arrays = dict(format=np.array("csr"), data=np.ones(1), indices=np.zeros(1, int), indptr=np.array([0, 1]))
    np.savez(tmp_path / "m.npz", shape=np.array(shape), **arrays)
    with pytest.raises(InputError, match=r"m.npz: "):
        load(tmp_path / "m.npz")


def test_small_arrays_that_unfold_into_a_large_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", str(64 << 20))
    path = rewritten(tmp_path / "n.npz", sources=np.zeros(1 << 20, np.uint8), targets=np.ones(1 << 20, np.uint8))
    with pytest.raises(InputError, match=r"a network of 1048576 connections and .* would take"):
        load(path)


@pytest.mark.parametrize("given", ["lots", "-1", "0", "1e9", "9" * 30])
def test_a_bound_that_is_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    native_file(tmp_path / "n.npz")
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", given)
    with pytest.raises(InputError, match=r"EDGEWATT_MAX_BYTES=.* is not a size in bytes"):
        load(tmp_path / "n.npz")


def test_a_long_list_of_members_is_refused_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1M")
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(2000):
            archive.writestr(f"{number}.npy", b"")
    for read in (load, load_trace, native.read_extras):
        with pytest.raises(InputError, match=r"m\.npz: the list of its members would take 1,7.* bytes of memory"):
            read(path)
