"""Names that a file gives in what is written for other programs, and numbers that only YAML 1.1 has."""

import time
from pathlib import Path

import numpy as np
import pytest

from edgewatt.operators.arena import place_buffers
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay.waveform import export_waveform, identifier
from traces.base.document import read_document
from traces.generators.networks import random_layered
from traces.trace.build import build_trace

NAME = "x $end $var wire 1 ! evil $end $scope module y"


def test_a_parts_name_declares_nothing_in_a_waveform(tmp_path: Path) -> None:
    pytest.importorskip("vcd")
    (tmp_path / "p.yaml").write_text(f"extends: lpddr4-3200\nname: {NAME}\n")
    assert load_part(tmp_path / "p.yaml").name == NAME
    trace = build_trace(random_layered(3, 12, 0.4, 1))
    machine = Machine((CacheSpec(512, 64, 2),), bus=BusSpec(2, 32), part=str(tmp_path / "p.yaml"))
    export_waveform(trace, machine, tmp_path / "w.vcd", bursts=2)
    text = (tmp_path / "w.vcd").read_text()
    assert "evil" not in [line.split()[4] for line in text.splitlines() if line.startswith("$var")]
    assert f"$scope module {identifier(NAME)} $end" in text and text.count("$scope") == 1
    assert identifier("lpddr4-3200") == "lpddr4_3200" and identifier("2x") == "_2x" and identifier("") == "_"


@pytest.mark.parametrize("name", ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)"])
def test_names_of_buffers_are_no_formulas(name: str, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text(f'id,lower,upper,size\n"{name}",0,2,8\nplain,1,3,8\n')
    place_buffers(str(tmp_path / "b.csv"), output=str(tmp_path / "o.csv"))
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[1].lstrip('"').startswith("'" + name[0]) and lines[2].startswith("plain,")


def test_numbers_with_colons_are_words(tmp_path: Path) -> None:
    """YAML 1.1 reads them as numbers of base 60: quadratic time, 107 s for a megabyte."""
    (tmp_path / "s.yaml").write_text("description: " + "1:" * 500_000 + "1\n")
    before = time.process_time()
    assert str(read_document(tmp_path / "s.yaml").data["description"]).startswith("1:1:1")
    assert time.process_time() - before < 5


def test_no_loader_of_yaml_but_one() -> None:
    root = Path(__file__).parents[2]
    files = [
        file for package in ("edgewatt", "hwmodel", "reorder", "traces") for file in (root / package).rglob("*.py")
    ]
    assert (
        np.array([("yaml.safe_load" in text or "yaml.load" in text) for text in map(Path.read_text, files)]).sum() == 0
    )
