"""Scratchpads, lanes, several memories and one layout for all orderings, from a configuration to its records."""

import warnings

import pytest

import edgewatt as ew
from traces.base.document import ConfigError
from traces.base.errors import WastedRoomWarning

NETWORK = {"generate": {"kind": "uniform-layers", "widths": [12, 12, 12], "density": 0.4}}


def config(**changes):
    return {
        "network": NETWORK,
        "orderings": ["two-optimal", "by-source"],
        "layout": {"lanes": 16},
        "onchip": [{"scratchpad": {"size_bytes": 2048, "stream_bytes": 512}}, {"caches": ["buffer-8k"]}],
        "technology": "lop-45nm",
        **changes,
    }


def test_a_run_compares_memories_and_rows_moved_are_those_counted():
    records = ew.run(config())
    assert len(records) == 4
    for record in records[:2]:
        io, pad = record.results["io"], record.results["scratchpad"]
        assert record.config["fast_memory"]["size"] == pad["memory"] == (2048 - 512) // 64 + 1
        assert [pad[key] for key in ("reads_neurons", "writes_live", "writes_outputs")] == [
            io[key] for key in ("reads_neurons", "writes_live", "writes_outputs")
        ]
        assert pad["bias_bytes"] == {"row": pad["bias_reads"] * 64, "scalar": pad["bias_reads"] * 4}
    for record in records:
        energy = record.results["energy_pj"]
        parts = energy["interface"] + energy["dram"] + energy["onchip"] + energy["compute"]
        assert energy["total"] == pytest.approx(parts)
        assert energy["total"] == pytest.approx(sum(term["pj"] for term in energy["terms"].values()))
    assert "scratchpad" not in records[2].results and records[2].config["caches"]


def test_each_ordering_has_a_layout_of_its_own_or_the_one_named():
    kinds = [record.results["layout"] for record in ew.run(config(onchip=[{"caches": ["buffer-8k"]}]))]
    assert kinds == ["csr", "tuples"]
    shared = ew.run(config(onchip=[{"caches": ["buffer-8k"]}], layout={"kind": "tuples", "lanes": 2}))
    assert [record.results["layout"] for record in shared] == ["tuples", "tuples"]
    rows = ew.run(config(onchip=[{"caches": []}], orderings=["two-optimal", "layerwise"]))
    assert [record.results["layout"] for record in rows] == ["csr", "csr"]
    best = ew.run(config(onchip=[{"caches": []}], layout={"kind": "best", "lanes": 2}))
    assert best[0].results["layout"] == "runs-delta"
    with pytest.raises(ValueError, match=r"ordering by-source: layout 'csr' needs every row in one run of the order"):
        ew.run(config(layout={"kind": "csr"}))


def test_technology_none_gives_memory_alone():
    record = ew.run(config(technology="none", orderings=["two-optimal"]))[0]
    assert "onchip" not in record.results["energy_pj"] and "technology" not in record.config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": {"lanes": 0}}, "lanes must be a whole number of at least 1, not 0"),
        (
            {"onchip": [{"scratchpad": {"size_bytes": 8192}, "caches": ["buffer-8k"]}]},
            "a machine has caches or a scratchpad, not both: leave one out",
        ),
        ({"caches": ["buffer-8k"]}, "`onchip` lists the memories: leave `caches` and `scratchpad` out"),
        ({"onchip": [{"scratchpad": {"size_bytes": 1100}}]}, "holds 1 rows of 64 bytes, M = 2: at least 3 are needed"),
        (
            {"onchip": [{"scratchpad": {"size_bytes": 8192, "stream_bytes": 16}}]},
            "scratchpad stream_bytes 16 is smaller than a burst of 32 bytes",
        ),
        ({"technology": "lop-7nm"}, "lop-7nm"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(ConfigError) as caught:
        ew.run(config(**changes))
    assert message in str(caught.value)


def test_lanes_beyond_the_batch_are_padded_and_said():
    record = ew.run(config(orderings=["two-optimal"], layout={"lanes": 16}, batch=20))[0]
    assert (record.results["passes"], record.results["padded_lanes"]) == (2, 12)


def test_rows_are_packed_on_chip_and_empty_room_is_named():
    """8 KiB hold 113 rows of 16 values in fp32 and 225 in fp16, wherever rows begin in memory."""
    layout = {"lanes": 16, "neuron_format": "fp16"}
    config = {"network": NETWORK, "layout": layout, "scratchpad": {"size_bytes": 8192}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = ew.run(config)
    assert found.config["fast_memory"]["size"] == found.results["scratchpad"]["memory"] == 225
    (wide,) = ew.run({**config, "layout": {"lanes": 16}})
    assert wide.results["scratchpad"]["memory"] == 113
    cached = {**config, "scratchpad": None, "caches": [{"size_bytes": 8192, "ways": 4}]}
    with pytest.warns(WastedRoomWarning, match=r"rows of 32 bytes begin every 64 bytes: 50% .*alignment_bytes to 32"):
        ew.run(cached)
