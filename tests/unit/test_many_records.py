"""Many records: what reads them keeps little of each."""

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_records import fill

from edgewatt.results.collection import collect
from edgewatt.results.comparison import compare
from edgewatt.results.record import Record, canonical_json, hash_of_text
from edgewatt.results.record_rows import Table, distinct, flat
from edgewatt.results.store import Store
from edgewatt.results.swept import ABSENT, Configs
from traces.base.errors import InputError

ROOT = Path(__file__).parents[2]
FEW, MANY = 300, 2300

SCALARS = (
    st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=3) | st.booleans() | st.none()
    | st.sampled_from([0, 0.0, 1, 1.0, True, False, "", -0.0, 2**53, 2**53 + 1])
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=2), SCALARS, max_size=2)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), SCALARS), max_size=12))
def test_a_table_gives_back_its_rows(rows: list[dict[str, Any]]) -> None:
    table = Table(rows)
    expected = [{key: value for key, value in row.items() if value is not None} for row in rows]
    assert list(table) == expected == table[:] and len(table) == len(rows)
    assert [repr(table[k]) for k in range(len(rows))] == [
        repr({key: row[key] for key in table.columns if key in row}) for row in expected
    ], "types stay: 1, 1.0 and True are three values"
    for key in "abcd":
        assert table.values(key) == [row.get(key) for row in rows]
        assert distinct(table, key) == distinct(expected, key) == list(
            dict.fromkeys(row[key] for row in expected if key in row)
        )  # fmt: skip
    table.put("e", (None if k % 2 else k for k in range(len(rows))))
    assert list(table) == [row | ({} if k % 2 else {"e": k}) for k, row in enumerate(expected)]
    with pytest.raises(IndexError):
        table[len(rows)]


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES), max_size=12), st.integers(0, 12))
def test_configurations_by_section_are_those_given(configs: list[dict[str, Any]], asked: int) -> None:
    kept = Configs(configs[:asked])
    assert list(kept) == configs[:asked]
    for config in configs[asked:]:
        kept.append(config)
    assert list(kept) == configs and list(kept.only(range(0, len(configs), 2))) == configs[::2]
    flats = [flat(config) for config in configs]
    keys = list(dict.fromkeys(key for leaves in flats for key in leaves))
    written = {key: [repr(leaves[key]) if key in leaves else repr(ABSENT) for leaves in flats] for key in keys}
    assert {key: list(map(repr, kept.leaf(key))) for key in keys} == written
    assert set(kept.varying()) <= {key for key in keys if len(set(written[key])) > 1}
    told = [[kept.leaf(key)[k] for key in kept.varying()] for k in range(len(configs))]
    for one, other in itertools.combinations(range(len(configs)), 2):
        assert (told[one] == told[other]) or flats[one] != flats[other]
        assert flats[one] == flats[other] or told[one] != told[other]


def filled(folder: Path, count: int, measure: str, shift: float = 0.0) -> Path:
    fill(folder, count, measure, shift)
    return folder


def peak_bytes(*command: object) -> int:
    """Return the largest resident set of a command, the libraries of a page apart, which a process of its own makes."""
    code = (
        "import resource, sys\n"
        "from edgewatt.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", code, *map(str, command)]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stderr.split()[-1])


@pytest.mark.application
def test_memory_grows_by_little_with_the_records(tmp_path: Path) -> None:
    """100,000 records within 300 MB: the start takes 60 MB, so 2,400 bytes a record."""
    pytest.importorskip("vl_convert")
    a = {n: filled(tmp_path / f"a{n}", n, "io") for n in (FEW, MANY)}
    commands = {
        "report": lambda n: ("report", a[n], "-o", tmp_path / "r.html"),
        "collect": lambda n: ("collect", a[n], "-o", tmp_path / "c.csv"),
        "compare": lambda n: ("compare", a[n], a[n]),
    }
    slopes = {
        name: (peak_bytes(*make(MANY)) - peak_bytes(*make(FEW))) / (MANY - FEW) for name, make in commands.items()
    }
    assert max(slopes.values()) < 2400, slopes  # a record's dictionaries alone are ten times that


def test_what_is_written_one_by_one_is_whole(tmp_path: Path) -> None:
    folder, other = filled(tmp_path / "a", 60, "io"), filled(tmp_path / "b", 60, "io", 0.02)
    assert collect(folder, tmp_path / "c.csv")[0] == 60
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert len(lines) == 61 and all(line.count(",") >= lines[0].count(",") for line in lines)
    pairs = compare(folder, other)
    assert len(pairs) == 60 and pairs.alone == (0, 0)
    assert [pair["a"] for pair in pairs] == [pairs[k]["a"] for k in range(60)] == [p["a"] for p in pairs[:60]]
    assert pairs[-1] == pairs[59]
    assert all(pair["changes"]["io"]["percent"] > 0 for pair in pairs)


def test_compare_reads_each_record_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading is most of the time of comparing 100,000 points with as many."""
    a, b = filled(tmp_path / "a", 30, "io"), filled(tmp_path / "b", 40, "io", 0.02)
    read: list[str] = []
    get = Store.get
    monkeypatch.setattr(Store, "get", lambda store, name, *shared: read.append(name) or get(store, name, *shared))
    pairs = compare(a, b)
    assert len([*pairs, *pairs]) == 60 and pairs.alone == (0, 10)
    assert len(read) == 70


def test_a_record_whose_text_is_written_otherwise_is_read(tmp_path: Path) -> None:
    """Same values, right checksum, other spelling: not what `to_bytes` writes, and sound."""
    config = {"a": 1, "b": [1.5, {"c": None}], "z": 0.25}
    for spelling in (
        canonical_json(config), '{"b":[1.50,{"c":null}],"a":1,"z":25e-2}', '{"a": 1,"b":[1.5,{"c":null}],"z":0.25}'
    ):  # fmt: skip
        name = hash_of_text(canonical_json(config))
        parts = f'{{"config":{spelling},"hash":"{name}","results":{{"io":2}}}}', '{"counts_version":3}'
        checksum = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        text = f'{{"schema":1,"sha256":"{checksum}",\n"canonical":{parts[0]},\n"provenance":{parts[1]}}}\n'
        record = Record.from_bytes(text.encode(), "here")
        assert record.config == config and record.results == {"io": 2} and record.counts_version == 3
        with pytest.raises(InputError, match="does not fit its configuration"):
            twice = text.replace('"results"', '"config":{},"results"')
            again = hashlib.sha256(
                "\n".join(part.replace('"results"', '"config":{},"results"') for part in parts).encode()
            )
            Record.from_bytes(twice.replace(checksum, again.hexdigest()).encode(), "here")
