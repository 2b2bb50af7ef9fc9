"""Every member of the registry of orderings keeps the contract; members come by files and by outside distributions."""

import io
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwmodel.fastmemory.iomodel import count_io
from reorder.base import ORDERINGS, Method, Orderings
from reorder.edges.methods.auto import constructions
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.networks.network import Network

NETWORK = random_layered(3, 30, 0.2, seed=1)
SHORT = {"residency": {"moves": 500}, "auto": {"moves": 500}, "connection-reordering": {"iterations": 20}}
MODULES = {"learn": "torch"}  # extra -> what it brings


def parameters(name: str, folder: Path) -> dict[str, Any]:
    """Return what a member cannot do without, and a small budget for those that search."""
    if name == "file":
        path = folder / "order.npy"
        np.save(path, order(NETWORK, "two-optimal", memory=20).edges)
        return {"path": str(path)}
    if name == "eon":
        from edgewatt.orders.training import train_seeds

        path = folder / "eon.safetensors"
        train_seeds(NETWORK, memory=20, iterations=1, output=path)
        return {"checkpoint": str(path)}
    return SHORT.get(name, {})


def usable(name: str) -> bool:
    extra = ORDERINGS[name].item.extra
    return extra is None or find_spec(MODULES[extra]) is not None


@pytest.mark.parametrize("name", list(ORDERINGS))
def test_members_make_checked_orders_and_repeat_them(name: str, tmp_path: Path) -> None:
    entry = ORDERINGS[name]
    assert isinstance(entry.item, Method) and entry.summary and entry.origin is None
    if not usable(name):
        pytest.skip(f"needs the extra {entry.item.extra!r}")
    given = parameters(name, tmp_path)
    for policy in ("min", "lru"):
        first, second = (order(NETWORK, name, memory=20, policy=policy, seed=3, **given) for _ in range(2))
        assert sorted(first.edges.tolist()) == list(range(NETWORK.n_connections))
        assert (first.edges == second.edges).all() and first.parameters == second.parameters
        assert first.method == name and not first.truncated
    if entry.item.searches:
        assert first.curve and first.curve[-1][2] == count_io(NETWORK, first, memory=20, policy="lru").total


@pytest.mark.parametrize("name", list(ORDERINGS))
def test_unknown_parameters_are_named(name: str, tmp_path: Path) -> None:
    if not usable(name):
        pytest.skip(f"needs the extra {ORDERINGS[name].item.extra!r}")
    with pytest.raises(InputError, match="no parameter 'windows'"):
        order(NETWORK, name, memory=20, windows=3, **parameters(name, tmp_path))


def test_what_auto_tries_is_declared() -> None:
    tried = [name for name, _ in constructions(NETWORK)]
    assert tried[0] == "two-optimal" and "auto" not in tried and "own" in tried
    backwards = NETWORK.in_order(np.arange(NETWORK.n_connections)[::-1])
    assert "own" not in [name for name, _ in constructions(backwards)]


def test_a_newcomer_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "newcomers"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "backwards.py").write_text(
        MEMBER.replace("from reorder.base import ORDERINGS", "from here import ORDERINGS")
    )
    here = Orderings("ordering", "edgewatt.orderings.none", folder="newcomers")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "here", type(sys)("here"))
    sys.modules["here"].ORDERINGS = here  # type: ignore[attr-defined]
    assert list(here) == ["backwards"] and here["backwards"].make_parameters({}).turns == 1
    assert here["backwards"].item.portfolio == 9


MEMBER = """
from dataclasses import dataclass

import numpy as np

from reorder.base import ORDERINGS
from reorder.base import Ordering


@dataclass(frozen=True)
class Turns:
    turns: int = 1


@ORDERINGS.register("backwards", summary="by depth, then backwards by target", parameters=Turns, portfolio=9)
def backwards(network, task, parameters):
    t = network.targets
    way = -1 if parameters.turns % 2 else 1
    return Ordering(np.lexsort((network.sources, way * t, network.depth[t])), "backwards", {"turns": parameters.turns})
"""


