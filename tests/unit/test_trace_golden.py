"""Traces stay byte for byte what they were at commit fbff248, for every layout and format."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_traces_of_every_layout_and_format_stay_byte_for_byte():
    spec = importlib.util.spec_from_file_location("golden_traces", ROOT / "scripts" / "golden_traces.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    wanted = json.loads((ROOT / "tests" / "golden" / "traces.json").read_text())
    found = script.hashes()
    assert [case for case in wanted if found[case] != wanted[case]] == [] and found.keys() == wanted.keys()
