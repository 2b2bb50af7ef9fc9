"""Reference costs and best-known orders; bad input."""

import json
import pickle
import re
import threading
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import edgewatt as ew
import reorder.tuples.cost as cost
import reorder.tuples.groups as groups
from edgewatt.cli import app
from reorder.tuples import TUPLE_ORDERS
from reorder.tuples.cost import field_ones
from reorder.tuples.matrix import id_field, value_field
from reorder.tuples.tuple_problem import TupleProblem
from traces.base.errors import InputError
from traces.base.workers import Workers, go_on
from traces.networks.prune import prune_matrix


def small(rows=4, columns=60, density=0.5, seed=0):
    return sp.random(rows, columns, density, random_state=seed, format="csr", dtype=np.float32)


def cdr_cases(reference):
    known = json.loads((reference / "cdr" / "best_known.json").read_text())
    for name, facts in known.items():
        with np.load(reference / "cdr" / f"{name}.npz") as stored:
            yield name, facts, {key: stored[key] for key in stored.files}


def test_reference_costs_of_original_and_best_orders(reference):
    encoders = {"raw": "raw", "dbi": "dbi-dc", "bx": "base-xor", "bx_dbi": "base-xor+dbi-dc"}
    for name, facts, stored in cdr_cases(reference):
        rows = np.repeat(np.arange(facts["rows"]), np.diff(stored["indptr"]))
        bounds = np.array([0, facts["nnz"]])
        given = np.arange(facts["nnz"])
        for value_format, known in facts["formats"].items():
            values, *lost = value_field(stored["data"], value_format)
            assert lost == [0, 0]
            fields = (values, id_field("column ids", stored["indices"].astype(np.int64), 16))
            for key, encoder in encoders.items():
                problem = TupleProblem(fields, bounds, rows, encoder)
                assert [field_ones(problem, f, given) for f in fields] == known[key], (name, value_format, key)
            for stride, best in known["stride"].items():
                order = stored[f"order_{value_format}_{stride}"]
                assert [field_ones(problem, f, order) for f in fields] == best["best_joint"]


def test_default_search_is_within_a_hundredth_of_the_best_known(reference):
    for name, facts, stored in cdr_cases(reference):
        matrix = sp.csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        if name != "resnet8_conv7_d20":
            continue  # the benchmark scripts/bench/suites/tuples.py has them all
        known = facts["formats"]["int8"]["stride"]["32"]
        got = ew.order_tuples(matrix, value_format="int8", stride=32)
        assert got.ones <= 1.01 * sum(known["best_joint"])
        assert got.ones <= sum(known["greedy_joint"])
        assert got.lower_bound <= sum(known["best_joint"])


def test_greedy_of_whole_rows_is_the_references(reference):
    for _name, facts, stored in cdr_cases(reference):
        matrix = sp.csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"]))
        for value_format, known in facts["formats"].items():
            got = ew.order_tuples(matrix, value_format=value_format, stride="row", method="greedy", bound=False)
            assert [got.ones_values, got.ones_ids] == known["stride"]["row"]["greedy_joint"]


def test_worked_example_of_the_encoder_readme():
    """Base+XOR without DBI on 0001, 1111, 1110, 1001: 8 ones; 0001, 1001, 1111, 1110: 5."""
    problem = TupleProblem(
        (value_field(np.ones(4, np.float32), "int8")[0],), np.array([0, 4]), np.zeros(4, np.int64), "base-xor"
    )
    field = problem.fields[0].__class__("values", np.array([0b0001, 0b1111, 0b1110, 0b1001], np.uint64), 8)
    problem = TupleProblem((field,), problem.bounds, problem.rows, "base-xor")
    assert field_ones(problem, field, np.arange(4)) == 8
    assert field_ones(problem, field, np.array([0, 3, 1, 2])) == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(stride=0), "at least 1"),
        (dict(stride=-3), "at least 1"),
        (dict(stride="rows"), "'row' or 'matrix'"),
        (dict(stride="matrix"), "only layout 'coo'"),
        (dict(stride_restart="rows"), "did you mean 'row'"),
        (dict(id_bits=12), "8, 16 or 32"),
        (dict(value_format="fp17"), "did you mean 'fp1"),
        (dict(encoder="dbi-dc+base-xor"), "unknown encoder"),
        (dict(encoder="dbi-ac"), "did you mean 'dbi-dc'"),
        (dict(method="local-serch"), "did you mean 'local-search'"),
        (dict(layout="crs"), "did you mean 'csr'"),
        (dict(objective="value"), "did you mean 'values'"),
        (dict(metric="flips"), "unknown wire metric"),
        (dict(metric="toggles", encoder="raw", bus_bytes=8), "more than the tuple before"),
        (dict(metric="energy", encoder="raw"), "needs energy_pj"),
        (dict(metric="energy", energy_pj=(-1.0, 1.0)), "at least 0"),
        (dict(metric="energy", energy_pj=(1.0, 1.0), encoder="base-xor+transition"), "use metric 'toggles'"),
        (dict(stride=2.5), "stride: 2.5 is a float"),
        (dict(stride=True), "stride: True is a bool"),
        (dict(block_bytes=33), "no whole number of 16-bit"),
        (dict(block_bytes=0), "at least one byte"),
        (dict(base_interval=3), "no whole number of 16-bit"),
        (dict(effort=-1), "effort must be"),
        (dict(efort=1), "did you mean 'effort'"),
        (dict(effort="fats"), "unknown effort 'fats' .did you mean 'fast'"),
        (dict(workers=0), "at least 1"),
    ],
)
def test_bad_requests(change, words):
    with pytest.raises(InputError, match=words):
        ew.order_tuples(small(), **{"value_format": "fp16", "stride": "row", **change})


