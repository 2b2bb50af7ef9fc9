"""Tuple orders of a model's weights: streamed from shards into shards, continued after a kill."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
from safetensors.numpy import load_file, save_file

import reorder.tuples.groups as groups
from reorder.tuples import order_tuples
from reorder.tuples.files import read_matrix
from reorder.tuples.shards import order_weights
from traces.base.errors import InputError
from traces.readers.parts.weights import ModelWeights

KINDS = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}


def pruned(rows: int, columns: int, kind: str, seed: int, keep: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dense = rng.normal(0, 0.02, (rows, columns)).astype(KINDS[kind])
    dense[rng.random((rows, columns)) >= keep] = 0
    return dense


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(groups, "GROUP_TUPLES", 500)
    monkeypatch.setattr("reorder.tuples.shards.stream._READ_TUPLES", 700)
    folder = tmp_path / "model"
    folder.mkdir()
    shards = {
        "model-00001-of-00002.safetensors": {
            "layers.0.q.weight": pruned(40, 96, "bf16", 0),
            "layers.0.norm.weight": np.ones(96, np.float32),
            "embed.weight": pruned(50, 96, "fp16", 1),
        },
        "model-00002-of-00002.safetensors": {
            "layers.10.q.weight": pruned(30, 200, "fp16", 2),
            "layers.2.q.weight": pruned(64, 96, "fp32", 3, 0.1),
        },
    }
    for file, tensors in shards.items():
        save_file(tensors, folder / file)
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def same_matrix(a: Any, b: Any) -> bool:
    return a.shape == b.shape and (a != b).nnz == 0 and a.nnz == b.nnz


def test_groups_of_a_stream_are_those_of_the_whole_matrix(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (model / "config.json").write_text("{}")
    found = order_weights(model, out, exclude=["embed*"], stride=16, effort=0.05, seed=3)
    assert (out / "config.json").read_text() == "{}"  # so that other programs know the model
    assert [each.name for each in found] == ["layers.0.q.weight", "layers.2.q.weight", "layers.10.q.weight"]
    for each in found:
        given = read_matrix(model, names=[each.name])
        whole = order_tuples(
            given, value_format=each.value_format, stride=16, effort=0.05, seed=3, bound=False, method="local-search"
        )
        written = read_matrix(out, names=[each.name])
        assert same_matrix(written, given)
        assert (written.indices == whole.matrix().indices).all() and (written.data == whole.matrix().data).all()
        assert (each.ones_values, each.ones_ids) == (whole.ones_values, whole.ones_ids)
        assert each.original_ones_values + each.original_ones_ids == whole.original_ones
    assert (load_file(out / "model-00001-of-00002.safetensors")["embed.weight"] != 0).any(), "the others are taken over"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on(model: Path, tmp_path: Path, workers: int) -> None:
    whole, out, told = tmp_path / "whole", tmp_path / "out", []
    expected = order_weights(model, whole, stride=16, effort=0)

    def kill(at: int) -> Any:
        def progress(done: int, total: int | None, text: str) -> None:
            if done > at:
                raise KeyboardInterrupt

        return progress

    for at in (1000, 3000, 6000):
        with pytest.raises(KeyboardInterrupt):
            order_weights(model, out, stride=16, effort=0, progress=kill(at), workers=workers)
        with open(out / "journal.jsonl", "a") as journal:
            journal.write('{"matrix":"layers.2.q.weight","sta')  # as a kill leaves it
    found = order_weights(model, out, stride=16, effort=0, progress=lambda d, t, x: told.append(d), workers=workers)
    assert found == expected and told[0] > 1000
    for file in whole.glob("*.safetensors"):
        assert (out / file.name).read_bytes() == file.read_bytes()
    assert not list(out.glob("*.partial"))
    again: list[int] = []
    assert order_weights(model, out, stride=16, effort=0, progress=lambda d, t, x: again.append(d)) == expected
    assert not again, "nothing is done twice"
    (out / "model-00002-of-00002.safetensors").rename(out / "model-00002-of-00002.safetensors.partial")
    assert order_weights(model, out, stride=16, effort=0) == expected
    (out / "model-00001-of-00002.safetensors").unlink()
    assert order_weights(model, out, stride=16, effort=0) == expected
    for file in whole.glob("*.safetensors"):
        assert (out / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("part", ["data", "indices", "indptr", "norm.weight"])
def test_a_finished_shard_that_was_changed_is_made_again(model: Path, tmp_path: Path, part: str) -> None:
    """It was believed by its name, size and header: zeros stayed, in silence."""
    out = tmp_path / "out"
    expected = order_weights(model, out, stride=16, effort=0)
    shard = out / "model-00001-of-00002.safetensors"
    good = shard.read_bytes()
    header = json.loads(good[8 : 8 + int.from_bytes(good[:8], "little")])
    start, stop = next(v["data_offsets"] for name, v in header.items() if name.endswith(part))
    base = 8 + int.from_bytes(good[:8], "little")
    shard.write_bytes(good[: base + start] + bytes(stop - start) + good[base + stop :])
    assert order_weights(model, out, stride=16, effort=0) == expected
    assert shard.read_bytes() == good


def damage(rng: np.random.Generator, file: Path) -> None:
    """Flip bits of a file, put zeros into it, cut it, lengthen it or take it away."""
    raw = bytearray(file.read_bytes())
    at, kind = int(rng.integers(len(raw) + 1)), rng.integers(8)
    if kind < 4 and raw:
        for _ in range(int(rng.integers(1, 4))):
            raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
    elif kind < 6:
        raw[at : at + int(rng.integers(1, 2000))] = bytes(min(len(raw) - at, int(rng.integers(1, 2000))))
    elif kind == 6:
        raw = raw[:at]
    else:
        file.unlink()
        return
    file.write_bytes(raw)


def kill_and_flip(model: Path, out: Path, expected: list[Any], files: dict[str, bytes], seed: int) -> str:
    """Kill a run up to three times, damage what it left, let it end; return 'same', 'refused' or what is wrong."""
    rng = np.random.default_rng(seed)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, 9000))

        def progress(done: int, total: int | None, text: str, at: int = at) -> None:
            if done > at:
                raise KeyboardInterrupt

        try:
            order_weights(model, out, stride=16, effort=0, progress=progress)
        except KeyboardInterrupt:
            pass
        except InputError:
            return "refused"
        for _ in range(rng.integers(1, 3)):
            left = sorted(file for file in out.iterdir() if file.is_file())
            if left:
                damage(rng, left[rng.integers(len(left))])
    try:
        found = order_weights(model, out, stride=16, effort=0)
    except InputError:
        return "refused"
    if found != expected:
        return "other counts"
    return next((f"other bytes in {name}" for name, raw in files.items() if (out / name).read_bytes() != raw), "same")


def test_kills_and_damage_change_nothing(model: Path, tmp_path: Path) -> None:
    expected = order_weights(model, tmp_path / "whole", stride=16, effort=0)
    files = {file.name: file.read_bytes() for file in (tmp_path / "whole").glob("*.safetensors*")}
    rounds = int(os.environ.get("EDGEWATT_TEST_ROUNDS", "25"))
    became = Counter(kill_and_flip(model, tmp_path / f"out{seed}", expected, files, seed) for seed in range(rounds))
    print(became)
    assert set(became) <= {"same", "refused"} and became["same"] > rounds // 2, became


def forms(dense: np.ndarray) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    kept = dense != 0
    yield "bitmask", {
        "w.compressed": dense[kept], "w.bitmask": np.packbits(kept, axis=1, bitorder="little"),
        "w.shape": np.array(dense.shape), "w.row_offsets": np.cumsum(kept.sum(1)) - kept.sum(1),
    }  # fmt: skip
    csr = scipy.sparse.csr_matrix(dense.astype(np.float32))
    yield (
        "csr",
        {"w.data": dense[kept], "w.indices": csr.indices, "w.indptr": csr.indptr, "w.shape": np.array(csr.shape)},
    )
    bsr = csr.tobsr((2, 4))
    yield "blocks", {
        "w.values": bsr.data.astype(dense.dtype), "w.col_indices": bsr.indices.astype(np.int64),
        "w.crow_indices": bsr.indptr.astype(np.int64), "w.shape": np.array(csr.shape),
    }  # fmt: skip
    fours = dense.reshape(-1, 4).copy()  # 2:4: two of four
    fours[np.arange(len(fours))[:, None], np.argsort(np.abs(fours.astype(np.float32)), axis=1)[:, :2]] = 0
    fours[:, :2] = np.where((fours != 0).sum(1, keepdims=True) == 2, fours[:, :2], np.ones(2, dense.dtype))
    fours[:, 2:] = np.where((fours != 0).sum(1, keepdims=True) == 2, fours[:, 2:], np.zeros(2, dense.dtype))
    fours = fours.reshape(dense.shape)
    kept = fours != 0
    if (kept.reshape(-1, 4).sum(1) == 2).all():
        yield "2:4", {
            "w.compressed": fours[kept].reshape(len(dense), -1),
            "w.bitmask": np.packbits(kept, axis=1, bitorder="little"), "w.shape": np.array(dense.shape),
        }  # fmt: skip


@pytest.mark.parametrize("form", range(4))
def test_sparse_formats_are_read(tmp_path: Path, form: int) -> None:
    dense = pruned(24, 40, "fp16", 5)
    kinds = list(forms(dense))
    if form >= len(kinds):
        pytest.skip("no such form of this matrix")
    _, tensors = kinds[form]
    (tmp_path / "m").mkdir()
    save_file({name: np.ascontiguousarray(a) for name, a in tensors.items()}, tmp_path / "m" / "model.safetensors")
    weights = ModelWeights(tmp_path / "m")
    assert weights.names() == ["w"]
    given = read_matrix(tmp_path / "m", names=["w"])
    if kinds[form][0] != "2:4":
        assert (given.toarray() == dense.astype(np.float32)).all()
    matrix = weights.matrix("w")
    whole = matrix.entries(0, 24)
    parts = [matrix.entries(at, min(at + 5, 24)) for at in range(0, 24, 5)]
    for k in range(2):
        assert (np.concatenate([part[k] for part in parts]) == whole[k]).all()
    (found,) = order_weights(tmp_path / "m", tmp_path / "out", stride=8, effort=0)
    assert found.tuples == given.nnz
    assert same_matrix(read_matrix(tmp_path / "out", names=["w"]), given)


def test_what_cannot_be_used_is_named(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"no matrix fits 'layer\.\*'"):
        order_weights(model, out, include=["layer.*"])
    with pytest.raises(InputError, match="no matrix is left"):
        order_weights(model, out, include=["embed*"], exclude=["*"])
    with pytest.raises(InputError, match="name another folder"):
        order_weights(model, model)
    file = model / "model-00002-of-00002.safetensors"
    raw = file.read_bytes()
    file.write_bytes(raw[:-100])
    with pytest.raises(InputError, match=r"00002-of-00002.*damaged"):
        order_weights(model, out)
    file.write_bytes(raw)
    tensors = dict(load_file(file))
    tensors["layers.10.q.weight"] = tensors["layers.10.q.weight"].copy()
    tensors["layers.10.q.weight"][3, 7] = np.inf
    save_file(tensors, file)
    with pytest.raises(InputError, match=r"entry \(3, 7\) is not finite"):
        order_weights(model, out, include=["layers.10*"])
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../etc/passwd"}}')
    with pytest.raises(InputError, match="which is not a file beside it"):
        order_weights(model, out)


def test_the_command_takes_a_folder(model: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from edgewatt.cli import app

    run = lambda *words: CliRunner().invoke(app, ["order-tuples", str(model), *words])  # noqa: E731
    out = tmp_path / "out"
    ran = run("-o", str(out), "--include", "layers.*", "--exclude", "*.10.*", "--effort", "0", "--json", "-")
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)["matrices"]
    assert [each["name"] for each in said] == ["layers.0.q.weight", "layers.2.q.weight"]
    shown = run("-o", str(out), "--include", "layers.*", "--exclude", "*.10.*", "--effort", "0")
    assert shown.exit_code == 0 and "layers.2.q.weight" in shown.stdout and "all" in shown.stdout
    for words, why in (([], "say with -o"), (["-o", str(out), "--density", "0.5"], "--density is for one matrix")):
        refused = run(*words)
        assert refused.exit_code != 0 and why in str(refused.exception or refused.output)