def test_members_of_other_distributions(tmp_path: Path) -> None:
    (tmp_path / "outside_orders.py").write_text(MEMBER)
    (tmp_path / "outside_orders_end.py").write_text("raise SystemExit(3)\n")
    info = tmp_path / "outside_orders-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-orders\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[edgewatt.orderings]\nbackwards = outside_orders\nbroken = outside_orders_missing\nends = outside_orders_end\n"
    )
    code = """
import numpy as np
from reorder.base import ORDERINGS
from reorder.edges.methods.auto import constructions
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import random_layered
network = random_layered(3, 30, 0.2, seed=1)
found = order(network, "backwards", memory=20, turns=3)
assert found.parameters == {"turns": 3}, found.parameters
origin = ORDERINGS["backwards"].origin
assert (origin.distribution, origin.version, origin.code) == ("outside-orders", "1.2", "")
assert {"broken", "ends"} <= set(ORDERINGS) and not {"broken", "ends"} & set(ORDERINGS.loadable())
assert "backwards" in [name for name, _ in constructions(network)]
order(network, "auto", memory=20, moves=100)
for name in ("broken", "ends"):
    try:
        order(network, name, memory=20)
    except InputError as error:
        assert "outside-orders 1.2 cannot be loaded" in str(error), error
    else:
        raise AssertionError
"""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), root))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- orders that are given ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npz", "npy", "txt"])
def test_an_order_of_ones_own(suffix: str, tmp_path: Path) -> None:
    wanted = order(NETWORK, "depth-first", memory=20).edges
    path = tmp_path / f"order.{suffix}"
    if suffix == "npz":
        np.savez(path, edges=wanted)
    elif suffix == "npy":
        np.save(path, wanted.astype(np.int32))
    else:
        path.write_text("\n".join(map(str, wanted)))
    found = order(NETWORK, "file", memory=20, path=str(path))
    assert (found.edges == wanted).all() and found.parameters == {"path": str(path)}


def written(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    if isinstance(content, bytes | str):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        with path.open("wb") as stream:
            np.savez(stream, **content) if name.endswith("npz") else np.save(stream, content)
    return str(path)


def pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("other.npy", np.arange(7), "other.npy: the order has 7 entries, the network .*belongs to one network"),
        ("order.npz", {"orders": np.arange(7)}, "holds no array 'edges'"),
        ("order.npy", np.linspace(0, 1, NETWORK.n_connections), "integer array"),
        ("order.npy", np.zeros(NETWORK.n_connections, np.int64), "not a permutation"),
        ("order.npy", pickled(), "pickled Python objects"),
        ("order.npy", b"\x93NUMPY", "damaged"),
        ("order.npz", b"PK", "damaged"),
        ("order.txt", "0 1 two 3", "entry 3 is 'two'"),
        ("order.txt", "0 1 99999999999999999999", "entry 3"),
        ("order.txt", b"\xff\xfe\x00", "cannot be read as text"),
        ("order.txt", "", "has 0 entries"),
    ],
)
def test_bad_order_files(name: str, content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        order(NETWORK, "file", memory=20, path=written(tmp_path, name, content))


@pytest.mark.parametrize("name", ["none.npz", "none.npy", "none.txt"])
def test_missing_order_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        order(NETWORK, "file", memory=20, path=str(tmp_path / name))


def test_the_files_own_order_must_be_topological() -> None:
    chain = Network([1, 0], [2, 1], 3, [0], [2])
    with pytest.raises(InputError, match="not topological"):
        order(chain, "own", memory=5)
    turned = Network([0, 1], [1, 2], 3, [0], [2])
    assert order(turned, "own", memory=5).edges.tolist() == [0, 1]


def test_a_file_ordering_needs_its_path() -> None:
    with pytest.raises(InputError, match="'file' needs the parameter 'path'"):
        order(NETWORK, "file", memory=20)