def test_bad_matrices():
    def order(matrix, **kind):
        return ew.order_tuples(matrix, **{"value_format": "fp16", "stride": 4, **kind})

    with pytest.raises(InputError, match=r"entry \(0, 1\) is stored twice"):
        order(sp.csr_matrix((np.ones(2), [1, 1], [0, 2]), shape=(1, 3)))
    with pytest.raises(InputError, match="is nan"):
        order(np.array([[1.0, np.nan]]))
    with pytest.raises(InputError, match="does not fit 8 bits"):
        order(sp.csr_matrix((np.ones(1), ([0], [300])), shape=(1, 400)), id_bits=8)
    with pytest.raises(InputError, match="a matrix is wanted"):
        order(np.ones(3))
    with pytest.raises(InputError, match="complex"):
        order(np.array([[1j]]))


def test_documented_behaviour_of_odd_matrices():
    unsorted = sp.csr_matrix((np.array([1.0, 2.0, 0.0], np.float32), [5, 2, 3], [0, 0, 3]), shape=(2, 6))
    got = ew.order_tuples(unsorted, value_format="fp16", stride="row")  # empty row, unsorted ids, a stored zero
    assert sorted(got.positions.tolist()) == [0, 1, 2]
    assert got.original_ones_ids == sum((5).bit_count() for _ in [0]) + (5 ^ 2).bit_count() + (2 ^ 3).bit_count()
    tiny = sp.csr_matrix(np.array([[1e-9, 1.0]], np.float32))
    assert ew.order_tuples(tiny, value_format="fp16", stride="row").zeroed == 1
    empty = ew.order_tuples(sp.csr_matrix((3, 3)), value_format="fp16", stride="row")
    assert (empty.ones, empty.lower_bound, len(empty.positions)) == (0, 0, 0)


