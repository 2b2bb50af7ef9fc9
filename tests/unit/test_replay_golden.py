"""Counts on the shipped network stay what they were, and stay inside bounds that hold for any network."""

import json
from pathlib import Path

import golden_files

ROOT = Path(__file__).parents[2]


def test_replay_counts():
    found = golden_files.replays()
    assert found == json.loads((ROOT / "tests" / "golden" / "replay.json").read_text())
    for case in found.values():
        bits = 8 * 32 * (sum(case["reads"]) + sum(case["writes"]))
        assert 0 < case["ones"] <= bits * 9 // 8 and 0 < case["toggles"] <= bits * 9 // 8
    # DBI-DC sends at most four ones a byte, its flag included.
    inverted = found["csr-int8-base-xor+dbi-dc"]
    assert inverted["ones"] <= 4 * 32 * (sum(inverted["reads"]) + sum(inverted["writes"]))
