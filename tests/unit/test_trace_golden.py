"""Traces stay byte for byte what they were at commit fbff248, for every layout and format."""

import json
from pathlib import Path

import golden_files

ROOT = Path(__file__).parents[2]


def test_traces_of_every_layout_and_format_stay_byte_for_byte():
    wanted = json.loads((ROOT / "tests" / "golden" / "traces.json").read_text())
    found = golden_files.traces()
    assert [case for case in wanted if found[case] != wanted[case]] == [] and found.keys() == wanted.keys()
