"""Sequential streams: periods that are repeated equal those that are played, wires equal a recount bit by bit."""

import json
import random
from dataclasses import fields

import numpy as np
import pytest

from hwmodel.coding.codec import encode
from hwmodel.dram.controller import as_wide, controller_spec
from hwmodel.dram.counts import DramCounts
from hwmodel.dram.energy import data_wire_costs
from hwmodel.dram.engine import DramEngine
from hwmodel.dram.result import DramResult
from hwmodel.dram.stream import StreamCounts, StreamPlayer, play_runs, side_by_side
from hwmodel.dram.tables import address_map, channel_of
from hwmodel.energy.total import replay_energy
from hwmodel.machine import Machine
from hwmodel.parts.part_file import load_part, part_names
from hwmodel.replay import replay
from tests.oracles.stream_oracle import recount
from traces.base.errors import InputError
from traces.trace.chunks import Chunk, Memory, Trace

PARTS = sorted(part_names())
PRESETS = ("dramsim3", "ramulator2", "jedec")


def assert_same(one: DramResult, other: DramResult) -> None:
    for name in ("total_cycles", "end_cycle", "commands", "commands_at_completion", "energy_pj"):
        assert getattr(one, name) == getattr(other, name), name
    for field in fields(DramCounts):
        assert np.array_equal(getattr(one.counts, field.name), getattr(other.counts, field.name)), field.name


def controllers(rng: random.Random) -> dict[str, object]:
    spec: dict[str, object] = {"preset": rng.choice(PRESETS), "refresh": rng.choice(["all-bank", "all-bank", "none"])}
    if rng.random() < 0.6:  # short queues come to the same state sooner
        spec |= {"read_queue_entries": rng.choice([2, 4, 8]), "bank_queue_entries": rng.choice([1, 2, 4])}
    if spec["preset"] != "ramulator2":
        spec["page_policy"] = rng.choice(["open", "closed", "adaptive"])
        spec["scheduler"] = rng.choice(["fr-fcfs", "fcfs"])
    if rng.random() < 0.3:
        spec["requests_per_clock"] = rng.choice([1, 2])
    return spec


