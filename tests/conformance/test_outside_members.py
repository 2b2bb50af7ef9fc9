"""Members that another distribution brings: tuple orders, scheduling methods, allocators, listed and used by name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.application

TUPLE_ORDER = """
from reorder.cdr.base import TUPLE_ORDERS, TupleOrderMethod


class Backwards(TupleOrderMethod):
    layouts = frozenset({"csr"})

    def order(self, problem, order, first, last, seed, parameters, progress):
        for k in range(first, last):
            start, stop = problem.bounds[k], problem.bounds[k + 1]
            order[start:stop] = order[start:stop][::-1].copy()


TUPLE_ORDERS.register("backwards", summary="each stride the other way round")(Backwards())
"""

ALLOCATOR = """
import numpy as np
from reorder.arena.base import ALLOCATORS, Allocator, Placement


class Stack(Allocator):
    def place(self, buffers, task, parameters):
        ends = np.cumsum(-(-buffers.size // buffers.alignment) * buffers.alignment)
        offset = np.concatenate(([0], ends[:-1])).astype(np.int64)[: buffers.count]
        return Placement(offset, int((offset + buffers.size).max(initial=0)), buffers.load)


ALLOCATORS.register("stack", summary="nothing is ever freed")(Stack())
"""

SCHEDULER = """
import numpy as np
from reorder.schedule.base import SCHEDULERS, SearchResult


@SCHEDULERS.register("last-first", summary="of the ready operators the last of the file")
def last_first(problem, task, parameters):
    waiting = [len(before) for before in problem.graph.predecessors]
    ready, order = [v for v, count in enumerate(waiting) if not count], []
    while ready:
        order.append(ready.pop(ready.index(max(ready))))
        for u in problem.graph.successors[order[-1]]:
            waiting[u] -= 1
            if not waiting[u]:
                ready.append(u)
    return SearchResult.of(problem, np.array(order, np.int32))
"""

USE = """
import json, numpy as np, scipy.sparse, edgewatt as ew
from reorder.arena.base import ALLOCATORS
from reorder.cdr import TUPLE_ORDERS
from reorder.schedule.base import SCHEDULERS
matrix = scipy.sparse.csr_matrix(np.arange(1, 7, dtype=np.float32)[None])
graph = ew.cell("darts_v2")
found = ew.schedule(graph, method="last-first", allocator="stack")
print(json.dumps({
    "positions": ew.order_tuples(matrix, value_format="fp16", stride=3, method="backwards").positions.tolist(),
    "arena": found.arena_bytes, "all": int(graph.buffer_bytes.sum()),
    "listed": "last-first" in [entry["name"] for entry in ew.catalogue("schedulers")],
    "origin": [TUPLE_ORDERS["backwards"].origin.distribution, SCHEDULERS["last-first"].origin.version,
               len(ALLOCATORS["stack"].origin.sha256)],
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds an installed distribution."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in (("own_tuples", TUPLE_ORDER), ("own_arena", ALLOCATOR), ("own_steps", SCHEDULER)):
        (folder / f"{name}.py").write_text(text)
    info = folder / "own_orders-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-orders\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[edgewatt.tuple_orders]\nbackwards = own_tuples\n"
        "[edgewatt.schedulers]\nlast-first = own_steps\n"
        "[edgewatt.allocators]\nstack = own_arena\n"
    )
    return folder


def _run(folder: Path, *words: str) -> str:
    path = [str(folder), *(p for p in sys.path if p)]
    program = f"import sys; sys.path[:0] = {path!r}; " + words[0]
    done = subprocess.run([sys.executable, "-c", program, *words[1:]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_they_work_from_python(installed: Path) -> None:
    found = json.loads(_run(installed, f"exec({USE!r})"))
    assert found["positions"] == [2, 1, 0, 5, 4, 3]
    assert found["listed"]
    assert found["arena"] >= found["all"]
    assert found["origin"] == ["own-orders", "1.2", 64]


def test_they_work_from_the_command_line(installed: Path) -> None:
    command = "from edgewatt.cli import main; main()"
    text = _run(
        installed, command, "schedule", "darts_v2", "--method", "last-first", "--allocator", "stack", "--json", "-"
    )
    found = json.loads(text)
    assert (found["method"], found["allocator"]) == ("last-first", "stack")
    listed = json.loads(_run(installed, command, "list", "tuple-orders", "--json", "-"))
    assert "backwards" in [entry["name"] for entry in listed]
