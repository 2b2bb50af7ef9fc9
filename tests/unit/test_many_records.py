"""Many records: what reads them keeps little of each."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewatt.results.collection import collect
from edgewatt.results.columns import ABSENT, ColumnTable, distinct_of
from edgewatt.results.comparison import compare

ROOT = Path(__file__).parents[2]
FEW, MANY = 300, 2300

SCALARS = (
    st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=3) | st.booleans() | st.none()
    | st.sampled_from([0, 0.0, 1, 1.0, True, False, "", -0.0, 2**53, 2**53 + 1])
)  # fmt: skip
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=2), SCALARS, max_size=2)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), VALUES), max_size=12))
def test_a_table_gives_back_its_rows(rows: list[dict[str, Any]]) -> None:
    table = ColumnTable(rows)
    assert list(table) == rows == table[:] and len(table) == len(rows)
    assert [repr(table[k]) for k in range(len(rows))] == [
        repr({key: row[key] for key in table.columns if key in row}) for row in rows
    ], "types stay: 1, 1.0 and True are three values"
    for key in "abcd":
        assert list(table.values(key)) == [row.get(key) for row in rows]
        written = [json.dumps(row[key], sort_keys=True) if key in row else ABSENT for row in rows]
        found = {json.dumps(v, sort_keys=True) if v is not ABSENT else ABSENT for v in distinct_of(table, key)}
        assert found <= set(written) and bool(rows) == bool(found)
    picked = list(range(0, len(rows), 2))
    assert list(table.only(picked)) == [rows[k] for k in picked]
    table.put("e", (ABSENT if k % 2 else k for k in range(len(rows))))
    assert list(table) == [row | ({} if k % 2 else {"e": k}) for k, row in enumerate(rows)]
    with pytest.raises(IndexError):
        table[len(rows)]


def filled(folder: Path, count: int, measure: str, shift: float = 0.0) -> Path:
    spec = importlib.util.spec_from_file_location("many_records", ROOT / "scripts" / "many_records.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.fill(folder, count, measure, shift)
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
