"""On-chip memory and arithmetic: figures from the table, counts times constants, leakage times time."""

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles.trace_oracle import small_network

from hwmodel.caches.spec import CacheSpec
from hwmodel.energy.onchip import onchip_energy
from hwmodel.energy.technology import Technology, load_technology
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import EngineSpec, Machine
from hwmodel.replay import replay
from traces.base.document import read_document
from traces.base.errors import InputError
from traces.base.resources import shipped_path
from traces.formats.floats import FloatFormat
from traces.formats.format import FORMATS, Format
from traces.formats.integers import IntegerFormat
from traces.layout.settings import Layout
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace

NODES = ("lop-45nm", "lop-32nm", "lop-22nm")


def test_every_row_of_the_reference_sweep_is_in_the_tables(reference: Path) -> None:
    seen = 0
    with open(reference / "sram" / "sram.csv") as file:
        for row in csv.DictReader(file):
            technology = load_technology(f"lop-{row['technology_nm']}nm")
            tables = technology.ram if row["kind"] == "ram" else technology.cache
            table = next(t for t in tables if (t.block_bytes, t.ways) == (int(row["block_bytes"]), int(row["ways"])))
            found = table.at(int(row["size_bytes"]))
            assert found.read_pj == pytest.approx(1e3 * float(row["read_energy_nj"]), rel=1e-5)
            assert found.write_pj == pytest.approx(1e3 * float(row["write_energy_nj"]), rel=1e-5)
            assert found.leakage_mw == pytest.approx(float(row["leakage_mw"]), rel=1e-5)
            assert found.area_um2 == pytest.approx(1e6 * float(row["area_mm2"]), rel=1e-5)
            seen += 1
    assert seen == 156


def energy_factor(a2: float, a1: float, a0: float, volts: float = 0.9) -> float:
    return a2 * volts**2 + a1 * volts + a0


def test_multiply_adds_are_those_of_the_figure(reference: Path) -> None:
    """At 45 nm Horowitz's; at 32 and 22 nm scaled by Stillmaker and Baas 2017, table 5 (high performance), at 0.9 V."""
    with open(reference / "sram" / "arithmetic.csv") as file:
        figure = {(row["operation"], row["format"]): float(row["energy_pj"]) for row in csv.DictReader(file)}
    at = {
        45: energy_factor(1.018, -0.3107, 0.1539),
        32: energy_factor(0.8367, -0.4341, 0.1701),  # 0.4571, as in the paper's corrigendum
        20: energy_factor(0.373, -0.1582, 0.04104),
    }
    share = math.log(32 / 22) / math.log(32 / 20)
    at[22] = at[32] ** (1 - share) * at[20] ** share
    for name in NODES:
        technology = load_technology(name)
        factor = at[technology.technology_nm] / at[45]
        for form, sums in (("fp32", "fp32"), ("fp16", "fp32"), ("int8", "int32")):
            found = technology.arithmetic(form)
            exact = (figure["multiply", form] * factor, figure["add", sums] * factor)
            assert (found.product_pj, found.sum_pj) == pytest.approx(exact, rel=5e-3)
            assert found.estimate == (technology.technology_nm != 45)
            low, high = (found.total_pj * end for end in (technology.arithmetic_low, technology.arithmetic_high))
            unscaled = figure["multiply", form] + figure["add", sums]
            assert low < found.total_pj < high and high > unscaled
        assert all(technology.arithmetic(form).estimate for form in ("bf16", "fp8_e4m3", "fp8_e5m2", "int4"))


def test_between_points_figures_are_log_log() -> None:
    table = load_technology("lop-45nm").ram[0]
    sizes, reads = table.size_bytes, table.read_pj
    middle = round(math.sqrt(sizes[2] * sizes[3]))
    assert table.at(middle).read_pj == pytest.approx(math.sqrt(reads[2] * reads[3]), rel=1e-3)
    with pytest.raises(InputError, match="beyond a factor of four"):
        table.at(sizes[-1] * 8)


