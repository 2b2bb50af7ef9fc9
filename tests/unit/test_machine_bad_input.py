"""Each wrong input about lanes, scratchpads, layouts and orders gives one message that says what and how to mend."""

import numpy as np
import pytest

import edgewatt as ew
from traces.base.document import ConfigError
from traces.base.errors import InputError

NETWORK = {"file": "configs/examples/networks/digits_small.npz"}
PAD = {"size_bytes": 8192}


def config(**more):
    return {"network": NETWORK, "orderings": ["two-optimal"], "timing": "replay", **more}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (  # a scratchpad too small for 3 rows
            {"scratchpad": {"size_bytes": 1100}, "layout": {"lanes": 16}},
            "holds 1 rows of 64 bytes, M = 2: at least 3 are needed, a connection and the two rows it joins; use a",
        ),
        ({"layout": {"lanes": 0}}, "lanes must be a whole number of at least 1, not 0: input vectors at a time"),
        ({"layout": {"lanes": "16"}}, "lanes"),
        ({"scratchpad": {**PAD, "stream_bytes": 16}}, "scratchpad stream_bytes 16 is smaller than a burst of 32 bytes"),
        ({"scratchpad": {**PAD, "policy": "mru"}}, "scratchpad policy 'mru'"),
        ({"layout": ["csr", "cst"]}, "unknown layout 'cst' (did you mean 'csr'?)"),
        ({"layout": []}, "the list is empty: name at least one"),
    ],
)
def test_configurations(changes, message):
    with pytest.raises(ConfigError) as caught:
        ew.config.load_sweep(config(**changes))
    assert message in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_lanes_above_the_batch_are_allowed_and_said(capsys):
    from edgewatt.cli.parts.tables import show_records

    records = ew.run(config(scratchpad=PAD, layout={"lanes": 16}, batch=10))
    assert (records[0].results["passes"], records[0].results["padded_lanes"]) == (1, 6)
    show_records(records, title="")
    assert "6 lanes of the last pass have no input vector" in capsys.readouterr().out


def test_an_order_file_of_another_network(tmp_path):
    np.savez(tmp_path / "order.npz", edges=np.arange(12))
    with pytest.raises(InputError) as caught:
        ew.run(config(orderings=[{"kind": "file", "path": str(tmp_path / "order.npz")}]))
    said = str(caught.value)
    assert ("12" in said and "8000 connections" in said and "another network" in said) or "one network" in said


@pytest.mark.parametrize("layout", ["csr", "ell"])
def test_a_layout_that_an_ordering_cannot_use_names_the_ordering(layout):
    with pytest.raises(InputError) as caught:
        ew.run(config(orderings=["two-optimal", "by-source"], layout={"kind": layout}))
    said = str(caught.value)
    assert said.startswith(f"ordering by-source: layout '{layout}' needs every row in one run") and "'tuples'" in said


def test_a_scratchpad_under_a_recorded_trace(tmp_path):
    trace = ew.build_trace(ew.load(NETWORK["file"]), layout="tuples")
    ew.cache.save_trace(trace, tmp_path / "trace.npz")
    with pytest.raises(ConfigError) as caught:
        ew.config.load_sweep({"trace": {"file": str(tmp_path / "trace.npz")}, "scratchpad": PAD})
    assert "a recorded trace does not hold: give the network and its order" in str(caught.value)
    machine = ew.Machine(scratchpad=ew.ScratchpadSpec(8192), part="lpddr4-3200")
    with pytest.raises(InputError, match="build the trace from a network and its order, or use caches"):
        ew.replay(ew.cache.load_trace(tmp_path / "trace.npz"), machine)


def test_a_list_of_layouts_gives_each_ordering_in_each(tmp_path):
    layouts = [{"kind": "csr", "lanes": 4}, "tuples", {"kind": "runs", "id_bits": 32}]
    plan = ew.config.load_sweep(config(orderings=["two-optimal", "layerwise"], layout=layouts, scratchpad=PAD))
    found = [(p.order.ordering.kind, p.layout.layout.kind, p.layout.layout.lanes) for p in plan.points]
    each = [("csr", 4), ("tuples", 1), ("runs", 1)]
    assert found == [(order, *rest) for order in ("two-optimal", "layerwise") for rest in each]
    sizes = [p.order.fast_memory.size for p in plan.points]
    assert sizes[0] == (8192 - 1024) // 16 + 1 and sizes[1] == (8192 - 1024) // 4 + 1
    alone = ew.config.load_sweep(config(orderings=["two-optimal"], layout="tuples", scratchpad=PAD)).points[0]
    assert alone.hash == plan.points[1].hash
    swept = ew.sweep(
        {"base": config(), "grid": {"layout": ["csr", {"kind": "tuples", "lanes": 2}]}},
        results=tmp_path, executor="inline",
    )  # fmt: skip
    assert len(swept.records) == 2 and {r.results["layout"] for r in swept.records} == {"csr", "tuples"}


def test_a_trace_that_the_part_does_not_hold_is_refused_before_its_memory_is_taken() -> None:
    from traces.trace.chunks import Chunk, Memory, Trace

    ends = np.array([1 << 31], np.uint64)
    access = Chunk(ends, np.array([4], np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.uint8))
    trace = Trace.from_chunks([access], Memory(1 << 31, 64, None))
    with pytest.raises(InputError, match="beyond the 1,073,741,824 bytes of 'lpddr4-3200'"):
        ew.simulate(trace, ew.Machine(part="lpddr4-3200"))
