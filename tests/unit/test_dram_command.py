"""`edgewatt dram`: a table for people, JSON for programs, a command trace that our own reader takes."""

import json

import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.dram.checker import check_trace
from hwmodel.dram.command_table import command_table, count_commands
from hwmodel.dram.engine import load_part
from traces.base.errors import InputError


@pytest.fixture
def requests(tmp_path):
    file = tmp_path / "requests.trc"
    lines = [f"0x{(k * 7919 % 4096) * 32:X} {'WRITE' if k % 5 == 0 else 'READ'} {k * 20}" for k in range(400)]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_table_explain_check_and_command_trace(requests, tmp_path):
    out = tmp_path / "commands.csv"
    shown = CliRunner().invoke(app, ["dram", str(requests), "--explain", "--check", "--commands", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "every command is legal" in shown.output and "activates" in shown.output
    part = load_part("lpddr4-3200")
    table = command_table(out, part=part)
    assert not check_trace(table, part=part)
    result = CliRunner().invoke(app, ["dram", str(requests), "--json", "-"])
    report = json.loads(result.stdout)
    assert report["requests"] == 400 and report["commands"]["RD"] == count_commands(table, part=part).reads
    assert report["core_energy_pj"] == pytest.approx(sum(row["energy_pj"] for row in report["terms"]))


def test_controller_parameters_and_mistakes(requests):
    closed = CliRunner().invoke(app, ["dram", str(requests), "--set", "page_policy=closed", "--json", "-"])
    assert json.loads(closed.stdout)["commands"]["RDA"] > 0
    for arguments, words in ((["--set", "page_polcy=closed"], "page_policy"), (["--set", "closed"], "KEY=VALUE")):
        refused = CliRunner().invoke(app, ["dram", str(requests), *arguments])
        assert isinstance(refused.exception, InputError) and words in str(refused.exception)