def test_a_scratchpad_is_counts_times_constants() -> None:
    machine = Machine(scratchpad=ScratchpadSpec(8192), technology="lop-45nm", engine=EngineSpec(access_bytes=16))
    trace = build_trace(small_network(), lanes=16, batch=32, layout=Layout("tuples", value_format="int8"))
    result = replay(trace, machine)
    energy = onchip_energy(result, machine, 1000.0)
    counts, technology = result.scratchpad, load_technology("lop-45nm")
    assert counts is not None
    narrow, wide = technology.scratchpad(8192, 4), technology.scratchpad(8192, 32)
    expected = {
        "scratchpad_read": counts.rows_read * 4 * wide.read_pj,  # 64 bytes by 16, each through the 32-byte port
        "scratchpad_write": counts.rows_written * 4 * wide.write_pj,
        "scratchpad_connections": counts.connection_accesses * narrow.read_pj,
        "scratchpad_dma_in": -(-int(result.load_bytes.sum()) // 32) * wide.write_pj,
        "scratchpad_dma_out": -(-int(result.store_bytes.sum()) // 32) * wide.read_pj,
        "scratchpad_leakage": 1000 * wide.leakage_mw,
    }
    assert {row.term: row.energy_pj for row in energy.memory} == pytest.approx(expected)
    assert result.work.multiply_adds == 5 * 16 * 2
    assert energy.compute_pj == pytest.approx(160 * 0.3)
    assert energy.low_pj < energy.memory_pj + energy.compute_pj < energy.high_pj


def test_a_cache_access_costs_its_width_and_lines_move_whole() -> None:
    machine = Machine(caches=(CacheSpec(8192, 64, 4),), technology="lop-22nm")
    result = replay(build_trace(small_network(), layout="tuples"), machine)
    energy, level = onchip_energy(result, machine, 10.0), result.caches[0]
    technology = load_technology("lop-22nm")
    line, word = technology.line_cache(8192, 4), technology.line_cache(8192, 4, 4)
    rows = {row.term: (row.count, row.constant_pj) for row in energy.memory}
    neurons = [STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs")]
    assert rows["l1_read"] == (int(result.loads[neurons].sum()), pytest.approx(word.read_pj))
    assert rows["l1_connections"][0] == int(result.loads.sum()) - rows["l1_read"][0]
    assert rows["l1_write"] == (int(result.stores.sum()), pytest.approx(word.write_pj))
    assert rows["l1_fill"] == (level.fills, line.write_pj)
    assert rows["l1_writeback"] == (level.writebacks + level.dirty_at_end, line.read_pj)
    assert rows["l1_leakage"] == (10, line.leakage_mw)
    assert 3 * word.read_pj < line.read_pj


def test_a_wide_row_takes_as_many_accesses_as_the_engine_makes_and_split_ones_more() -> None:
    """16 vectors of fp32, 64 bytes: one access of an engine of 64 bytes, four of one of 16."""
    technology, found = load_technology("lop-45nm"), {}
    for width in (64, 16):
        machine = Machine(
            caches=(CacheSpec(8192, 64, 4),), technology="lop-45nm", engine=EngineSpec(access_bytes=width)
        )
        result = replay(build_trace(small_network(), lanes=16, batch=16, layout=Layout("tuples")), machine)
        found[width] = {row.term: row for row in onchip_energy(result, machine, 0.0).memory}
        assert found[width]["l1_read"].constant_pj == pytest.approx(technology.line_cache(8192, 4, width).read_pj)
    assert found[16]["l1_read"].count == 4 * found[64]["l1_read"].count
    machine = Machine(caches=(CacheSpec(8192, 64, 4),), technology="lop-45nm")
    crossing = Chunk(
        np.array([62], np.uint64), np.array([4], np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.uint8), None, None
    )
    result = replay(Trace.from_chunks([crossing], Memory(0, 4096, None)), machine)
    terms = {row.term: row.count for row in onchip_energy(result, machine, 0.0).memory}
    assert terms["l1_split"] == 1 and terms.get("l1_read", 0) + terms.get("l1_connections", 0) == 1


def test_loads_that_bypass_the_first_level_are_no_accesses_of_it() -> None:
    found = {}
    for streams in ((), ("tuples",)):
        machine = Machine(caches=(CacheSpec(8192, 64, 4, bypass=streams),), technology="lop-45nm")
        result = replay(build_trace(small_network(), layout="tuples"), machine)
        found[streams] = {row.term: row.count for row in onchip_energy(result, machine, 0.0).memory}
    assert "l1_connections" in found[()] and "l1_connections" not in found["tuples",]
    assert all(found["tuples",][name] == found[()][name] for name in ("l1_read", "l1_write"))


def test_loads_that_bypass_hide_no_further_lines_of_others() -> None:
    machine = Machine(caches=(CacheSpec(8192, 64, 4, bypass=("values",)),), technology="lop-45nm")
    stream = np.array([STREAMS.index("values")] * 3 + [STREAMS.index("inputs")], np.uint8)
    address, size = np.array([0, 4, 8, 126], np.uint64), np.full(4, 4, np.uint8)
    chunk = Chunk(address, size, np.zeros(4, np.uint8), stream, None, None)
    result = replay(Trace.from_chunks([chunk], Memory(0, 4096, None)), machine)
    rows = {row.term: row.count for row in onchip_energy(result, machine, 0.0).memory}
    assert rows == {"l1_read": 1, "l1_split": 1, "l1_fill": 2}


def test_the_second_level_reads_lines_of_the_first() -> None:
    machine = Machine(caches=(CacheSpec(8192, 64, 4), CacheSpec(65536, 64, 8)), technology="lop-45nm")
    result = replay(build_trace(small_network(), layout="tuples"), machine)
    rows = {row.term: row for row in onchip_energy(result, machine, 0.0).memory}
    assert rows["l2_read"].count == result.caches[0].fills
    assert rows["l2_read"].constant_pj == load_technology("lop-45nm").line_cache(65536, 8).read_pj


def test_four_bytes_of_8_kib_at_45_nm() -> None:
    """CACTI 7 with an output of 32 bits: a cache of lines of 64 bytes and 4 ways with its tags, and a scratchpad."""
    technology = load_technology("lop-45nm")
    assert technology.line_cache(8192, 4, 4).read_pj == pytest.approx(4.17956)
    assert technology.scratchpad(8192, 4).read_pj == pytest.approx(3.18365)
    assert technology.line_cache(8192, 4).read_pj == pytest.approx(60.706)


def test_a_format_that_the_technology_does_not_list_is_estimated_and_marked() -> None:
    """By the bits of its significand: log-log between listed formats, by their square beyond; the sum stays."""
    technology = load_technology("lop-45nm")
    with _format("fp8_e3m4", FloatFormat(8, "float8_e3m4")), _format("ternary", IntegerFormat(2)):
        found = technology.arithmetic("fp8_e3m4")  # 5 bits, between fp8_e4m3 (4) and bf16 (8)
        listed = technology.arithmetic("fp8_e4m3"), technology.arithmetic("bf16")
        assert found.estimate and found.estimated_from == ("fp8_e4m3", "bf16")
        assert found.product_pj == pytest.approx(listed[0].product_pj * (5 / 4) ** 2, rel=0.01)
        assert found.sum_pj == listed[0].sum_pj
        least = technology.arithmetic("ternary")
        assert least.estimated_from == ("int4",) and least.product_pj == pytest.approx(0.05 / 4)
        machine = Machine(caches=(CacheSpec(8192, 64, 4),), technology=technology)
        result = replay(build_trace(small_network(), layout=Layout("tuples", value_format="fp8_e3m4")), machine)
        (row,) = onchip_energy(result, machine, 10.0).compute
        assert row.unit == "multiply-adds in fp8_e3m4 (estimate from fp8_e4m3 and bf16)"


@contextmanager
def _format(name: str, item: Format) -> Iterator[None]:
    FORMATS.register(name, summary="of a test")(item)
    try:
        yield
    finally:
        del FORMATS._entries[name]


def test_listed_formats_agree_with_the_rule() -> None:
    """What the shipped files list is within what the rule would say of it from its neighbours."""
    technology = load_technology("lop-45nm")
    for name in ("bf16", "fp8_e4m3"):
        others = replace(technology, multiply_add={k: v for k, v in technology.multiply_add.items() if k != name})
        assert others.arithmetic(name).product_pj == pytest.approx(technology.arithmetic(name).product_pj, rel=0.02)


def test_bad_files(tmp_path: Path) -> None:
    good = load_technology("lop-45nm")
    assert isinstance(good, Technology) and load_technology(replace(good, name="mine")).name == "mine"
    path = tmp_path / "bad.yaml"
    path.write_text("technology_nm: 45\n")
    with pytest.raises(InputError, match="missing key 'low'"):
        load_technology(path)
    with pytest.raises(InputError, match="no multiply-add in 'posit8'"):
        good.arithmetic("posit8")


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("technology_nm: 45", "technology_nm: x", r":5:16: .*technology_nm: expected a whole number, not the text 'x'"),
        ("technology_nm: 45", "technology_nm: 45\nnonsense: 3", r":6:\d+: .*unknown key 'nonsense'"),
        ("    ways: 4", "    wais: 4", r"unknown key 'wais' \(did you mean 'ways'"),
        ("size_bytes: [1024, 2048", "size_bytes: [2048, 1024", r"ram.0.size_bytes: two sizes or more are needed, asc"),
        ("int8: {product_pj", "int8: {produkt_pj", r"multiply_add.int8.*did you mean 'product_pj'"),
        ("  area_um2: 17655", "  area_um2: -1", r"codec.area_um2: must be more than 0.0, not -1"),
    ],
)
def test_a_technology_says_where_it_is_wrong(tmp_path: Path, was: str, now: str, message: str) -> None:
    good = shipped_path("onchip", "lop-45nm").read_text()
    assert was in good
    (tmp_path / "cells.yaml").write_text(good.replace(was, now, 1))
    with pytest.raises(InputError, match=message):
        load_technology(tmp_path / "cells.yaml")


def test_all_mistakes_of_a_technology_are_told_at_once() -> None:
    content = read_document(shipped_path("onchip", "lop-45nm")).data
    assert replace(load_technology(content), name="lop-45nm") == load_technology("lop-45nm")
    content["low"], content["cache"][0]["ways"], content["multiply_add"]["int8"]["sum_pj"] = "1", 2.5, 10**400
    with pytest.raises(InputError) as caught:
        load_technology(content)
    assert [line.partition(": ")[2].partition(": expected ")[0] for line in str(caught.value).splitlines()] == [
        "low", "cache.0.ways", "multiply_add.int8.sum_pj",
    ]  # fmt: skip
