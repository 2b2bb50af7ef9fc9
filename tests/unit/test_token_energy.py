"""A token's energy: wires and commands against a recount in NumPy, sums equal to totals, the command and its page."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import LLAMA, gguf, llama, weights
from safetensors.numpy import save_file
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.memory import token
from hwmodel.dram.engine import DramEngine
from hwmodel.dram.stream import StreamPlayer
from hwmodel.dram.tables import address_map, channel_of
from hwmodel.parts.part import COMMANDS
from hwmodel.parts.part_file import load_part
from tests.oracles.stream_oracle import places, recount_rows
from traces.base.errors import InputError
from traces.base.journal import _line
from traces.checkpoints import TensorStream, plan_token, read_checkpoint

PART = "lpddr5x-8533"


def recount(folder: Path, result: Any, **options: Any) -> tuple[int, int]:
    """Return ones and toggles of all known bytes, burst by burst over the channels of the memory."""
    part = result.stream.part
    size, lanes = part.organisation.burst_bytes, part.organisation.byte_lanes
    mapping = address_map(part, None)
    plan = plan_token(read_checkpoint(folder), **options)
    last: dict[int, np.ndarray] = {}
    ones = toggles = address = 0
    for read in plan.reads:
        data = b"".join(bytes(chunk) for chunk in TensorStream(result.format, result.layout).chunks(read))
        if read.tensor is None:
            address += sum(-(-n // size) for n in (read.kv_read, read.kv_written)) * size
            continue
        data += bytes(-len(data) % size)
        for burst in np.frombuffer(data, np.uint8).reshape(-1, size // lanes, lanes):
            channel = int(channel_of(np.array([address], np.uint64), mapping)[0])
            levels = np.unpackbits(burst, axis=1)
            before = np.concatenate((last.get(channel, np.zeros_like(levels[:1])), levels[:-1]))
            toggles += int((before ^ levels).sum())
            ones += int(levels.sum())
            last[channel] = levels[-1:]
            address += size
    return ones, toggles


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("format", ["as-stored", "int8", "int4"])
def test_wires_and_commands_equal_a_recount(tmp_path: Path, channels: int, format: str) -> None:
    folder = llama(tmp_path / "m")
    result = ew.token_energy(folder, part=PART, channels=channels, format=format)
    report = result.as_dict()
    assert (report["ones"], report["toggles"]) == recount(folder, result)
    size = load_part(PART).organisation.burst_bytes
    reads = [each["bytes"] for each in report["tensors"] if each["kind"] != "kv cache"]
    assert report["commands"]["RD"] == sum(-(-n // size) for n in reads)
    assert report["commands"]["WR"] == 2  # keys and values of two layers, 32 bytes each


@pytest.mark.parametrize("preset", ["dramsim3", "ramulator2", "jedec"])
@pytest.mark.parametrize("part", ["lpddr5x-8533", "hbm3", "ddr4-3200-x8"])
def test_rows_equal_those_of_an_open_page_in_order(tmp_path: Path, part: str, preset: str) -> None:
    controller = {"preset": preset, "refresh": "none"}
    folder = llama(tmp_path / "m", {"model_type": "bert"}, large=weights(512, 1024))  # a pass, which writes nothing
    result = ew.token_energy(folder, part=part, channels=2, controller=controller).stream
    by_channel: dict[int, list[tuple[str, tuple[int, ...], int]]] = {}
    for channel, bank, row in places(result.counts.bursts, result.dram.burst_bytes, result.part.address_map):
        by_channel.setdefault(channel, []).append(("RD", bank, row))
    opened, closed = np.sum([recount_rows(served) for served in by_channel.values()], axis=0)
    assert (result.commands["ACT"], result.commands["PRE"]) == (opened, closed)
    assert result.commands["REFab"] == 0


def test_rows_and_refreshes_equal_a_recount(tmp_path: Path) -> None:
    """Of Ramulator 2's controller, which opens no row that a refresh closes unread."""
    controller = {"preset": "ramulator2"}
    folder = llama(tmp_path / "m", {"model_type": "bert"}, large=weights(1024, 1024))
    result = ew.token_energy(folder, part=PART, channels=4, controller=controller).stream
    engine = DramEngine(result.part, StreamPlayer(PART, channels=4, controller=controller).controller, trace=True)
    n = result.counts.bursts
    address, none = np.arange(n, dtype=np.uint64) * 32, np.zeros(n, np.int64)
    blocks = [engine.feed(address, none, none), engine.finish()]
    counted = np.zeros(2, np.int64)
    for channel in range(4):
        rows = np.concatenate([block.commands[channel] for block in blocks])  # type: ignore[index]
        served = [(COMMANDS[c], (r, g, b), row) for _, _, c, r, g, b, row, _ in rows.tolist()]
        counted += recount_rows(each for each in served if each[0] in ("RD", "REFab"))
    o, counts = result.part.organisation, result.dram.counts
    assert result.commands["ACT"] == counted[0]
    closing = counts.bank_commands[..., [COMMANDS.index(name) for name in ("PRE", "PREA")]]
    assert closing.sum() == counted[1]
    assert result.commands["REFab"] == result.dram.end_cycle // result.part.timing.tREFI * o.channels * o.ranks > 0


