"""`validate --order --system`: an order is played on a machine, its bytes and rows are checked."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.errors import InputError
from traces.base.resources import shipped_names

NETWORK = "configs/examples/networks/digits_small.npz"


@pytest.fixture(scope="module")
def order(tmp_path_factory):
    path = tmp_path_factory.mktemp("orders") / "order.npy"
    np.save(path, ew.order(ew.load(NETWORK), "by-source", memory=113).edges)
    return str(path)


@pytest.mark.parametrize("system", shipped_names("systems"))
def test_every_shipped_system(system, order):
    found = CliRunner().invoke(
        app, ["validate", "--network", NETWORK, "--order", order, "--system", system, "--lanes", "4", "--json", "-"]
    )
    assert found.exit_code == 0, found.output
    checks = {check["name"]: check for check in json.loads(found.stdout)["checks"]}
    assert checks["output bytes in memory that differ after the run"]["measured"] == 0
    rows = [check for name, check in checks.items() if name.startswith("rows moved")]
    assert len(rows) == (3 if "scratchpad" in system else 0) and all(check["passed"] for check in rows)


def test_a_wrong_order_is_not_played(tmp_path):
    wrong = tmp_path / "order.txt"
    wrong.write_text("\n".join(str(k) for k in range(7999, -1, -1)))
    found = CliRunner().invoke(
        app, ["validate", "--network", NETWORK, "--order", str(wrong), "--system", "edge", "--json", "-"]
    )
    assert found.exit_code == 1 and len(json.loads(found.stdout)["checks"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "edge"], "--system goes with --order and --network"),
        (["--network", NETWORK, "--order", "ORDER", "--system", "egde"], "did you mean 'edge'"),
    ],
)
def test_bad_input(arguments, message, order):
    found = CliRunner().invoke(app, ["validate", *[order if a == "ORDER" else a for a in arguments]])
    assert isinstance(found.exception, InputError | ValueError) and message in str(found.exception)
