"""Damaged and hostile files: one InputError that names the place, whatever is in the file."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from fuzz.other_samples import SCALESIM
from safetensors.numpy import save_file
from typer.testing import CliRunner

from edgewatt.cli import app
from edgewatt.cli.parts.source import read_image, read_windows
from edgewatt.runs.plan import load_sweep
from hwmodel.energy.technology import load_technology
from hwmodel.parts.part import AddressMap
from hwmodel.parts.part_file import load_part
from hwmodel.replay.profile import parse_level
from reorder.edges.methods.given import read_order
from reorder.operators.schedule.traffic import offchip_traffic
from reorder.tuples.files import read_matrix
from traces.accelerators.scalesim import read_counts, read_run
from traces.base.document import ConfigError, Document, parse_document, read_document
from traces.base.errors import InputError
from traces.readers import load

MTX = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n4-l1.tsv", "1\t1\t1\n1\t2\n", r"n4-l1.tsv:2: 2 fields, expected row, column and value"),
        ("n4-l1.tsv", "1\t1\t1\n\n1\t5\t1\n", r"n4-l1.tsv:3: column 5 is out of range: ids run from 1 to 4"),
        ("n4-l1.tsv", "0\t1\t1\n", r"n4-l1.tsv:1: row 0 is out of range"),
        ("n4-l1.tsv", "-1\t1\t1\n", r"n4-l1.tsv:1: row -1 is out of range"),
        ("n4-l1.tsv", "1.5\t1\t1\n", r"n4-l1.tsv:1: row '1.5' is not a whole number"),
        ("n4-l1.tsv", "1\tx\t1\n", r"n4-l1.tsv:1: column 'x' is not a whole number"),
        ("n4-l1.tsv", f"{2**64}\t1\t1\n", r"n4-l1.tsv:1: row 18446744073709551616 is out of range"),
        ("n4-l1.tsv", "1\t1\tnan\n", r"n4-l1.tsv:1: value nan is not finite"),
        ("n4-l1.tsv", "1\t1\t1e999\n", r"n4-l1.tsv:1: value 1e999 is not finite"),
        ("n4-l1.tsv", "1\t1\t1\n1\t1\t1e39\n", r"n4-l1.tsv:2 \(row 0, column 0.*1e\+39: not a finite float32"),
        ("n4-l1.tsv", "1\t1\t0x1\n", r"n4-l1.tsv:1: value '0x1' is not a number"),
        ("n4-l1.tsv", "1\t1\té\n", r"n4-l1.tsv:1: value .* is not a number"),
        ("n4-l1.tsv", "1\t1\t1\n2\t1\t1\n\n1\t1\t2\n", r"n4-l1.tsv:4 \(row 0, column 0.*is there twice"),
        ("n4-l1.tsv", "", r"n4-l1.tsv: the network is empty"),
        ("a.tsv", f"{2**62}\t1\t1\n", r"a.tsv: a matrix of shape .* would take"),
        ("a.mtx", "hello\n", r"a.mtx:1: no Matrix Market file"),
        ("a.mtx", MTX, r"a.mtx: ends before the sizes"),
        ("a.mtx", MTX.replace("real", "complex"), r"a.mtx:1: 'complex' matrices cannot be read"),
        ("a.mtx", MTX + "2 2\n", r"a.mtx:2: expected the sizes"),
        ("a.mtx", MTX + "2 2 2\n1 1 1\n", r"a.mtx:2: 2 entries announced, 1 found"),
        ("a.mtx", MTX + "%x\n2 2 1\n3 1 1\n", r"a.mtx:4: row 3 is out of range: ids run from 1 to 2"),
        ("a.mtx", MTX + "2 2 1\n1 1 one\n", r"a.mtx:3: value 'one' is not a number"),
        ("a.mtx", MTX + "0 2 0\n", r"a.mtx: an empty matrix"),
        ("a.mtx", MTX + "2 2 0\n", r"a.mtx: the network is empty"),
        (
            "a.mtx",
            MTX + f"{2**40} 2 1\n1 1 1\n",
            r"a.mtx: a matrix of shape .* would take .* bytes of memory",
        ),
        ("a.mtx", MTX.replace("coordinate", "array") + "2 1\n1\nx\n", r"a.mtx:4: 'x' is not one number"),
        ("a.mtx", MTX.replace("coordinate", "array") + "2 1\n1\n1_0\n", r"a.mtx:4: '1_0' is not one number"),
        ("a.mtx", MTX + "1_0 2 1\n1 1 1\n", r"a.mtx:2: expected the sizes"),
        ("a.mtx", MTX + "2 2 1\n1 1 1_0\n", r"a.mtx:3: value '1_0' is not a number"),
        ("a.mtx", MTX.replace("coordinate", "array") + "2 1\n1\nnan\n", r"a.mtx:4 \(row 1.* is nan"),
        ("a.mtx", MTX.replace("coordinate", "array") + "3 1\n1\n2\n", r"3 x 1 values announced, 2 found"),
        ("a.mtx", MTX.replace("general", "symmetric") + "2 3 0\n", r"a.mtx:2: a symmetric matrix .* is not square"),
        ("a.mtx", MTX.replace("general", "symmetric") + "2 2 1\n1 2 1\n", r"a.mtx:3 .* stores its lower triangle"),
        ("a.npz", "not a zip", r"a.npz: damaged or not a npz file"),
        ("a.safetensors", "\xff" * 20, r"a.safetensors: damaged or not a safetensors file"),
        ("a.mxt", "", r"unknown kind of file '.mxt' \(did you mean '.mtx'"),
    ],
)
def test_text_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        MTX + f"{'9' * 4000} {'8' * 4000} 1\n1 1 1\n",
        MTX + f"2 2 1\n{'9' * 4000} 1 1\n",
        MTX.replace("real", "x" * 3500) + "2 2 1\n1 1 1\n",
        MTX + "2 2 1\n1 1 " + "1" * 4000 + "x\n",
    ],
)
def test_messages_are_short_whatever_they_quote(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(InputError, match=r"a.mtx:[123]: ") as found:
        load(tmp_path / "a.mtx")
    assert len(str(found.value)) < 600


def test_a_tensor_without_rows_is_an_empty_matrix(tmp_path: Path) -> None:
    save_file({"empty": np.zeros((0, 5))}, tmp_path / "0.safetensors")
    with pytest.raises(InputError, match=r"0.safetensors: tensor 'empty': an empty matrix of shape .0, 5."):
        load(tmp_path / "0.safetensors")


@pytest.mark.parametrize("number", ["1_0", "\uff11", "\u00b2", "\u2460", "9" * 5000])
def test_numbers_that_int_does_not_read_are_no_numbers(tmp_path: Path, number: str) -> None:
    """Superscripts and circled digits are digits to str.isdigit; int() reads neither them nor endless numbers."""
    (tmp_path / "o.txt").write_text(number)
    with pytest.raises(InputError, match=r"o.txt: entry 1 is .*, no index of a connection"):
        read_order(str(tmp_path / "o.txt"))
    save_file({f"{number}a": np.eye(2), f"b{number}": np.eye(2), number: np.eye(2)}, tmp_path / "w.safetensors")
    assert load(tmp_path / "w.safetensors").n_connections == 6
    with pytest.raises(InputError, match="is not a field"):
        AddressMap.parse(f"offset:5 row:{number}", load_part("lpddr4-3200").organisation)
    with pytest.raises(InputError, match="cache level"):
        parse_level(f"4KiB:64:{number}")
    with pytest.raises(InputError, match="--image"):
        read_image(f"{number}x3")
    with pytest.raises(InputError, match="--window"):
        read_windows([f"w:stride={number}"])
    document = Document({"a": [0, 1]})
    with pytest.raises(ConfigError, match="has no parts"):
        document.put(("a", number), Document(2))
    document.put(("a", "1"), Document(2))
    assert document.data == {"a": [0, 2]}
    if len(number) < 200:
        (tmp_path / "run" / f"layer{number}").mkdir(parents=True)
        (tmp_path / "run" / "a.cfg").write_text(SCALESIM)
        with pytest.raises(InputError, match="no folders layer0"):
            read_run(tmp_path / "run", {})


@pytest.mark.parametrize("offset", [-1, 2**63, 2**64, 10**30])
def test_scale_sim_addresses_beyond_64_bits(tmp_path: Path, offset: int) -> None:
    (tmp_path / "layer0").mkdir()
    (tmp_path / "a.cfg").write_text(SCALESIM.replace("OfmapOffset=200", f"OfmapOffset={offset}"))
    with pytest.raises(InputError, match=r"a.cfg: OfmapOffset is .* 0 to 2\^62 is wanted"):
        read_run(tmp_path, {})


def test_a_scale_sim_configuration_names_no_other_values(tmp_path: Path) -> None:
    """Values that name each other ten deep, each many times, never ended."""
    (tmp_path / "a.cfg").write_text(SCALESIM.replace("OfmapOffset=200", "OfmapOffset=%(x)s\nx=200"))
    with pytest.raises(InputError, match=r"a.cfg: not a SCALE-Sim configuration: .*%\(x\)s"):
        read_run(tmp_path, {})


def test_a_count_may_not_ask_for_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes counted a billion times over would be walked in tens of gigabytes."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "2G")
    (tmp_path / "c.csv").write_text("layer,tensor,dram_reads,dram_writes,access_bits\n0,ifmap,1000000000,0,8\n")
    with pytest.raises(InputError, match=r"c.csv:2: the walk would take 41,000,000,000 bytes"):
        read_counts(tmp_path / "c.csv", {"layer0_ifmap": np.ones(3, np.int8)})


def test_a_cut_message_keeps_its_paths_and_ends() -> None:
    path = "/".join(["/tmp", *["folder" * 40] * 3, "a.mtx"])
    said = str(InputError(f"{path}:1: size {'9' * 5000} is too large\n{path}:2: {[1] * 5000} is not a shape"))
    first, second = said.split("\n")
    assert first == f"{path}:1: size {'9' * 100}...{'9' * 20} is too large"
    assert len(second) < 1250 and second.startswith("/tmp/folder") and second.endswith("1] is not a shape")


def test_missing_files_get_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "weights.mtx").write_text("")
    with pytest.raises(InputError, match=r"wieghts.mtx: no such file \(did you mean 'weights.mtx'"):
        load(tmp_path / "wieghts.mtx")
    with pytest.raises(InputError, match="holds no layer files"):
        (tmp_path / "empty").mkdir()
        load(tmp_path / "empty")
    with pytest.raises(InputError, match="no file given"):
        load([])
    with pytest.raises(InputError, match=r"unknown orientation 'rows-are-output' \(did you mean 'rows-are-outputs'"):
        load(tmp_path / "weights.mtx", orientation="rows-are-output")
    with pytest.raises(InputError, match="unknown kind 'net'"):
        load(tmp_path / "weights.mtx", kind="net")
    with pytest.raises(InputError, match=r".mtx files hold a network, not an operator graph"):
        load(tmp_path / "weights.mtx", kind="opgraph")


def test_layers_that_do_not_fit_and_mixed_kinds(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "1.npz", scipy.sparse.eye(3, format="csr"))
    scipy.sparse.save_npz(tmp_path / "2.npz", scipy.sparse.csr_matrix(np.ones((3, 5))))
    with pytest.raises(InputError, match=r"2.npz: .*takes 5 inputs, but the layer before gives 3 outputs.*turn them"):
        load(tmp_path)
    (tmp_path / "3.mtx").write_text(MTX + "1 3 1\n1 1 1\n")
    with pytest.raises(InputError, match="different kinds of file"):
        load(tmp_path)


def test_graph_challenge_folders(tmp_path: Path) -> None:
    (tmp_path / "n2-l1.tsv").write_text("1\t1\t1\n")
    (tmp_path / "n2-l3.tsv").write_text("1\t1\t1\n")
    with pytest.raises(InputError, match=r"n2-l2.tsv is missing"):
        load(tmp_path)
    (tmp_path / "n2-l2.tsv").write_text("1\t1\t1\n")
    (tmp_path / "sparse-images-2.tsv").write_text("1\t3\t1\n")
    with pytest.raises(InputError, match=r"sparse-images-2.tsv:1: column 3 is out of range: there are 2 inputs"):
        load(tmp_path)
    (tmp_path / "sparse-images-2.tsv").write_text(f"{10**12}\t1\t1\n")
    with pytest.raises(InputError, match="too many at once"):
        load(tmp_path)
    (tmp_path / "n4-l1.tsv").write_text("1\t1\t1\n")
    with pytest.raises(InputError, match="several networks"):
        load(tmp_path)


@pytest.mark.parametrize("sizes", ["400000000 400000000 1", f"{2**63} 1 1", f"1 {2**64} 1", "30000000 30000000 1"])
def test_a_matrix_market_header_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: str) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1 GiB")
    (tmp_path / "a.mtx").write_text(MTX + sizes + "\n1 1 1\n")
    with pytest.raises(InputError, match=r"a.mtx.*(bytes of memory, more than the bound of 1,073,741,824|beyond 2.62)"):
        load(tmp_path / "a.mtx")
    with pytest.raises(InputError, match=r"a.mtx"):
        read_matrix(tmp_path / "a.mtx")
    (tmp_path / "a.mtx").write_text(MTX.replace("coordinate", "array") + "30000 30000\n1\n")
    with pytest.raises(InputError, match="the file is too short for them"):
        load(tmp_path / "a.mtx")


def test_nested_json(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(InputError, match=r"g.json: not a usable JSON file"):
        load(tmp_path / "g.json")


def test_tensors_of_64_gigabytes_are_scheduled_but_not_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    node = {"shape": [2**36], "bytes": 2**36}
    nodes = [{"name": "a", **node}, {"name": "b", "op": "RELU", "inputs": ["a"], **node}]
    (tmp_path / "g.json").write_text(json.dumps({"nodes": nodes, "outputs": ["b"]}))
    graph = load(tmp_path / "g.json")
    with pytest.raises(InputError, match=r"block accesses would take .* bytes of memory"):
        offchip_traffic(graph, onchip_bytes=1 << 20)


@pytest.mark.parametrize("value", ["!17", "!!int x", "!!bool x", "!!timestamp x", "!!set [a]", "!!omap x"])
def test_tags_that_yaml_trips_over(tmp_path: Path, value: str) -> None:
    """The library raises AttributeError and KeyError for some of them."""
    (tmp_path / "c.yaml").write_text(f"a: {value}\n")
    for read in (read_document, load_part, load_technology, load_sweep):
        with pytest.raises(InputError, match=r"c\.yaml"):
            read(tmp_path / "c.yaml")
    for command in (["run"], ["order"], ["compare", "c.yaml"], ["arena"]):
        done = CliRunner().invoke(app, [*command, str(tmp_path / "c.yaml")])
        assert isinstance(done.exception, (InputError, SystemExit)), done.exception


@pytest.mark.parametrize("depth", [0, 12])
def test_aliases_do_not_unfold_while_outputs_are_guarded(tmp_path: Path, depth: int) -> None:
    """Before a command replaces a file it looks whether the configuration names it."""
    lines = ["a0: &a0 [x.npz]" if depth else "a0: &a0 [*a0]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, depth)]
    (tmp_path / "c.yaml").write_text("\n".join(lines) + "\n")
    (tmp_path / "o.json").write_text("{}")
    began = time.process_time()
    done = CliRunner().invoke(app, ["run", str(tmp_path / "c.yaml"), "--json", str(tmp_path / "o.json")])
    assert isinstance(done.exception, InputError) and time.process_time() - began < 5


def test_links_in_a_circle_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for words in (["report"], ["compare", str(tmp_path / "loop")], ["run"], ["optimize"], ["show"]):
        done = CliRunner().invoke(app, [*words, str(tmp_path / "loop")])
        assert isinstance(done.exception, InputError) and "loop" in str(done.exception), (words, done.exception)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 30_000, "- " * 100_000, "[" * 101 + "]" * 101])
def test_yaml_of_any_depth_ends_in_a_message(tmp_path: Path, text: str) -> None:
    """libyaml composes by recursion: some ten thousand levels ended the process by a signal."""
    (tmp_path / "deep.yaml").write_text(text)
    with pytest.raises(ValueError, match="levels deep"):
        parse_document(text, "deep.yaml")
    with pytest.raises(InputError, match="deep"):
        load_part(tmp_path / "deep.yaml")
    done = CliRunner().invoke(app, ["run", str(tmp_path / "deep.yaml")])
    assert isinstance(done.exception, InputError), done.exception
    assert parse_document("[" * 32 + "]" * 32, "flat.yaml").data


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    (tmp_path / "zero.npz").symlink_to("/dev/zero")
    for name, why in (("loop", "is a link to no file"), ("zero", "is a pipe or a device, not a file")):
        for command in ("order", "arena"):
            done = CliRunner().invoke(app, [command, str(tmp_path / f"{name}.npz")])
            assert str(done.exception) == f"{tmp_path / name}.npz: {why}"
