from pathlib import Path

import edgewatt as ew
from traces.trace_files import open_trace


def test_one_line_an_access(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("LD 0x40\nST 0x80\n")
    trace = open_trace(tmp_path / "in", "ramulator2", access_bytes=2)
    assert ew.cache.export_trace(trace, tmp_path / "out", "nvmain") == 2
    assert (tmp_path / "out").read_text() == "0 R 0x40 0000 0\n1 W 0x80 0000 0\n"
