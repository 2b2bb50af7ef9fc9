"""A network without YAML, and one record shown."""

import json
from pathlib import Path

import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app, main
from edgewatt.orders.describe import sizes_of
from edgewatt.results.record_rows import row_of
from traces.base.resources import shipped_path

pytestmark = pytest.mark.application

NETWORK = str(shipped_path("examples/networks", "digits_small", ".npz"))


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output if result.exception is None else str(result.exception)


def test_a_network_runs_on_a_named_machine(tmp_path: Path) -> None:
    out = tmp_path / "r"
    status, text = call(
        "run", NETWORK, "--system", "edge", "-o", str(out), "--json", "-", "-s", "orderings=two-optimal"
    )
    assert status == 0, text
    (row,) = json.loads(text)
    same = ew.run({"network": {"file": NETWORK}, "system": "edge"})[0]
    assert row["hash"] == same.hash and row["network"] == Path(NETWORK).name
    status, text = call("run", NETWORK, "-o", str(out), "-s", "orderings=[two-optimal, tiles]")
    assert status == 0 and "8 KiB scratchpad" in text and "blocking" in text
    (tmp_path / "x.yaml").write_text("network: {}")
    assert "write 'system: edge'" in call("run", str(tmp_path / "x.yaml"), "--system", "edge")[1]


def test_an_option_that_is_a_setting_says_how_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = ": a configuration's key is set by -s orderings="
    for words, said in (
        (["run", "x.yaml", "--orderings", "auto"], f"No such option: --orderings{hint}"),
        (["order", "x.npz", "--orderings", "auto"], "No such option: --orderings ("),
        (["run", "x.yaml", "--ordrings", "auto"], "No such option: --ordrings"),
    ):  # fmt: skip
        monkeypatch.setattr("sys.argv", ["edgewatt", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2 and said in capsys.readouterr().err


def test_networks_are_told_by_all_their_files(tmp_path: Path) -> None:
    for name, shape in (("a.npz", (6, 8)), ("b.npz", (4, 6))):
        sp.save_npz(tmp_path / name, sp.random(*shape, 0.8, "csr", random_state=0))
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    (record,) = ew.run({"network": {"files": files}, "measure": "io", "fast_memory": {"size": 5}})
    assert row_of(record)["network"] == "a.npz and 1 more"
    assert sizes_of(ew.load(files)).endswith("2 layers") and sizes_of(ew.load(files[0])).endswith("14 neurons, 1 layer")


def test_a_record_is_shown(tmp_path: Path) -> None:
    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    (record,) = ew.run({"network": network}, results=tmp_path)
    path = str(tmp_path / "records" / f"{record.hash}.json")
    status, text = call("show", path)
    assert status == 0 and record.hash in text and "dram.part" in text and "energy_pj.total" in text and "simd" in text
    shown = json.loads(call("show", path, "--json", "-")[1])
    assert shown["results"]["io.total"] == record.results["io"]["total"]
