"""Configurations read one after the other: what is written is what is read, and columns hold the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewatt.results.record import Record, canonical_json, content_hash
from edgewatt.results.swept import Configs
from traces.base.errors import InputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-300, 300) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
CONFIGS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "ü", '"', ""]), JSON), min_size=1, max_size=6)


@given(CONFIGS)
def test_configurations_are_those_of_a_parser(configs: list[dict[str, object]]) -> None:
    alone = [json.loads(canonical_json(config)) for config in configs]
    read = [record_of(config).config for config in configs]
    columns, expected = Configs(read), Configs(alone)
    assert canonical_json(list(columns)) == canonical_json(list(expected))
    assert columns.varying() == expected.varying()


def record_of(config: dict[str, object]) -> Record:
    record = Record({"config": config, "hash": content_hash(config), "results": {}, "seed": 1}, {})
    again = Record.from_bytes(record.to_bytes(), "x")
    assert canonical_json(again.canonical) == canonical_json(record.canonical)
    return again


def test_a_damaged_record_is_found() -> None:
    raw = record_of({"a": {"b": 1}, "seed": 1}).to_bytes()
    with pytest.raises(InputError, match="damaged"):
        Record.from_bytes(raw.replace(b'"seed":1}', b'"seed":2}', 1), "x")
