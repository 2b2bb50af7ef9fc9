"""`edgewatt schedule`, the façade, budgets and bad input."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.operators.energy import operator_trace
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import Schedule
from reorder.operators.schedule.traffic import offchip_traffic, traffic_costs
from traces.base.errors import InputError
from traces.operators.opgraph import MAX_BYTES
from traces.readers import opgraph_json

NODES = [
    {"name": "x", "op": "INPUT", "inputs": [], "shape": [1, 8], "bytes": 8},
    {"name": "a", "op": "RELU", "inputs": ["x"], "shape": [1, 100], "bytes": 100},
    {"name": "b", "op": "RELU", "inputs": ["x"], "shape": [1, 100], "bytes": 100},
    {"name": "a1", "op": "MEAN", "inputs": ["a"], "shape": [1], "bytes": 1},
    {"name": "b1", "op": "MEAN", "inputs": ["b"], "shape": [1], "bytes": 1},
    {"name": "y", "op": "ADD", "inputs": ["a1", "b1"], "shape": [1], "bytes": 1},
]


def as_json(graph) -> str:
    """The JSON form of a graph whose operators each write one tensor."""
    nodes = [
        {"name": n.name, "op": n.op, "inputs": list(n.inputs), "shape": list(n.output.shape), "bytes": n.output.n_bytes}
        for n in graph.nodes
    ]
    return json.dumps({"name": graph.name, "nodes": nodes, "outputs": list(graph.outputs)})


def graph_with(changes: dict[int, dict] | None = None, extra: tuple[dict, ...] = (), outputs: tuple[str, ...] = ("y",)):
    nodes = [dict(node) | (changes or {}).get(i, {}) for i, node in enumerate(NODES)]
    return opgraph_json.from_dict({"name": "g", "nodes": [*nodes, *extra], "outputs": list(outputs)}, source="g.json")


def run(*arguments: str):
    return CliRunner().invoke(app, ["schedule", *arguments])


def test_schedule_command_prints_and_writes(tmp_path: Path) -> None:
    model = tmp_path / "g.json"
    model.write_text(as_json(graph_with()))
    result = run(str(model))
    assert result.exit_code == 0, result.output
    assert "peak of 109 B: proved, no order of these operators needs less" in result.output
    result = run(str(model), "--json", "-")
    found = json.loads(result.stdout)
    assert (found["peak_bytes"], found["proved"], found["orders"][0]["peak_bytes"]) == (109, True, 208)
    assert found["order"][0] == "x"
    assert found["orders"][2]["traffic_bytes"]["32768"] == 0
    result = run(str(model), "--objective", "traffic", "--onchip-bytes", "64", "--block-bytes", "16", "--json", "-")
    found = json.loads(result.stdout)
    assert found["traffic_bytes"] <= min(row["traffic_bytes"]["64"] for row in found["orders"][:2])


def test_a_parameter_of_the_method(tmp_path: Path) -> None:
    model = tmp_path / "g.json"
    model.write_text(as_json(graph_with()))
    for more in (["-s", "min_part=1"], ["-s", "divide=false"]):
        result = run(str(model), "--method", "serenity", "--json", "-", *more)
        assert result.exit_code == 0 and json.loads(result.stdout)["peak_bytes"] in (109, 208), result.output
    refused = run(str(model), "--method", "serenity", "-s", "divid=false")
    assert refused.exit_code and "'serenity' has no parameter 'divid' (did you mean 'divide'?)" in str(
        refused.exception
    )


@pytest.mark.parametrize("method", [entry["name"] for entry in ew.config.catalogue("schedulers")])
def test_every_scheduler_that_is_listed_may_be_named(tmp_path: Path, method: str) -> None:
    model = tmp_path / "g.json"
    model.write_text(as_json(graph_with()))
    result = run(str(model), "--method", method, "--json", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["peak_bytes"] in (109, 208) and sorted(found["order"]) == sorted(node["name"] for node in NODES)


def test_schedule_command_refuses_with_a_reason(tmp_path: Path) -> None:
    cases = {
        ("no-such-model.tflite",): "no such file",
        ("darts_v2", "--method", "best-frist"): "did you mean 'best-first'?",
        ("darts_v2", "--rewrite", "chanel-wise"): "did you mean 'channel-wise'?",
        ("darts_v2", "--objective", "peek"): "did you mean 'peak'?",
        ("darts_v2", "--allocator", "linaer"): "did you mean 'linear'?",
        ("darts_v2", "--objective", "traffic"): "needs onchip_bytes (--onchip-bytes)",
        ("darts_v2", "--objective", "traffic", "--onchip-bytes", "100"): "cannot hold a block of 256 bytes",
        ("darts_v2", "--budget-bytes", "1000"): "'next0' alone needs|alone needs",
        ("darts_v2", "--output", str(tmp_path / "x.tflite")): "only .tflite and .onnx models can be written back",
        ("darts_v2", "--time-limit", "-1"): "must be above 0",
        ("darts_v2", "--encoder", "dbi-dc"): "--encoder belongs to --part",
        ("darts_v2", "--system", "edge"): "--objective energy",
    }
    for arguments, message in cases.items():
        result = run(*arguments)
        assert isinstance(result.exception, InputError), (arguments, result.output)
        assert any(part in str(result.exception) for part in message.split("|")), (arguments, result.exception)
    assert not list(tmp_path.iterdir())


def test_facade_returns_what_it_promises() -> None:
    found = ew.schedule(ew.generators.randwire("ws", 32, seed=2), onchip_bytes=65536)
    assert isinstance(found, Schedule)
    assert (found.peak_bytes, found.lower_bound_bytes, found.proved) == (299_520, 299_520, True)
    traffic = ew.operators.offchip_traffic(found.graph, found.order, onchip_bytes=65536)
    assert found.traffic_bytes == traffic.total_bytes
    assert ew.operators.footprint(found.graph, found.order).peak_bytes == found.peak_bytes
    assert sorted(found.order.tolist()) == list(range(found.graph.n_nodes))
    assert found.names[0] == "input"
    stopped = ew.schedule(ew.generators.randwire("ws", 64), max_states=100)
    assert stopped.lower_bound_bytes < stopped.peak_bytes
    assert not stopped.proved


def test_budgets() -> None:
    graph = graph_with()
    assert ew.schedule(graph, budget_bytes=109).peak_bytes == 109
    with pytest.raises(InputError, match=r"g\.json: operator 'a' alone needs 108 bytes .* the budget of 107"):
        ew.schedule(graph, budget_bytes=107)
    with pytest.raises(InputError, match="every order needs at least 109 bytes, more than the budget of 108"):
        ew.schedule(graph, budget_bytes=108)
    with pytest.raises(InputError, match="the best order found needs 208 bytes, more than the budget of 150"):
        ew.schedule(graph, method="file", budget_bytes=150)


@pytest.mark.parametrize(
    ("changes", "extra", "outputs", "message"),
    [
        ({1: {"inputs": ["y"]}}, (), ("y",), "the graph has a cycle: 'a' -> .*'a'"),
        ({1: {"inputs": ["a"]}}, (), ("y",), "the graph has a cycle: 'a' -> 'a'"),
        ({1: {"inputs": ["b"]}}, (), ("y",), "operator 'a' comes before 'b', whose result it needs"),
        ({1: {"inputs": ["z"]}}, (), ("y",), "operator 'a' reads 'z', which no operator writes"),
        ({1: {"inputs": ["x", "x"]}}, (), ("y",), "operator 'a' lists its input 'x' twice"),
        ({1: {"bytes": 0}}, (), ("y",), "tensor 'a' has 0 bytes"),
        ({1: {"bytes": -5}}, (), ("y",), "tensor 'a' has -5 bytes"),
        ({1: {"bytes": MAX_BYTES + 1}}, (), ("y",), "more than 2\\^63 - 1"),
        ({1: {"bytes": MAX_BYTES}, 2: {"bytes": 1}}, (), ("y",), "sum up to .* bytes, more than 2\\^63 - 1"),
        ({1: {"bytes": "100"}}, (), ("y",), "node 'a': `bytes` must be a whole number, not '100'"),
        ({1: {"bytes": 1.5}}, (), ("y",), "node 'a': `bytes` must be a whole number"),
        ({1: {"shape": [1, "?"]}}, (), ("y",), "node 'a': unknown shape"),
        ({1: {"shape": [1, -1]}}, (), ("y",), "node 'a': unknown shape"),
        ({1: {"shpae": [1]}}, (), ("y",), r"node 'a': unknown key 'shpae' \(did you mean 'shape'\?\)"),
        ({1: {"buffer": "b"}}, (), ("y",), None),
        ({1: {"buffer": "a1"}}, (), ("y",), "shares buffer 'a1' .*: tensors of one buffer have one size"),
        ({2: {"name": "a"}}, (), ("y",), "two operators are named 'a'"),
        ({}, (), (), "the graph has no output"),
        ({}, (), ("z",), "the output 'z' is written by no operator"),
        ({}, (), ("y", "y"), "the output 'y' is named twice"),
        (
            {},
            ({"name": "lost", "op": "INPUT", "inputs": [], "shape": [1], "bytes": 1},),
            ("y",),
            "disconnected: 'lost'",
        ),
    ],
)
def test_bad_graphs_are_named(changes: dict, extra: tuple, outputs: tuple, message: str | None) -> None:
    if message is None:  # two partial writers of one buffer are legal
        assert graph_with(changes, extra, outputs).buffers == ("x", "b", "a1", "b1", "y")
        return
    with pytest.raises(InputError, match=message) as caught:
        graph_with(changes, extra, outputs)
    assert "g.json" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "g.json:1:2: not JSON"),
        ("[" * 100_000, "g.json"),
        ('{"nodes": 3, "outputs": []}', "a list `nodes`"),
        ('{"nodes": [], "outputs": ["y"]}', "the graph has no operators"),
        ('{"nodes": [3], "outputs": ["y"]}', r"nodes\[0\] must be an object with a `name`"),
        ('{"nodes": [{"name": "y", "shape": [1], "bytes": NaN}], "outputs": ["y"]}', "NaN is not a number"),
        ('{"nodes": [{"name": "y", "shape": [1], "bytes": 1}]}', "needs `outputs`"),
    ],
)
def test_bad_json_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "g.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        ew.load(path)


def test_orders_that_cannot_run_are_refused() -> None:
    graph = graph_with()
    with pytest.raises(InputError, match=r"runs 'a1' \(position 1\) before 'a' \(position 3\)"):
        ew.operators.footprint(graph, [0, 3, 2, 1, 4, 5])
    with pytest.raises(InputError, match="operator 0 is unknown or repeated"):
        ew.operators.footprint(graph, [0, 0, 2, 1, 4, 5])
    with pytest.raises(InputError, match="a list of 6 whole numbers"):
        ew.operators.footprint(graph, [0, 1])


def test_stopping_early_keeps_a_proved_bound() -> None:
    """A graph too hard to finish: the answer stands between the bound and the simple orders."""
    graph = ew.generators.randwire("ws", 300)
    found = ew.schedule(graph, max_states=3000)
    assert not found.proved
    assert found.lower_bound_bytes < found.peak_bytes <= ew.schedule(graph, method="greedy").peak_bytes
    limited = ew.schedule(graph, time_limit_s=0.05)
    assert limited.truncated
    assert limited.lower_bound_bytes <= found.peak_bytes


GIANT = {"shape": [2**33], "bytes": 2**33}


def giant(path: Path) -> str:
    """Return a file with tensors of 8 GB each: 33,554,432 blocks."""
    two = [{"name": name, "op": "RELU", "inputs": ["a"], **GIANT} for name in "bc"]
    nodes = [{"name": "a", **GIANT}, *two, {"name": "d", "op": "ADD", "inputs": ["b", "c"], **GIANT}]
    path.write_text(json.dumps({"nodes": nodes, "outputs": ["d"]}))
    return str(path)


def test_traffic_beyond_the_bound_of_memory_is_left_out_and_the_schedule_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    done = run(giant(tmp_path / "g.json"), "--page", str(tmp_path / "g.html"))
    assert done.exit_code == 0, done.output
    assert "25,769,803,776" in done.output
    said = " ".join(done.output.split())
    assert "off-chip traffic left out: " in said and "block accesses would take" in said
    assert (tmp_path / "g.html").exists()
    found = json.loads(run(str(tmp_path / "g.json"), "--json", "-").stdout)
    assert found["peak_bytes"] == 3 * 2**33
    assert all(row["traffic_bytes"] == {} and "refused" in row["traffic_left_out"] for row in found["orders"])


def test_comparing_orders_keeps_to_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1T")
    model = giant(tmp_path / "g.json")
    began = time.process_time()
    found = json.loads(run(model, "--json", "-", "--time-limit", "0.5").stdout)
    assert time.process_time() - began < 5
    assert all("within the time limit" in row["traffic_left_out"] for row in found["orders"])
    for asked in (["--part", "lpddr4-3200"], ["--objective", "traffic", "--onchip-bytes", "65536"]):
        done = run(model, "--time-limit", "0.5", *asked)
        assert isinstance(done.exception, InputError)
        assert "cannot be counted within the time limit" in str(done.exception)
    assert time.process_time() - began < 10


def test_what_the_energy_cannot_count_does_not_cost_the_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    done = run(giant(tmp_path / "g.json"), "--part", "lpddr4-3200", "--json", str(tmp_path / "s.json"))
    assert isinstance(done.exception, InputError) and "block accesses would take" in str(done.exception)
    assert json.loads((tmp_path / "s.json").read_text())["peak_bytes"] == 3 * 2**33


def test_counting_traffic_stops_in_the_middle_of_an_order() -> None:
    """Sixteen million block accesses take a second and more; stopped, the next count is whole again."""
    nodes = [{"name": f"n{k}", "op": "RELU", "inputs": [f"n{k - 1}"] if k else [], "shape": [1], "bytes": 2**25}
             for k in range(3)]  # fmt: skip
    graph = opgraph_json.from_dict({"name": "g", "nodes": nodes, "outputs": ["n2"]}, source="g.json")
    problem = OperatorProblem(graph)
    steps = problem.check_order([0, 1, 2])
    costs = traffic_costs(problem, 65536, 8)
    began = time.process_time()
    for call in (costs.traffic, costs.transfers):
        with pytest.raises(TimeoutError):
            call(steps, 0.001)
    assert time.process_time() - began < 2
    small = traffic_costs(problem, 65536, 4096)
    with pytest.raises(MemoryError):
        small.transfers(steps, None, 100)
    rows = small.transfers(steps, 1e300, 2**40)
    assert sum(small.traffic(steps, -1)) == sum(small.traffic(steps)) == 4096 * len(rows)
    with pytest.raises(InputError, match="off-chip transfers cannot be counted within the time limit"):
        offchip_traffic(problem, onchip_bytes=65536, block_bytes=8, deadline=time.monotonic())


@pytest.mark.application
def test_transfers_of_one_operator_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [{"name": "a", "shape": [1], "bytes": 2**26}, {"name": "b", "op": "RELU", "inputs": ["a"], "bytes": 2**26,
              "shape": [1]}]  # fmt: skip
    graph = opgraph_json.from_dict({"name": "g", "nodes": nodes, "outputs": ["b"]}, source="g.json")
    sizes = [len(chunk.address) for chunk in operator_trace(graph, [0, 1], onchip_bytes=65536, data=False)]
    counted = offchip_traffic(graph, onchip_bytes=65536)
    assert 128 * sum(sizes) == counted.total_bytes and max(sizes) == 2 * 65536 and len(sizes) > 4
    late = operator_trace(graph, [0, 1], onchip_bytes=65536, data=False, deadline=time.monotonic() + 600)
    monkeypatch.setattr("edgewatt.operators.energy.seconds_until", lambda deadline: 0.0)
    with pytest.raises(InputError, match="within the time limit"):
        list(late)
