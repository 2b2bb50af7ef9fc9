"""Whatever a point computes with from other distributions is named in it, however the member was come by."""

import json
from pathlib import Path

import pytest

from tests.outside import run_with, write_distribution
from tests.outside_members import DENSE_TEXT, OWN_TRACE

pytestmark = pytest.mark.application

SEVERAL = """
import numpy as np
from edgewatt.plugins import ENCODERS, FORMATS, ORDERINGS, FloatFormat, Ordering, Role, Stage

FORMATS.register("fp8_e3m4", summary="3 exponent, 4 mantissa bits")(FloatFormat(8, "float8_e3m4"))


@ENCODERS.register("flip", summary="every bit inverted")
class Flip(Stage):
    role = Role.BUS_CODE

    def encode(self, coded, offset, state):
        return type(coded)(~coded.data, coded.flags, coded.extra), state

    decode = encode


@ORDERINGS.register("backwards", summary="the last connection first")
def backwards(network, task, parameters):
    t = network.targets
    return Ordering(np.lexsort((network.sources, -t, network.depth[t])), "backwards")
"""
POINTS = (
    "[edgewatt.formats]\nfp8_e3m4 = many\n[edgewatt.encoders]\nflip = many\n[edgewatt.orderings]\nbackwards = many\n"
)
TRIED = """
import numpy as np
from edgewatt.plugins import ORDERINGS, Ordering


@ORDERINGS.register("forwards", summary="the first connection first", portfolio=9)
def forwards(network, task, parameters):
    t = network.targets
    return Ordering(np.lexsort((network.sources, t, network.depth[t])), "forwards")
"""
READERS = DENSE_TEXT + OWN_TRACE
SHOW = """
import json, sys
import edgewatt as ew
before = sys.argv[2] if len(sys.argv) > 2 else ""
if before:
    __import__(before)
plan = ew.config.load_sweep(json.loads(sys.argv[1]))
point = plan.points[0]
print(json.dumps({"plugins": point.config.get("plugins", {}), "hash": point.hash}))
"""
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


