from pathlib import Path

import pytest

from traces.base.errors import InputError
from traces.trace_files import open_trace


def test_addresses_and_operations(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0x7f00: R 0x1f40\n0x7f04: W 0x1f60\n#eof\n")
    chunk = next(iter(open_trace(tmp_path / "t", "pin", access_bytes=8)))
    assert (chunk.address.tolist(), chunk.op.tolist(), chunk.size.tolist()) == ([0x1F40, 0x1F60], [0, 1], [8, 8])
    (tmp_path / "t").write_text("0x7f00: X 0x1f40\n")
    with pytest.raises(InputError, match="t:1: operation 'X' is none of R, W"):
        open_trace(tmp_path / "t", "pin")