@pytest.mark.parametrize("suffix", [".npz", ".mtx", ".safetensors"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_scipy_computes_the_same_product_from_the_written_matrix(tmp_path, suffix, layout):
    from reorder.tuples.files import read_matrix, write_matrix

    matrix = small(20, 30)
    found = ew.order_tuples(matrix, value_format="fp16", stride="row", layout=layout)
    write_matrix(found.matrix(), tmp_path / f"m{suffix}")
    if suffix == ".npz":
        back = sp.load_npz(tmp_path / "m.npz")
        assert (back.data == found.matrix().data).all()
    elif layout == "csr" or suffix == ".mtx":
        back = read_matrix(tmp_path / f"m{suffix}", layout=layout)
    else:
        return
    x = np.arange(30, dtype=np.float32)
    np.testing.assert_allclose(back @ x, matrix @ x, rtol=1e-5)
    stored = read_matrix(tmp_path / f"m{suffix}", layout=layout)  # the stored order survives
    for given in (stored, prune_matrix(stored, density=1)):
        assert ew.order_tuples(given, value_format="fp16", stride=1, layout=layout).original_ones == found.ones


def test_files_that_hold_no_matrix(tmp_path):
    from reorder.tuples.files import read_matrix, write_matrix

    with pytest.raises(InputError, match="no such file"):
        read_matrix(tmp_path / "none.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"bad.npz: damaged"):
        read_matrix(tmp_path / "bad.npz")
    np.savez(tmp_path / "odd.npz", data=np.ones(2), indices=[0, 9], indptr=[0, 2], shape=[1, 3])
    with pytest.raises(InputError, match="entry 1 is 9, outside 0 to 2"):
        read_matrix(tmp_path / "odd.npz")
    (tmp_path / "bad.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(InputError, match=r"bad.safetensors"):
        read_matrix(tmp_path / "bad.safetensors")
    with pytest.raises(InputError, match=r"did you mean '.npz'"):
        write_matrix(small(), tmp_path / "m.nz")
    with pytest.raises(InputError, match="cannot be written"):
        write_matrix(small(), tmp_path / "none" / "m.npz")


def test_command_line(tmp_path, capsys):
    from typer.testing import CliRunner

    from edgewatt.cli import app

    sp.save_npz(tmp_path / "m.npz", small())
    out = tmp_path / "r.npz"
    run = CliRunner().invoke(
        app, ["order-tuples", str(tmp_path / "m.npz"), "--stride", "row", "-o", str(out), "--json", "-"]
    )
    assert run.exit_code == 0, run.output
    said = json.loads(run.stdout)
    assert (
        said["ones, all"]["after"] <= said["ones, all"]["before"]
        and said["cost"]["lower_bound"] <= said["cost"]["after"]
    )
    assert abs(sp.load_npz(out) - small()).nnz == 0
    shown = CliRunner().invoke(
        app, ["order-tuples", str(out), "--stride", "8", "--metric", "energy", "--part", "lpddr4-3200"]
    )
    assert shown.exit_code == 0 and "toggles, all" in shown.output
    assert re.search(r"energy, all, [pn]J +[\d.,]+ +[\d.,]+ ", shown.output), shown.output
    wrong = CliRunner().invoke(app, ["order-tuples", str(out), "-o", "x.csv"])
    assert isinstance(wrong.exception, InputError)


def run(*arguments):
    from typer.testing import CliRunner

    from edgewatt.cli import app

    return CliRunner().invoke(app, ["order-tuples", *map(str, arguments)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--stride", 0), "at least 1"),
        (("--stride", "2.5"), "a number of tuples, 'row' or 'matrix'"),
        (("--stride", "matrix"), "only layout 'coo'"),
        (("--id-bits", 8), r"column ids: id \d+ does not fit 8 bits \(use --id-bits 16"),
        (("--part", "lpddr4-3200"), "--part .* for --metric energy: --metric ones"),
        (("--layout", "ell"), r"unknown layout 'ell' \(known: coo, csc, csr"),
        (("--id-bits", 12), "8, 16 or 32"),
        (("--seed", -1), "seed must be a whole number from 0"),
        (("--seed", 10**22), "seed must be a whole number from 0"),
        (("--block-bytes", 33), "no whole number of 16-bit values"),
        (("--base-interval", 3), "no whole number of 16-bit values"),
        (("--base-interval", "rows"), "a number of bytes, 'row' or 'matrix'"),
        (("--encoder", "dbi-dc+base-xor"), "unknown encoder of tuple orders 'dbi-dc\\+base-xor'"),
        (("--encoder", "base-xor+transition", "--metric", "energy", "--part", "lpddr4-3200"), "use metric 'toggles'"),
        (("--metric", "energy"), r"needs energy_pj \(--part\)"),
    ],
)
def test_the_command_line_refuses_what_makes_no_sense(tmp_path, options, words):
    sp.save_npz(tmp_path / "m.npz", small(4, 600))
    refused = run(tmp_path / "m.npz", *options)
    assert isinstance(refused.exception, InputError)
    assert re.search(words, str(refused.exception)), refused.exception


def test_the_command_line_on_odd_matrices(tmp_path):
    twice = sp.csr_matrix((np.ones(2), [1, 1], [0, 2]), shape=(1, 3))
    sp.save_npz(tmp_path / "twice.npz", twice)
    assert "entry (0, 1) is stored twice" in str(run(tmp_path / "twice.npz").exception)
    # An empty row, unsorted ids, a stored zero, and a weight that is zero in fp16.
    odd = sp.csr_matrix((np.array([1e-9, 2.0, 0.0], np.float32), [5, 2, 3], [0, 0, 3]), shape=(2, 6))
    sp.save_npz(tmp_path / "odd.npz", odd)
    done = run(tmp_path / "odd.npz", "--stride", "row", "-o", tmp_path / "out.npz", "--json", "-")
    assert done.exit_code == 0 and json.loads(done.stdout)["values_that_became_zero"] == 1
    back = sp.load_npz(tmp_path / "out.npz")
    assert dict(zip(back.indices, back.data, strict=True)) == dict(zip(odd.indices, odd.data, strict=True))
    still = run(tmp_path / "odd.npz", "--stride", 1)
    assert still.exit_code == 0 and "1 stored non-zeros become zero in fp16" in still.output
    assert "no order inside these strides costs less" in still.output
    sp.save_npz(tmp_path / "large.npz", sp.csr_matrix(np.float32([[1, 1e30, -1e30]])))
    assert "2 values are beyond the range and become the largest in fp16" in run(tmp_path / "large.npz").output
    unknown = run(tmp_path / "odd.npz", "--stride", "row", "--metric", "toggles")
    assert unknown.exit_code == 0 and "no lower bound is known for toggles" in unknown.output


def test_toggles_and_energy_under_xor_never_rise():
    for metric in ("toggles", "energy"):
        got = ew.order_tuples(small(), value_format="fp16", stride="row", metric=metric, energy_pj=(3.0, 1.0))
        assert got.cost < got.original_cost
        if metric == "toggles":
            assert got.lower_bound is None  # edges of XORed data depend on three tuples
        else:
            assert 0 < got.lower_bound <= got.cost
    quiet = ew.order_tuples(small(), value_format="fp16", stride="row", metric="toggles", encoder="base-xor+transition")
    plain = ew.order_tuples(small(), value_format="fp16", stride="row", encoder="base-xor")
    assert quiet.cost == plain.cost == quiet.toggles


def test_run_tuples_keep_runs_and_topology():
    from reorder.joint import order_run_tuples
    from traces.generators.networks import random_layered

    network = random_layered(4, 40, 0.3, seed=3)
    edges = np.lexsort((network.sources, network.targets, network.layer))
    found = order_run_tuples(network, edges, stride="row", value_format="fp16", effort=0.2)
    assert (network.targets[found] == network.targets[edges]).all()
    assert (found != edges).any()
    assert "local-search" in TUPLE_ORDERS and TUPLE_ORDERS["local-search"].summary


def test_long_rows_end_below_greedy_and_presets_are_efforts() -> None:
    rng = np.random.default_rng(5)
    ids = np.sort(rng.choice(16000, 5000, replace=False))
    row = sp.csr_matrix((rng.normal(0, 0.01, 5000).astype(np.float32), ids, [0, 5000]), shape=(1, 16000))
    kind = dict(value_format="fp16", stride="row", bound=False)
    greedy, fast = ew.order_tuples(row, method="greedy", **kind), ew.order_tuples(row, effort="fast", **kind)
    assert fast.ones < 0.99 * greedy.ones
    assert (fast.positions == ew.order_tuples(row, effort=0.03, **kind).positions).all()


@pytest.mark.parametrize(
    "kind",
    [{}, dict(encoder="raw"), dict(base_interval="row"), dict(layout="coo", stride="matrix")],
)
def test_ones_are_counted_in_parts_as_at_once(monkeypatch, kind):
    def ordered():
        found = ew.order_tuples(small(9, 300), **{"value_format": "bf16", "stride": 16, "effort": 0, **kind})
        return found.ones_values, found.ones_ids, found.original_ones, found.positions.tolist()

    whole = ordered()
    monkeypatch.setattr(cost, "_CHUNK", 7)
    assert ordered() == whole


@pytest.mark.parametrize("rows", [[0, 0, 1, 3, 3], [70_000, 70_000, 140_000, 140_001, 200_000], [3, 1, 1, 0, 0]])
def test_a_piece_travels_narrow_and_arrives_whole(rows):
    fields = (value_field(np.arange(5, dtype=np.float32), "fp16")[0], id_field("column ids", np.arange(5), 32))
    problem = TupleProblem(fields, np.array([0, 2, 5]), np.array(rows, np.int64))
    piece = problem.piece(1, 2)
    assert piece.problem.model.symmetric  # derived before it travels
    sent = pickle.dumps(problem.piece(0, 2))
    there = pickle.loads(pickle.dumps(piece)).problem
    for a, b in (
        (there.rows, piece.problem.rows),
        *((f.bits, g.bits) for f, g in zip(there.fields, piece.problem.fields, strict=True)),
    ):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()
    assert "model" not in there.__dict__ and there.before == piece.problem.before
    assert pickle.loads(sent).problem.rows.tolist() == rows


def test_threads_and_processes_give_one_order(monkeypatch):
    monkeypatch.setattr(groups, "GROUP_TUPLES", 64)
    kind = dict(value_format="fp16", stride=16, effort=0.05)
    alone = ew.order_tuples(small(20, 90), **kind)
    for executor in ("threads", "processes", None):
        shared = ew.order_tuples(small(20, 90), **kind, workers=2, executor=executor)
        assert (shared.positions == alone.positions).all() and shared.lower_bound == alone.lower_bound


def test_threads_end_when_nobody_waits():
    began = threading.Event()

    def piece(k):
        if k == 0:
            began.wait(10)
            raise KeyError("first")
        began.set()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            go_on()
            time.sleep(0.001)

    start = time.monotonic()
    with pytest.raises(KeyError), Workers(2, "threads") as team:
        list(team.map(piece, ((k, (k,)) for k in range(9))))
    assert time.monotonic() - start < 10
    go_on()  # this thread is nobody's worker


@pytest.mark.parametrize("executor", ["threads", "processes", "dask"])
def test_parts_of_shared_arrays_are_done_by_threads_of_this_process(executor, monkeypatch):
    """Whoever orders the pieces: to read the matrix and to count what is sent would else be one thread's work."""
    from traces.base import workers

    monkeypatch.setattr(workers, "_Processes", None)  # no team is started for it
    monkeypatch.setattr(workers, "_Dask", None)
    filled, both = np.zeros(40, np.int64), threading.Barrier(2, timeout=20)

    def fill(start: int, stop: int) -> None:
        if start < 20:
            both.wait()  # two at once
        filled[start:stop] += np.arange(start, stop)

    with Workers(2, executor) as team, Workers.of(team) as lent:
        lent.each(fill, 40, 10)
    assert filled.tolist() == list(range(40))
    with Workers(1, executor) as alone:
        alone.each(lambda start, stop: filled.__setitem__(slice(start, stop), 1), 40, 10)
    assert filled.tolist() == [1] * 40


def test_only_compiled_methods_are_given_to_threads():
    assert {entry.name for entry in TUPLE_ORDERS.values() if entry.item.workers == "threads"} >= {
        "local-search",
        "greedy",
    }


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
def test_ones_that_no_order_changes_are_proved(encoder):
    """The bound of XORed neighbours had stood beside them: optimal orders were 'within 19.7 %'."""
    made = ew.order_tuples(small(60, 60), value_format="fp16", stride=32, metric="ones", encoder=encoder)
    assert made.lower_bound == made.cost


def test_a_reordered_matrix_holds_what_was_given() -> None:
    """It was rounded to float32: 2^24 + 1 became 2^24, and float64 another matrix."""
    for values in (np.array([[2**24 + 1, 3, 5]]), np.array([[0.1, 0.2, 1 / 3]]), np.array([[1, 2, 3]], np.int8)):
        made = ew.order_tuples(sp.csr_matrix(values), value_format="fp32", stride="row").matrix()
        assert made.dtype == values.dtype and (made.toarray() == values).all()
    dense = np.ones((2, 3), ml_dtypes.bfloat16)
    assert ew.order_tuples(dense, value_format="bf16", stride=4).matrix().nnz == 6


@pytest.mark.parametrize("bus_bytes", [-1, 0, 2**40, 1.5])
def test_a_bus_of_no_bytes_is_refused(bus_bytes: Any) -> None:
    with pytest.raises(InputError, match="bus_bytes"):
        ew.order_tuples(np.eye(3), value_format="fp16", stride=1, metric="toggles", bus_bytes=bus_bytes)


def test_a_format_of_a_folder_is_refused(tmp_path: Path) -> None:
    for option in (["--format", "int8"], ["--format", "nope"]):
        done = CliRunner().invoke(app, ["order-tuples", str(tmp_path), "-o", str(tmp_path / "o"), *option])
        assert "--format is for one matrix" in str(done.exception)


def test_what_was_encoded_otherwise_is_not_decoded() -> None:
    coded = ew.encode(bytes(range(64)), "base-xor+dbi-dc", element_bytes=2)
    assert ew.decode(coded, "base-xor+dbi-dc", element_bytes=2).tobytes() == bytes(range(64))
    for encoder, more in (("raw", {}), ("dbi-ac", {}), ("base-xor+dbi-dc", {"block_bytes": 16})):
        with pytest.raises(InputError, match="belongs to"):
            ew.decode(coded, encoder, element_bytes=2, **more)
    by_hand = ew.decode(coded.data.tobytes(), "base-xor+dbi-dc", flags=coded.flags.tobytes(), element_bytes=2)
    assert by_hand.tobytes() == bytes(range(64))
    for data in ("abc", np.array(["a"]), np.array(["2020"], "datetime64[Y]")):
        with pytest.raises(InputError, match="bytes or an array of numbers"):
            ew.encode(data, "raw", element_bytes=1)