def show(folder: Path, config: dict, *before: str) -> dict:
    done = run_with(folder, "-c", SHOW, json.dumps(config), *before, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def named(found: dict) -> set[tuple[str, str, str]]:
    return {
        (key, one["name"], f"{one['distribution']} {one['version']}")
        for key, ones in found["plugins"].items()
        for one in ones
        if one["code"] == ""
    }


def test_one_module_may_register_several_kinds(tmp_path: Path) -> None:
    """Each is named, whichever kind loads the module, and where somebody has imported it already."""
    write_distribution(tmp_path, "several", "1.0", {"many": SEVERAL}, POINTS)
    config = {"network": NETWORK, "orderings": "backwards", "formats": "fp8_e3m4", "encoder": "flip"}
    wanted = {("ordering", "backwards", "several 1.0"), ("format", "fp8_e3m4", "several 1.0")}
    wanted |= {("encoder", "flip", "several 1.0")}
    assert named(show(tmp_path, config)) == wanted
    assert named(show(tmp_path, config, "many")) == wanted
    assert named(show(tmp_path, {"network": NETWORK, "encoder": "dbi-dc"}, "many")) == set()


def test_a_module_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    write_distribution(tmp_path, "several", "1.0", {"many": SEVERAL + "raise RuntimeError('no')\n"}, POINTS)
    code = """
from edgewatt.plugins import InputError, registry
for kind, name in [("formats", "fp8_e3m4"), ("encoders", "flip"), ("orderings", "backwards")] * 2:
    try:
        registry(kind)[name]
    except InputError as error:
        print(error)
"""
    said = run_with(tmp_path, "-c", code, cwd=tmp_path).stdout.splitlines()
    assert len(said) == 6 and all("of several 1.0 cannot be loaded: RuntimeError: no" in line for line in said)


def test_orders_that_auto_tries_are_part_of_the_point(tmp_path: Path) -> None:
    write_distribution(tmp_path, "tried", "1.0", {"tried": TRIED}, "[edgewatt.orderings]\nforwards = tried\n")
    auto = {"network": NETWORK, "orderings": "auto", "measure": "io"}
    found = show(tmp_path, auto)
    assert named(found) == {("ordering", "forwards", "tried 1.0")}
    assert named(show(tmp_path, {**auto, "orderings": "two-optimal"})) == set()
    write_distribution(tmp_path, "tried", "1.1", {"tried": TRIED}, "[edgewatt.orderings]\nforwards = tried\n")
    assert show(tmp_path, auto)["hash"] != found["hash"]


def test_readers_found_by_the_file_are_part_of_the_point(tmp_path: Path) -> None:
    points = "[edgewatt.network_readers]\ndense-text = read\n[edgewatt.trace_readers]\nown-trace = read\n"
    write_distribution(tmp_path, "readers", "1.0", {"read": READERS}, points)
    (tmp_path / "layer.dense").write_text("1 0 2\n0 3 4.5\n")
    (tmp_path / "t.own").write_text("access 40 in\naccess 80 out\n")
    (tmp_path / "t.din").write_text("0 40\n1 80\n")
    network, trace = {"network": {"file": "layer.dense"}}, {"trace": {"file": "t.own"}}
    found = [show(tmp_path, network), show(tmp_path, trace)]
    assert named(found[0]) == {("network", "dense-text", "readers 1.0")}
    assert named(found[1]) == {("trace", "own-trace", "readers 1.0")}
    assert named(show(tmp_path, {"trace": {"file": "t.own", "format": "own-trace"}})) == named(found[1])
    assert named(show(tmp_path, {"trace": {"file": "t.din"}})) == set()
    write_distribution(tmp_path, "readers", "1.1", {"read": READERS}, points)
    again = [show(tmp_path, network), show(tmp_path, trace)]
    assert all(a["hash"] != b["hash"] for a, b in zip(found, again, strict=True))
    (tmp_path / "run.yaml").write_text(json.dumps(network))
    done = run_with(tmp_path, "-m", "edgewatt", "run", "run.yaml", "-o", "r", "--json", "-", cwd=tmp_path)
    (row,) = json.loads(done.stdout)
    assert row["hash"] == again[0]["hash"]
    record = next((tmp_path / "r" / "records").glob("*.json"))
    again = "import sys, edgewatt as ew; print(ew.results.rerun(sys.argv[1]))"
    assert run_with(tmp_path, "-c", again, str(record), cwd=tmp_path).stdout == "[]\n"


def test_a_group_may_be_written_as_the_list_of_kinds_writes_it(tmp_path: Path) -> None:
    """`edgewatt list network-readers`: a distribution that writes its group so was passed over in silence."""
    points = "[edgewatt.network-readers]\ndense-text = read\n"
    write_distribution(tmp_path, "readers", "1.0", {"read": READERS}, points)
    (tmp_path / "layer.dense").write_text("1 0 2\n0 3 4.5\n")
    assert named(show(tmp_path, {"network": {"file": "layer.dense"}})) == {("network", "dense-text", "readers 1.0")}


MINE = """
import json, sys
import numpy as np
from edgewatt.plugins import ORDERINGS, Ordering

@ORDERINGS.register("mine", summary="by depth, then by target")
def mine(network, task, parameters):
    t = network.targets
    return Ordering(np.lexsort((network.sources, t, network.depth[t])), "mine")
"""
RUN = """
import edgewatt as ew
(record,) = ew.run(json.loads(sys.argv[1]), results=sys.argv[2])
print(json.dumps([record.hash, record.config["plugins"], record.results["io"]["total"]]))
"""


def run_script(folder: Path, *arguments: str) -> list:
    config = {"network": NETWORK, "orderings": "mine", "measure": "io"}
    done = run_with(folder, *arguments, json.dumps(config), str(folder / "results"), cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_member_of_a_script_is_computed_again_when_the_script_changes(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(MINE + RUN)
    first = run_script(tmp_path, str(script))
    assert run_script(tmp_path, str(script)) == first, "the same script names the same point"
    (origin,) = first[1]["ordering"]
    assert (origin["name"], origin["distribution"], origin["version"]) == ("mine", "study.py", "")
    script.write_text(MINE.replace("((network.sources, t,", "((network.sources, -t,") + RUN)
    changed = run_script(tmp_path, str(script))
    assert changed[0] != first[0] and len(list((tmp_path / "results" / "records").glob("*.json"))) == 2


def test_a_member_of_a_module_without_distribution_is_part_of_the_point(tmp_path: Path) -> None:
    """A module beside the script, and one of a package: the file that registers it."""
    (tmp_path / "own.py").write_text(MINE)
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "__init__.py").write_text("from packed import orders")
    (tmp_path / "packed" / "orders.py").write_text(MINE)
    start = "import json, sys; import {}\n"
    for module, changes in (("own", "own.py"), ("packed", "packed/orders.py")):
        first = run_script(tmp_path, "-c", start.format(module) + RUN)
        assert first[1]["ordering"][0]["distribution"] == ("own.py" if module == "own" else "orders.py")
        with open(tmp_path / changes, "a") as file:
            file.write("# changed\n")
        assert run_script(tmp_path, "-c", start.format(module) + RUN)[0] != first[0]


def test_a_member_typed_into_a_session_is_of_that_session_alone(tmp_path: Path) -> None:
    first = run_script(tmp_path, "-c", MINE + RUN)
    assert first[1]["ordering"][0]["distribution"] == ""
    assert run_script(tmp_path, "-c", MINE + RUN)[0] != first[0]
