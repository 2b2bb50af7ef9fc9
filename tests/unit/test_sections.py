"""Configurations read one after the other: what is written alike is one object, and nothing else changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewatt.results.record import Record, Sections, canonical_json, content_hash
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
    sections = Sections()
    read = []
    for config in configs:
        text = canonical_json(config)
        found, end = sections.read(f'{{"config":{text},"hash":""}}', 10)
        assert end == 10 + len(text)
        assert canonical_json(found) == text
        read.append(found)
    alone = [json.loads(canonical_json(config)) for config in configs]
    columns, expected = Configs(read), Configs(alone)
    assert canonical_json(list(columns)) == canonical_json(list(expected))
    assert columns.varying() == expected.varying()


def test_a_section_that_is_written_as_before_is_the_same_object() -> None:
    sections = Sections()
    first, _ = sections.read('{"a":{"b":[1]},"seed":26,"z":[0]}', 0)
    second, _ = sections.read('{"a":{"b":[1]},"seed":263,"z":[0]}', 0)
    assert second == {"a": {"b": [1]}, "seed": 263, "z": [0]}
    assert second["a"] is first["a"] and second["z"] is first["z"]


@pytest.mark.parametrize(
    "text",
    ['{"a":1', '{"a"', '{"a":1,', '{"a":1,}', '{"a":1;', '{"a" 1}', '{"a":1.50}', '{"a":NaN}', '{"a": 1}', "x", ""],
)
def test_what_is_not_canonical_is_refused(text: str) -> None:
    sections = Sections()
    sections.read('{"a":1,"b":2}', 0)
    with pytest.raises(ValueError):
        sections.read(text, 0)


def test_a_damaged_record_is_found_behind_others() -> None:
    config = {"a": {"b": 1}, "seed": 1}
    record = Record({"config": config, "hash": content_hash(config), "results": {}, "seed": 1}, {})
    raw, sections = record.to_bytes(), Sections()
    assert Record.from_bytes(raw, "x", sections).canonical == record.canonical
    assert Record.from_bytes(raw, "x", sections).canonical == record.canonical
    with pytest.raises(InputError, match="damaged"):
        Record.from_bytes(raw.replace(b'"seed":1}', b'"seed":2}', 1), "x", sections)
