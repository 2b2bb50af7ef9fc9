"""What people write first, and what the command says to it."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from edgewatt.cli import app

pytestmark = pytest.mark.application


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for k, (n, m) in enumerate([(20, 12), (12, 6)]):
        sp.save_npz(f"fc{k}.npz", sp.random(m, n, 0.4, "csr", rng=rng))
    return tmp_path


def said(*call: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, call, env={"COLUMNS": "80"})
    assert done.exit_code == status or (done.exception is not None and status == 2), done.output
    return done.output + str(done.exception or "")


def test_files_of_layers_are_run_on_a_machine(here: Path) -> None:
    text = said("run", "fc0.npz", "fc1.npz", "--system", "edge", "-s", "orderings=[two-optimal]")
    assert "fc0.npz and 1 more: 38 neurons" in text
    assert "8 KiB scratchpad" in said("run", "fc0.npz", "fc1.npz", "-s", "orderings=[two-optimal, tiles]")


def test_keys_and_networks_are_corrected(here: Path) -> None:
    (here / "s.yaml").write_text(
        "base:\n  network: [fc0.npz, fc1.npz]\n  orderings: [two-optimal]\n"
        "grid:\n  caches: [[{size: 1 KiB, ways: 2}]]\n"
    )
    text = said("sweep", "s.yaml", status=2)
    assert "expected a mapping, not a list (write {files: [fc0.npz, fc1.npz]})" in text
    assert "unknown key 'size' (did you mean 'size_bytes'?)" in text
    (here / "r.yaml").write_text("network: fc0.npz\nsearch: {time: 3}\n")
    text = said("run", "r.yaml", status=2)
    assert "(write {file: fc0.npz})" in text and "did you mean 'time_limit_s'?" in text
    (here / "d.yaml").write_text("network: {file: fc0.npz}\ndram: hbm3\n")
    assert "expected a mapping, not the text 'hbm3' (write {part: hbm3})" in said("run", "d.yaml", status=2)


def test_pays_without_an_order_with_sizes_as_one_writes_them(here: Path) -> None:
    call = ("pays", "fc0.npz", "fc1.npz", "--system", "scratchpad-8k", "--size", "2 KiB", "--page", "p.html")
    text = said(*call, "--timing", "replay")
    assert "auto against two-optimal on lpddr4-3200, fp32, 16 lanes, min; energy per inference" in text.replace(
        "\n", " "
    )
    assert "2 KiB" in text and (here / "p.html").exists()
    assert "'2 QB' is not a size" in said("pays", "fc0.npz", "--size", "2 QB", status=2)


def test_one_name_is_listed(here: Path) -> None:
    text = said("list", "parts", "hbm2")
    assert "hbm2" in text and "lpddr4-3200" not in text
    assert "did you mean 'hbm2'?" in said("list", "parts", "hbm", status=2)


def test_a_trace_that_fits_no_format_names_the_option(here: Path) -> None:
    (here / "t.trc").write_text("0x0 R 0\n")
    assert "name it with --format (--from in export" in said("dram", "t.trc", status=2)