@pytest.mark.parametrize("seed", range(60))
def test_repeated_periods_equal_those_that_are_played(seed: int) -> None:
    rng = random.Random(seed)
    part = side_by_side(load_part(PARTS[seed % len(PARTS)]), rng.choice([1, 1, 2]) if seed % len(PARTS) < 2 else 1)
    o = part.organisation
    controller = as_wide(controller_spec(controllers(rng)), o.channels)
    start = rng.randrange(o.capacity_bytes // o.burst_bytes // 2) * o.burst_bytes
    n = int(10 ** rng.uniform(2, 5.5))
    cut = rng.choice([n, n, rng.randrange(n + 1)])
    runs = [(k, way) for k, way in ((cut, rng.choice([0, 0, 1])), (n - cut, rng.randrange(2))) if k]
    played, none = play_runs(part, controller, start, runs, every=True)
    repeated, _ = play_runs(part, controller, start, runs)
    assert none == 0
    assert_same(repeated, played)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("refresh", ["all-bank", "per-bank", "none"])
def test_long_streams_are_repeated_and_rows_are_seen(preset: str, refresh: str) -> None:
    part = load_part("lpddr4-3200")
    controller = as_wide(controller_spec({"preset": preset, "refresh": refresh}), 1)
    runs = [(700_000, 0)]
    played, _ = play_runs(part, controller, 7 << 20, runs, every=True)
    result, repeated = play_runs(part, controller, 7 << 20, runs)
    assert repeated > (300_000 if refresh != "per-bank" else 0)
    assert_same(result, played)


@pytest.mark.parametrize("preset", PRESETS)
def test_reads_repeat_although_writes_are_left_behind(preset: str) -> None:
    """A few posted writes wait until more come: reads go on meanwhile, and the writes leave where they were to go."""
    part = load_part("lpddr4-3200")
    controller = as_wide(controller_spec({"preset": preset}), 1)
    runs = [(1_000, 0), (37, 1), (500_000, 0), (41, 1), (500_000, 0), (3_000, 1)]
    played, _ = play_runs(part, controller, 5 << 20, runs, every=True)
    result, repeated = play_runs(part, controller, 5 << 20, runs)
    assert repeated > (0 if preset == "ramulator2" else 100_000) - 1  # whose common queue is looked at each clock
    assert_same(result, played)


def test_a_stream_is_what_the_engine_plays_of_its_addresses() -> None:
    part = side_by_side(load_part("lpddr5x-8533"), 4)
    controller = as_wide(controller_spec(None), 4)
    engine, n = DramEngine(part, controller), 50_000
    address = np.arange(n, dtype=np.uint64) * np.uint64(32) + np.uint64(1 << 20)
    engine.feed(address, np.arange(n) >= 30_000, np.zeros(n, np.int64))
    engine.finish()
    done, _ = play_runs(part, controller, 1 << 20, [(30_000, 0), (20_000, 1)])
    assert_same(done, engine.result(np.zeros(0, np.int64)))


def weights(n: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).normal(0, 0.02, n).astype(np.float32)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def bursts_of(data: np.ndarray, size: int) -> np.ndarray:
    raw = data.view(np.uint8)
    return np.concatenate((raw, np.zeros(-len(raw) % size, np.uint8))).reshape(-1, size)


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
@pytest.mark.parametrize(("name", "channels"), [("lpddr5x-8533", 8), ("lpddr4-3200", 1), ("hbm3", 1)])
def test_wires_equal_a_recount_however_the_bytes_come(name: str, channels: int, encoder: str) -> None:
    player, data = StreamPlayer(name, channels=channels, encoder=encoder), weights(300_001)
    o = player.part.organisation
    bursts = bursts_of(data, o.burst_bytes)
    channel = channel_of(np.arange(len(bursts), dtype=np.uint64) * np.uint64(o.burst_bytes),
                         address_map(player.part, None))  # fmt: skip
    expected = recount(bursts, channel, o.byte_lanes, dbi=encoder == "dbi-dc")
    pieces = [player.read(data.tobytes()[:640]), player.read(data[320:200_000]), player.read(data[200_000:])]
    total = sum(pieces, StreamCounts())
    assert (total.ones, total.toggles, total.dbi_ones, total.dbi_toggles) == expected
    assert total == player.counts == StreamPlayer(name, channels=channels, encoder=encoder).read(data)
    assert (total.bytes, total.known_bytes, total.bursts) == (600_002, 600_002, len(bursts))


def test_channels_may_be_chosen_by_any_bits_of_the_address() -> None:
    maps = "offset:5 channel:1 column:6 bank:3 row:16", "offset:5 column:6 bank:3 row:16 channel:1"
    data = weights(100_000)
    for text in maps:
        player = StreamPlayer("lpddr4-3200", channels=2, controller={"address_map": text})
        counts, bursts = player.read(data), bursts_of(data, 32)
        channel = np.arange(len(bursts)) % 2 if text == maps[0] else np.zeros(len(bursts))
        assert (counts.ones, counts.toggles) == recount(bursts, channel, 2, dbi=False)[:2]
        assert player.finish().commands["RD"] == len(bursts)


@pytest.mark.parametrize("encoder", ["dbi-ac", "dbi-opt", "base-xor", "base-xor+dbi-dc", "3-lwc", "transition"])
def test_every_encoder_is_the_one_that_encodes(encoder: str) -> None:
    player, data = StreamPlayer("lpddr4-3200", encoder=encoder), weights(65_536)
    costs = data_wire_costs(load_part("lpddr4-3200"))
    whole = encode(data, encoder, element_bytes=2, bus_bytes=2, block_bytes=32, costs=costs)
    counts = [player.read(data[k : k + 16_384]) for k in range(0, len(data), 16_384)]
    total = sum(counts, StreamCounts())
    assert (total.ones + total.dbi_ones, total.toggles + total.dbi_toggles) == (whole.ones, whole.toggles)


@pytest.mark.parametrize("name", ["lpddr5x-8533", "ddr4-3200-x8", "lpddr6-10667"])
@pytest.mark.parametrize("encoder", ["raw", "dbi-dc"])
def test_reads_add_up_to_the_stream(name: str, encoder: str) -> None:
    player = StreamPlayer(name, channels=2, encoder=encoder)
    reads = [
        player.read(weights(20_000)), player.read(100_001), player.read(b""), player.read(weights(501, 1)),
        player.read(3_000, write=True), player.read(weights(5_000, 2), write=True),
    ]  # fmt: skip
    result = player.finish()
    assert sum(reads, StreamCounts()) == result.counts
    assert result.commands["RD"] + result.commands["WR"] == result.counts.bursts
    assert result.counts.bytes - result.counts.known_bytes == 103_001
    whole = result.energy_pj()
    assert whole["total"] == pytest.approx(sum(row.energy_pj for row in result.rows))
    for kind in whole:
        assert sum(result.energy_pj(read)[kind] for read in reads) == pytest.approx(whole[kind])
    assert result.range_pj[0] < whole["total"] < result.range_pj[1]
    assert player.finish().energy_pj() == whole


def test_unknown_bytes_cost_what_random_ones_do() -> None:
    known, unknown = (StreamPlayer("lpddr4-3200", encoder="dbi-dc") for _ in range(2))
    known.read(np.random.default_rng(5).integers(0, 256, 1 << 20, np.uint8))
    counts = unknown.read(1 << 20)
    assert (counts.ones, counts.dbi_ones, counts.known_bytes) == (0, 0, 0)
    assert unknown.finish().energy_pj()["total"] == pytest.approx(known.finish().energy_pj()["total"], rel=1e-3)


@pytest.mark.parametrize("encoder", ["raw", "base-xor+dbi-dc"])
def test_workers_may_share_a_stream(encoder: str) -> None:
    data = weights(100_000)
    whole = StreamPlayer("lpddr5x-8533", channels=4, encoder=encoder)
    expected = [whole.read(data[:40_000]), whole.read(data[40_000:]), whole.read(999, write=True)]
    first = StreamPlayer("lpddr5x-8533", channels=4, encoder=encoder)
    first.read(data[:40_000])
    behind = data[40_000 - 64 * 4 : 40_000]
    second = StreamPlayer("lpddr5x-8533", channels=4, encoder=encoder, start=80_000, before=behind)
    second.read(data[40_000:])
    both = StreamPlayer("lpddr5x-8533", channels=4, encoder=encoder)
    states = [json.loads(json.dumps(player.state())) for player in (first, second)]
    assert [both.add(states[0]), both.add(states[1]), both.read(999, write=True)] == expected
    assert both.read(data) == whole.read(data)  # from the same levels
    assert both.finish().energy_pj() == whole.finish().energy_pj()
    with pytest.raises(InputError, match="does not continue"):
        both.add(states[1])


@pytest.mark.parametrize("encoder", ["raw", "dbi-ac", "dbi-opt", "transition", "base-xor+dbi-dc", "3-lwc", "scrambler"])
def test_a_stream_goes_on_from_a_written_state(encoder: str) -> None:
    data, n = weights(50_000), 0
    whole = StreamPlayer("lpddr5x-8533", channels=2, encoder=encoder)
    together = StreamPlayer("lpddr5x-8533", channels=2, encoder=encoder)
    before: object = b""
    for end in (64, 30_016, 50_000):
        piece = StreamPlayer("lpddr5x-8533", channels=2, encoder=encoder, start=2 * n, before=before)
        piece.read(data[n:end])
        before = json.loads(json.dumps(piece.state()))
        assert together.add(before) == whole.read(data[n:end])
        n = end
    assert together.read(data) == whole.read(data)
    assert together.finish().energy_pj() == whole.finish().energy_pj()


def test_what_does_not_fit_is_refused() -> None:
    player = StreamPlayer("lpddr4-3200")
    with pytest.raises(InputError, match="take more channels"):
        player.read(player.part.organisation.capacity_bytes + 1)
    with pytest.raises(InputError):
        player.read(-1)
    with pytest.raises(InputError):
        player.read(1.5)
    with pytest.raises(InputError, match="element_bytes"):
        StreamPlayer("lpddr4-3200", element_bytes=0)
    for channels in (0, 3, 128, True):
        with pytest.raises(InputError):
            StreamPlayer("lpddr4-3200", channels=channels)
    with pytest.raises(InputError, match="no multiple"):
        StreamPlayer("lpddr4-3200", start=3)
    with pytest.raises(InputError, match="cannot be split"):
        StreamPlayer("lpddr4-3200", encoder="dbi-ac", start=64, before=bytes(64))
    with pytest.raises(InputError, match="whole bursts"):
        StreamPlayer("lpddr4-3200", start=64, before=b"abc")


def test_nothing_read_is_nothing_done() -> None:
    result = StreamPlayer("lpddr4-3200").finish()
    assert result.counts == StreamCounts() and result.cycles == 0 and result.energy_pj()["dynamic"] == 0


@pytest.mark.parametrize("encoder", ["raw", "dbi-ac", "base-xor+dbi-dc"])
def test_a_stream_in_order_is_what_replay_counts(encoder: str) -> None:
    """With fcfs bursts leave in the order of their addresses: the same commands, time and energy, term by term."""
    data, size = weights(16 * 4_000), 32
    address, offset = np.arange(4_000, dtype=np.uint64) * np.uint64(size), np.arange(4_001, dtype=np.int64) * size
    kinds = np.zeros(4_000, np.uint8)
    chunk = Chunk(address, np.full(4_000, size, np.uint8), kinds, kinds, offset, data.view(np.uint8))
    trace = Trace.from_chunks([chunk], Memory(0, data.nbytes, data.view(np.uint8)))
    controller = {"scheduler": "fcfs"}
    machine = Machine(part="lpddr4-3200", controller=controller, encoder=encoder, element_bytes=2)
    replayed = replay(trace, machine, arrival=np.zeros(4_000, np.int64))
    player = StreamPlayer("lpddr4-3200", controller=controller, encoder=encoder)
    player.read(data)
    result = player.finish()
    assert replayed.dram is not None
    assert_same(result.dram, replayed.dram)
    energy = replay_energy(replayed, machine)
    assert {row.term: row.energy_pj for row in result.rows} == {
        row.term: row.energy_pj for row in (*energy.interface, *energy.core) if row.count
    }
