"""The waveform holds what the bus counts: levels read back beat by beat give the ones and edges of replay."""

import io
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner
from vcd.reader import TokenKind, tokenize

from edgewatt.cli import app
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay import replay
from hwmodel.replay.waveform import export_waveform
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.trace.build import build_trace
from traces.trace_files import open_trace


def read(path):
    """Return signal -> [(ps, value)] of a file."""
    names, at, changes = {}, 0, {}
    for token in tokenize(io.BytesIO(path.read_bytes())):
        if token.kind is TokenKind.VAR:
            names[token.var.id_code] = token.var.reference
            changes[token.var.reference] = []
        elif token.kind is TokenKind.CHANGE_TIME:
            at = token.data
        elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR, TokenKind.CHANGE_STRING):
            value = token.data.value
            value = int(value, 2) if value in ("0", "1") else value
            changes[names[token.data.id_code]].append((at, value))
    return changes


def ones_and_toggles(changes, part, bursts):
    """Sample every wire in the middle of each beat that is driven, and count its edges at any time."""
    burst_ps = round(part.organisation.burst_cycles * part.tck_ns * 1000)
    beats = part.organisation.burst_beats
    starts = [ps for ps, value in changes["burst"] if value != "x"]
    assert len(starts) == bursts
    middles = [start + (2 * beat + 1) * burst_ps // (2 * beats) for start in starts for beat in range(beats)]
    ones = toggles = 0
    for name, events in changes.items():
        if name.rstrip("0123456789") not in ("dq", "dbi", "extra"):
            continue
        times, values = zip(*events, strict=True)
        ones += sum(values[k - 1].bit_count() for k in np.searchsorted(times, middles, side="right"))
        toggles += sum((a ^ b).bit_count() for a, b in pairwise(values))
    return ones, toggles


@pytest.mark.parametrize("encoder", ["raw", "base-xor+dbi-dc", "dbi-ac", "3-lwc", "dbi-dc+transition"])
@pytest.mark.parametrize("part", ["lpddr4-3200", "ddr4-3200-x8", "lpddr5-6400"])
def test_a_whole_run_holds_the_ones_and_edges_of_replay(tmp_path, encoder, part):
    loaded = load_part(part)
    o = loaded.organisation
    machine = Machine((CacheSpec(512, 64, 2),), encoder, bus=BusSpec(o.dq_bits // 8, o.burst_bytes), part=part)
    trace = build_trace(random_layered(3, 12, 0.4, 1))
    total = replay(trace, machine).total
    written = export_waveform(trace, machine, tmp_path / "a.vcd", bursts=10_000)
    assert written == total.bursts
    changes = read(tmp_path / "a.vcd")
    assert ones_and_toggles(changes, loaded, written) == (total.ones, total.toggles)
    commands = [name for _, name in changes["command"] if name]
    assert sum(name in ("RD", "WR", "RDA", "WRA") for name in commands) == written


@pytest.mark.parametrize("encoder", ["dbi-dc", "dbi-opt", "base-xor+dbi-dc+transition"])
def test_twelve_wires_with_their_flags_inside(tmp_path, encoder):
    part = load_part("lpddr6-10667")
    machine = Machine((CacheSpec(512, 64, 2),), encoder, bus=BusSpec(2, 32, 0x1234), part=part)
    trace = build_trace(random_layered(3, 12, 0.4, 1))
    total, found, written = replay(trace, machine).total, np.zeros(2, int), 0
    for channel in (0, 1):
        path = tmp_path / f"{channel}.vcd"
        bursts = export_waveform(trace, machine, path, bursts=10_000, channel=channel)
        changes = read(path)
        assert set(changes) >= {"dq0", "dq1"} and not any(name.startswith(("dbi", "extra")) for name in changes)
        assert "wire 4 " in path.read_text(), "the second lane has four wires"
        found, written = found + ones_and_toggles(changes, part, bursts), written + bursts
    assert (written, *found) == (total.bursts, total.ones, total.toggles)


def test_a_window_is_a_piece_of_the_whole(tmp_path):
    machine = Machine((CacheSpec(512, 64, 2),), "base-xor+dbi-ac", bus=BusSpec(2, 32), part="lpddr4-3200")
    trace = build_trace(random_layered(3, 12, 0.4, 1))
    export_waveform(trace, machine, tmp_path / "all.vcd", bursts=1000)
    export_waveform(trace, machine, tmp_path / "part.vcd", first=20, bursts=5)
    whole, part = read(tmp_path / "all.vcd"), read(tmp_path / "part.vcd")
    starts = {value: ps for ps, value in whole["burst"]}
    shift = starts[20] - dict((value, ps) for ps, value in part["burst"])[20]
    for name in ("dq0", "dq1", "dbi0", "dbi1"):
        inside = [(ps - shift, value) for ps, value in whole[name] if starts[20] <= ps < starts[25]]
        before = [value for ps, value in whole[name] if ps < starts[20]][-1]
        assert part[name] == [(0, before), *inside]


def test_without_a_part_a_beat_takes_a_nanosecond(tmp_path):
    machine = Machine((), "dbi-dc", bus=BusSpec(1, 8))
    trace = build_trace(random_layered(2, 4, 0.5, 1))
    n = export_waveform(trace, machine, tmp_path / "a.vcd")
    changes = read(tmp_path / "a.vcd")
    assert n > 3 and [ps for ps, value in changes["burst"] if value != "x"][:2] == [0, 8000]
    assert not any(name for _, name in changes["command"])


def test_what_a_waveform_refuses(tmp_path):
    machine = Machine((), "dbi-dc", bus=BusSpec(2, 32), part="lpddr4-3200")
    trace = build_trace(random_layered(2, 4, 0.5, 1))
    (tmp_path / "bare.din").write_text("0 1000\n1 1004\n")
    bare = open_trace(tmp_path / "bare.din", "dinero")
    for given, more, words in (
        (trace, {"first": 10_000}, "none from number 10000 on"),
        (trace, {"bursts": 0}, "1 to 100000 bursts"),
        (trace, {"channel": 9}, "channel 9 does not exist"),
        (bare, {}, "addresses only"),
    ):
        with pytest.raises(InputError, match=words):
            export_waveform(given, machine, tmp_path / "a.vcd", **more)
    for channel in (-1, 1):
        with pytest.raises(
            InputError, match=f"channel {channel} does not exist: a machine without a part has channel 0"
        ):
            export_waveform(trace, Machine((), "raw", bus=BusSpec(1, 8)), tmp_path / "a.vcd", channel=channel)
    assert not (tmp_path / "a.vcd").exists()


def test_the_command_writes_a_window(tmp_path):
    from traces.base.resources import shipped_path

    file = tmp_path / "wires.vcd"
    call = ["export", str(shipped_path("examples", "formats")), "-f", "vcd", "--bursts", "8", "-o", str(file)]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0 and "8 records of bursts" in " ".join(shown.output.split()), shown.output
    assert [value for _, value in read(file)["burst"]] == ["x", *range(8)]
