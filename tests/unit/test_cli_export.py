"""`edgewatt export`: from a configuration or another simulator's file to a trace file."""

import json

import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from traces.base.errors import InputError
from traces.base.resources import config_root
from traces.trace_files import open_trace

QUICKSTART = str(config_root() / "examples" / "formats.yaml")


def export(*arguments):
    result = CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_accesses_and_bursts_of_a_configuration(tmp_path):
    accesses, bursts = tmp_path / "a.din", tmp_path / "b.trace"
    summary = json.loads(export(QUICKSTART, "-f", "dinero", "-o", accesses, "--json", "-"))
    assert summary["records"] == open_trace(accesses).n_accesses > 10_000
    assert "records of bursts" in export(QUICKSTART, "-f", "dramsim3", "--level", "bursts", "-o", bursts, "--point", 1)
    assert 0 < open_trace(bursts).n_accesses < summary["records"]
    export(bursts, "-f", "libcachesim", "-o", tmp_path / "b.bin", "--line-bytes", 32)
    assert open_trace(tmp_path / "b.bin").n_accesses == open_trace(bursts).n_accesses


def test_our_own_file_keeps_the_data_and_commands_are_written(tmp_path):
    export(QUICKSTART, "-f", "npz", "-o", tmp_path / "t.npz")
    assert open_trace(tmp_path / "t.npz").has_data
    assert "records of commands" in export(QUICKSTART, "-f", "drampower", "-o", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().splitlines()[-1].endswith(",END,0,0,0,0,0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((QUICKSTART, "-f", "dinro"), r"unknown export format 'dinro' \(did you mean 'dinero'\?\)"),
        ((QUICKSTART, "-f", "dinero", "--level", "bursst"), r"unknown level 'bursst' \(did you mean 'bursts'\?\)"),
        ((QUICKSTART, "-f", "dinero", "--point", "999"), "there is no point 999"),
        (("given.trace", "-f", "dinero", "--level", "bursts"), "a trace file has no machine"),
        (("given.trace", "-f", "drampower"), "needs a machine"),
        (
            (QUICKSTART, "-f", "dramsim3", "--channel", "9"),
            "--channel is for -f vcd and drampower, not for -f dramsim3",
        ),
        ((QUICKSTART, "-f", "matrix", "--lanes", "4"), "--lanes is for -f c, not for -f matrix"),
        (("given.trace", "-f", "dinero"), "no such file"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["export", *arguments, "-o", "out"], catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_ios_alone_have_no_trace(tmp_path):
    (tmp_path / "c.yaml").write_text(f"base: {QUICKSTART}\ngrid: {{measure: [io]}}\n")
    with pytest.raises(InputError, match=r"'measure: io' counts I/Os alone, which leave no trace: .* -s measure=all"):
        export(tmp_path / "c.yaml", "-f", "dinero", "-o", tmp_path / "a.din")
    said = export(tmp_path / "c.yaml", "-s", "measure=all", "-f", "dinero", "-o", tmp_path / "a")
    assert "records of accesses" in " ".join(said.split())


def test_a_recorded_trace_is_exported_with_its_machine(tmp_path):
    source = config_root() / "examples" / "external-trace.yaml"
    assert "records of bursts" in export(source, "-f", "dramsim3", "--level", "bursts", "-o", tmp_path / "out.trace")
    arguments = ["export", str(source), "-f", "matrix", "-o", str(tmp_path / "out.npz")]
    with pytest.raises(InputError, match="plays a recorded trace, which holds no matrix"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert not (tmp_path / "out.npz").exists()


def test_a_recorded_trace_has_no_matrix_and_is_cut_into_bursts(tmp_path):
    recorded = str(config_root() / "examples" / "external-trace.yaml")
    out = tmp_path / "m.npz"
    refused = CliRunner().invoke(app, ["export", recorded, "-f", "matrix", "-o", str(out)])
    assert isinstance(refused.exception, InputError) and "which holds no matrix" in str(refused.exception)
    assert not out.exists()
    export(recorded, "-f", "dramsim3", "--level", "bursts", "-o", tmp_path / "b.trace")
    assert open_trace(tmp_path / "b.trace").n_accesses > 0
