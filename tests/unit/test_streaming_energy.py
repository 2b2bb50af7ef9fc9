"""What a bit costs on each part: bursts inside the part as published, and the whole of LPDDR4 in its usual range."""

import numpy as np
import pytest

from hwmodel.dram.energy import core_constants_pj
from hwmodel.energy.total import run_energy
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay import replay
from traces.trace.chunks import Chunk, Memory, Trace

# pJ a bit read inside the part, above background: Micron's data sheets (LPDDR5X Y52P, VDD2H 40 to 390 mA and VDD1 2.8
# to 18 mA at 7500 MT/s on 16 wires; DDR5 MT60B revision D, 91 to 218 mA at 5600 MT/s on 8), HBM2 O'Connor et al. 2017.
PUBLISHED = {
    "lpddr5x-8533": (1.05 * 350 + 1.8 * 15.2) / (7.5 * 16),
    "lpddr5-6400": (1.05 * 350 + 1.8 * 15.2) / (7.5 * 16),
    "ddr5-4800-x8": 1.1 * 127 / (5.6 * 8),
    "hbm2": 2.68,
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_burst_takes_what_is_published(name):
    part = load_part(name)
    found = core_constants_pj(part)["read"][1] / (8 * part.organisation.burst_bytes)
    assert found == pytest.approx(PUBLISHED[name], rel=0.02)


def test_a_channel_of_lpddr4_has_half_of_its_die():
    """DRAMSys' 6 Gb die of two channels: 275 mA reading, 30 with rows open."""
    found = core_constants_pj(load_part("lpddr4-3200"))["read"][1]
    assert found == pytest.approx(1.1 * (275 - 30) / 2 * 5.0)


def streaming_pj(name, write):
    part = load_part(name)
    burst, n = part.organisation.burst_bytes, 4096 * part.organisation.channels
    data = np.random.default_rng(0).integers(0, 256, n * burst, dtype=np.uint8)
    chunk = Chunk(
        np.arange(n, dtype=np.uint64) * np.uint64(burst), np.full(n, burst, np.uint16), np.full(n, write, np.uint8),
        np.zeros(n, np.uint8), np.arange(n + 1) * burst, data,
    )  # fmt: skip
    machine = Machine(
        (), bus=BusSpec(part.organisation.byte_lanes, burst), part=part, controller={"front_end": "independent"}
    )
    result = replay(Trace.from_chunks([chunk], Memory(0, n * burst, data)), machine, arrival=np.zeros(n, np.int64))
    return run_energy(result, machine, result.dram.time_ns).total_pj / (8 * n * burst)


@pytest.mark.parametrize("name", ["lpddr4-3200", "lpddr4-3733", "lpddr4-4266"])
def test_streaming_lpddr4_takes_4_to_6_pj_a_bit(name):
    assert all(4 < streaming_pj(name, write) < 6 for write in (0, 1))


FAMILIES = (
    ("lpddr4-4266", "lpddr5-6400", "lpddr5x-8533", "lpddr6-10667"),
    ("ddr4-3200-x8", "ddr5-4800-x8"),
    ("hbm2", "hbm3"),
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family[0])
def test_newer_generations_take_less(family):
    read = [streaming_pj(name, 0) for name in family]
    assert read == sorted(read, reverse=True)