@pytest.mark.parametrize("encoder", ["raw", "dbi-dc", "base-xor+dbi-dc"])
def test_sums_over_tensors_are_the_totals(tmp_path: Path, encoder: str) -> None:
    report = ew.token_energy(
        llama(tmp_path / "m"), part=PART, channels=2, encoder=encoder, context=100, batch=3
    ).as_dict()
    for key in ("ones", "toggles", "dbi_ones", "dbi_toggles", "known_bytes"):
        assert sum(each[key] for each in report["tensors"]) == report[key]
    assert sum(each["bytes"] for each in report["tensors"]) == report["weight_bytes"] + report["kv_bytes"]
    assert report["known_bytes"] == report["weight_bytes"]
    energy = report["energy_pj"]
    assert sum(each["energy_pj"] for each in report["tensors"]) == pytest.approx(energy["total"], rel=1e-9)
    assert energy["dynamic"] + energy["static"] == pytest.approx(energy["total"])
    assert report["energy_range_pj"][0] <= energy["total"] <= report["energy_range_pj"][1]
    assert (report["dbi_ones"] > 0) == ("dbi" in encoder)
    assert report["tokens_per_s"] == pytest.approx(3e9 / report["time_ns"])


def test_a_batch_and_fewer_bits_cost_a_token_less(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m")

    def each(**options: Any) -> float:
        return float(ew.token_energy(folder, part=PART, channels=1, **options).as_dict()["energy_per_token_pj"])

    assert each(batch=4) < 0.5 * each()
    assert each(format="int4") < each(format="int8") < each()
    assert each(context=1000) > each()


def test_the_flat_answer_stands_beside(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m")
    report = ew.token_energy(folder, part=PART, channels=1, flat_pj_per_bit=5.0).as_dict()
    flat = report["flat"]
    assert flat["energy_pj"] == pytest.approx(5.0 * 8 * (report["weight_bytes"] + report["kv_bytes"]))
    assert flat["error"] == pytest.approx(flat["energy_pj"] / report["energy_pj"]["total"] - 1)
    assert ew.token_energy(folder, part="hbm3", channels=1).flat.pj_per_bit == 3.92
    horowitz = ew.token_energy(folder, part=PART, channels=1)
    assert (64 * horowitz.flat.pj_per_bit, 64 * horowitz.flat.most_pj_per_bit) == pytest.approx((1300, 2600), rel=1e-3)
    assert any("20.3 to 40.6 pJ a bit" in line and "at least, " in line for line in horowitz.describe())
    with pytest.raises(InputError, match="above 0"):
        ew.token_energy(folder, part=PART, channels=1, flat_pj_per_bit=0.0)


def test_the_command_prints_writes_json_and_a_page(tmp_path: Path) -> None:
    folder = llama(tmp_path / "<b>", strange=weights(3, 5))
    call = ["token", str(folder), "--channels", "2", "--context", "64", "--page", str(tmp_path / "t.html")]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.output
    for words in (
        "attention q",
        "kv cache",
        "lm_head",
        "tokens a second",
        "pJ a bit",
        "random bits assumed",
        "strange",
    ):
        assert words in " ".join(shown.output.split())
    page = (tmp_path / "t.html").read_text()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "model.layers.1.mlp.up_proj.weight" in page
    report = json.loads(CliRunner().invoke(app, [*call, "--json", "-"]).output)
    assert {"weight_bytes", "kv_bytes", "ones", "toggles", "commands", "energy_pj", "time_ns", "tensors"} <= set(report)
    assert set(report["commands"]) == {"ACT", "RD", "WR", "PRE", "REF"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"format": "int5"}, "int8"), ({"layout": "byteplanes"}, "byte-planes"), ({"context": -1}, "context"),
        ({"batch": 0}, "batch"), ({"experts": 2}, "no layer has experts"), ({"kv_bits": 5}, "kv_bits"),
        ({"encoder": "dbi"}, "dbi-ac"), ({"part": "lpddr9"}, "lpddr9"), ({"channels": 3}, "channels"),
        ({"channels": 0}, "channels"), ({"context": 2**40}, "context"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_input_error(tmp_path: Path, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        ew.token_energy(llama(tmp_path / "m"), **{"part": PART, "channels": 1, **options})


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="damaged"):
        ew.token_energy(folder, part=PART, channels=1)


def test_a_context_larger_than_the_memory_is_told(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m", LLAMA)
    with pytest.raises(InputError, match="take more channels"):
        ew.token_energy(folder, part=PART, channels=1, context=2**30, batch=64)


def test_channels_that_a_part_cannot_be_have_another_default(tmp_path: Path) -> None:
    """HBM3 is 32 channels in itself, and a memory has 64 at most."""
    folder = llama(tmp_path / "m")
    assert ew.token_energy(folder, part="lpddr5x-8533").channels == 8
    shown = CliRunner().invoke(app, ["token", str(folder), "--part", "hbm3", "--json", "-"])
    assert json.loads(shown.output)["channels"] == 2
    with pytest.raises(InputError, match=r"channels of 'hbm3' \(--channels\) must be .* 1 to 2, not 8: each is 32"):
        ew.token_energy(folder, part="hbm3", channels=8)


def test_one_is_one_and_thousands_are_apart(tmp_path: Path) -> None:
    call = ["token", str(llama(tmp_path / "m", {"model_type": "bert"})), "--channels", "1"]
    output = " ".join(CliRunner().invoke(app, call).output.split())
    assert f"on {PART} x 1 channel, as-stored" in output and "a pass of 1 token:" in output
    assert re.search(r"\d,\d{3} tokens a second", output)


def test_ordering_channels_says_what_it_saves(tmp_path: Path) -> None:
    call = ["token", str(llama(tmp_path / "m")), "--channels", "1", "--order-channels", str(tmp_path / "o")]
    report = json.loads(CliRunner().invoke(app, [*call, "--json", "-"]).output)
    assert report["toggles"] < report["before"]["toggles"]
    assert {each["name"] for each in report["channel_orders"]} >= {"layer 0: mlp", "residual stream"}
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.output
    assert "groups of channels ordered" in " ".join(shown.output.split())
    assert ew.token_energy(tmp_path / "o", part=PART, channels=1).as_dict()["toggles"] == report["toggles"]


def test_a_checkpoint_of_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf({}))
    with pytest.raises(InputError, match="no tensor"):
        ew.token_energy(tmp_path / "m.gguf", part=PART, channels=1)


@pytest.mark.parametrize("shape", [(5, 0), (0, 5)])
def test_tensors_of_no_byte_are_nothing_to_read(tmp_path: Path, shape: tuple[int, int]) -> None:
    save_file({"w": np.zeros(shape, np.float32)}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match=r"m\.safetensors: holds no tensor that a token reads a byte of"):
        ew.token_energy(tmp_path / "m.safetensors", part=PART, channels=1)


@pytest.mark.parametrize("channels", [1, 8])
@pytest.mark.parametrize("format", ["as-stored", "int8", "int4"])
@pytest.mark.parametrize("encoder", ["raw", "base-xor+dbi-dc"])
def test_workers_count_the_same(tmp_path: Path, channels: int, format: str, encoder: str) -> None:
    config = {**LLAMA, "num_local_experts": 5, "num_experts_per_tok": 2}
    experts = {"model.layers.0.mlp.experts.up_proj": weights(5, 3, 7)}
    folder = llama(tmp_path / "m", config, strange=weights(3, 5), **experts)
    how: dict[str, Any] = {"part": PART, "channels": channels, "format": format, "encoder": encoder, "context": 9}
    alone = ew.token_energy(folder, **how).as_dict()
    assert ew.token_energy(folder, **how, workers=2, executor="threads").as_dict() == alone


@pytest.mark.parametrize(
    ("encoder", "first", "then"),
    [("raw", 1, 1), ("raw", 1, 2), ("raw", 2, 1), ("dbi-ac", 1, 1), ("base-xor+dbi-dc", 2, 2)],
)
def test_a_killed_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: str, first: int, then: int
) -> None:
    folder, journal = llama(tmp_path / "m"), tmp_path / "j"
    how: dict[str, Any] = {"part": PART, "channels": 2, "encoder": encoder, "context": 9, "executor": "threads"}
    alone = ew.token_energy(folder, **how).as_dict()
    counted: list[str] = []
    count_read = token.count_read

    def counts(read: Any, *given: Any) -> dict[str, Any]:
        counted.append(read.name)
        if len(counted) == 5:
            raise KeyboardInterrupt
        return count_read(read, *given)

    monkeypatch.setattr(token, "count_read", counts)
    with pytest.raises(KeyboardInterrupt):
        ew.token_energy(folder, **how, workers=first, journal=journal)
    before = len(counted)
    assert journal.exists() or first > 1
    if journal.exists():  # two workers may be killed before the first line
        with open(journal, "a") as stream:
            stream.write('{"read":7,"sta')  # cut off
    assert ew.token_energy(folder, **how, workers=then, journal=journal).as_dict() == alone
    again = len(counted)
    assert first > 1 or again == before + len(alone["tensors"]) - 4
    assert ew.token_energy(folder, **how, journal=journal).as_dict() == alone
    assert len(counted) == again
    other = ew.token_energy(folder, **(how | {"channels": 1}), journal=journal).as_dict()
    assert other == ew.token_energy(folder, **(how | {"channels": 1})).as_dict()


def test_counts_of_unknown_bytes_are_not_shown_as_none(tmp_path: Path) -> None:
    """Keys and values have no ones and toggles in the page's table: their bits are not known."""
    page = ew.token_energy(llama(tmp_path / "m"), part=PART, channels=2, context=100).page("m")
    rows = re.findall(r"<tr>(?:<td[^>]*>[^<]*</td>)+</tr>", page)
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    tensors = [row for row in cells if len(row) == 7]
    unknown = [row for row in tensors if row[1] == "kv cache"]
    assert unknown and all(row[4:6] == ["-", "-"] for row in unknown)
    assert all("-" not in row[4:6] for row in tensors if row[1] != "kv cache")


@pytest.mark.parametrize("change", ["levels", "chains", "wires", "runs", "next", "read", "counts", "kind", "state"])
def test_a_line_that_does_not_fit_is_streamed_again(tmp_path: Path, change: str) -> None:
    folder, path = llama(tmp_path / "m"), tmp_path / "j"
    how: dict[str, Any] = {"part": PART, "channels": 2, "encoder": "dbi-ac", "journal": path}
    expected = ew.token_energy(folder, **how).as_dict()
    first, *lines = path.read_text().splitlines(keepends=True)
    for wrong in (None, -1, 10**30, [], [[1]], "text"):
        line = json.loads(lines[3].rpartition(" ")[0])
        (line if change in line else line["state"])[change] = wrong
        path.write_text("".join([first, *lines[:3], _line(line), *lines[4:]]))
        assert ew.token_energy(folder, **how).as_dict() == expected


def test_what_workers_cannot_share_is_told(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m")
    with pytest.raises(InputError, match="cannot be split"):
        ew.token_energy(folder, part=PART, channels=1, encoder="dbi-ac", workers=2, executor="threads")
    with pytest.raises(InputError, match="byte-planes"):
        ew.token_energy(folder, part=PART, channels=1, layout="byte-planes", workers=2)
