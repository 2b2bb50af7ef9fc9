"""Energy sees all wires that an encoder declares, whatever it is called and however the part ends its wires."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from hwmodel.coding.stage import ENCODERS
from hwmodel.energy.total import replay_energy
from hwmodel.machine import BusSpec
from traces.generators.networks import random_layered
from traces.networks.network import Network

pytestmark = pytest.mark.application

NETWORK = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 24, "density": 0.4, "seed": 2}}


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(n_layers=3, width=24, density=0.4, seed=2)


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of a record's results and where it stands."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from numbers(inner, f"{path}.{key}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


@pytest.mark.parametrize("encoder", ["3-lwc", "dbi-dc", "dbi-ac", "base-xor+3-lwc"])
@pytest.mark.parametrize("part", ["ddr4-3200-x8", "lpddr4-3200"])
def test_no_count_of_a_record_is_negative(encoder: str, part: str) -> None:
    wires = ew.dram.load_part(part)
    bus = {"bus_bytes": wires.organisation.byte_lanes, "block_bytes": wires.organisation.burst_bytes}
    (record,) = ew.run({"network": NETWORK, "encoder": encoder, "bus": bus, "dram": {"part": part}})
    assert [found for found in numbers(record.results) if found[1] < 0] == []


@pytest.mark.parametrize("part", ["lpddr4-3200", "ddr4-3200-x8"])
def test_a_renamed_encoder_costs_the_same(monkeypatch: pytest.MonkeyPatch, network: Network, part: str) -> None:
    """What makes a part's DBI cheap is what the encoder declares, not what it is called."""
    entry = ENCODERS["dbi-dc"]
    monkeypatch.setitem(
        ENCODERS._entries, "heavy-bytes", type(entry)("heavy-bytes", type("Own", (entry.item,), {}), "")
    )
    trace, wires = ew.build_trace(network, batch=4), ew.dram.load_part(part)
    energy = {}
    for name in ("raw", "dbi-dc", "heavy-bytes"):
        machine = ew.Machine(
            caches=(ew.CacheSpec(size_bytes=256, ways=2),),
            encoder=name,
            bus=BusSpec(wires.organisation.byte_lanes, wires.organisation.burst_bytes),
            part=wires,  # itself: what its name gives is another test's
        )
        counts = ew.replay(trace, machine)
        energy[name] = replay_energy(counts, machine).total_pj, counts.total.ones
    assert energy["heavy-bytes"] == energy["dbi-dc"]
    assert energy["dbi-dc"] != energy["raw"]


@pytest.mark.parametrize("part", ["lpddr4-3200", "ddr5-4800-x8"])
def test_a_machine_may_name_its_part(part: str, network: Network) -> None:
    """A name, a file and the part itself are one machine."""
    lanes, block = ew.dram.load_part(part).organisation.byte_lanes, ew.dram.load_part(part).organisation.burst_bytes
    trace = ew.build_trace(network, batch=4)
    named, given = (ew.Machine(part=p, bus=BusSpec(lanes, block)) for p in (part, ew.dram.load_part(part)))
    of_name, of_part = (replay_energy(ew.replay(trace, machine), machine) for machine in (named, given))
    assert of_name.total_pj == of_part.total_pj > 0
    assert [(row.term, row.count) for row in of_name.interface] == [(row.term, row.count) for row in of_part.interface]


@pytest.mark.parametrize(
    ("words", "said"), [(["-f", "dinero", "--level", "bursts"], "records of bursts"), (["-f", "matrix"], "")]
)
def test_a_recorded_trace_is_exported_or_refused(tmp_path: Path, words: list[str], said: str) -> None:
    from typer.testing import CliRunner

    from edgewatt.cli import app
    from traces.base.errors import InputError

    (tmp_path / "t.din").write_text("".join(f"{'rw'[k % 2]} {64 * k:x} 8\n" for k in range(40)))
    (tmp_path / "run.yaml").write_text("trace: {file: t.din}\ncaches: [buffer-8k]\n")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run.yaml"), *words, "-o", str(tmp_path / "out.npz")])
    if said:
        assert done.exit_code == 0 and said in done.output, done.output
        lines = (tmp_path / "out.npz").read_text().splitlines()
        assert len(lines) == 120, "40 lines of two bursts are read, the 20 that were stored to go out at the end"
    else:
        assert isinstance(done.exception, InputError), done.exception
        assert "recorded trace" in str(done.exception)
