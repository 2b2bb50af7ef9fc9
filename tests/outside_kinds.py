"""One member of every kind of `edgewatt list`, as another author would write it, and how each is used.

A kind that has no case here fails tests/conformance/test_every_kind_from_outside.py.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.outside_members import BACKWARDS_INSIDE, DENSE_TEXT, OWN_LINES, OWN_TRACE


@dataclass(frozen=True)
class Case:
    """A member and its uses.

    kind: of `edgewatt list`. name: the member's. source: its Python module, or its YAML file. python: what a program
    does with it, ending in an assert; `network`, `trace` and `matrix` (SciPy) are there. command: the words of a
    command line; says: what that prints or writes. config: what a configuration says to use it, {} where a
    configuration cannot name it, for the reason `because`.
    """

    kind: str
    name: str
    source: str
    python: str
    command: tuple[str, ...]
    says: str
    config: dict[str, Any] = field(default_factory=dict)
    because: str = ""

    @property
    def is_file(self) -> bool:
        """Whether the member is a YAML file."""
        return "from edgewatt.plugins import" not in self.source


def settings(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the words that say a configuration to `edgewatt run base.yaml`."""
    import json

    return ("run", "base.yaml", *(w for key, value in config.items() for w in ("-s", f"{key}={json.dumps(value)}")))


CACHE: dict[str, Any] = {"size_bytes": 256, "line_bytes": 32, "ways": 2}
CASES = (
    Case(
        "orderings", "last-source",
        '''
import numpy as np
from edgewatt.plugins import ORDERINGS, Ordering


@ORDERINGS.register("last-source", summary="the last source of a neuron first")
def last_source(network, task, parameters):
    t = network.targets
    return Ordering(np.lexsort((-network.sources, t, network.depth[t])), "last-source")
''',
        'assert ew.order(network, "last-source", memory=5).method == "last-source"',
        ("order", "net.npz", "--method", "last-source", "--memory", "5", "--json", "-"), '"last-source"',
        {"orderings": "last-source"},
    ),
    Case(
        "tuple-orders", "backwards",
        BACKWARDS_INSIDE,
        'found = ew.order_tuples(matrix, value_format="fp16", stride=3, method="backwards")\n'
        "assert found.positions.tolist() == [2, 1, 0, 5, 4, 3]",
        ("order-tuples", "matrix.npz", "--stride", "3", "--method", "backwards", "--json", "-"),
        '"method": "backwards"',
        {"strides": {"kind": "backwards", "stride": 4}, "layout": "csr"},
    ),
    Case(
        "schedulers", "last-first",
        '''
import numpy as np
from edgewatt.plugins import SCHEDULERS, SearchResult


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
''',
        'assert ew.schedule(ew.generators.cell("darts_v2"), method="last-first").states == 0',
        ("schedule", "darts_v2", "--method", "last-first", "--json", "-"), '"method": "last-first"',
        because="a configuration describes sparse networks; models of operators go to `edgewatt schedule`",
    ),
    Case(
        "allocators", "stack",
        '''
import numpy as np
from edgewatt.plugins import ALLOCATORS, Allocator, Placement


class Stack(Allocator):
    def place(self, buffers, task, parameters):
        ends = np.cumsum(-(-buffers.size // buffers.alignment) * buffers.alignment)
        offset = np.concatenate(([0], ends[:-1])).astype(np.int64)[: buffers.count]
        return Placement(offset, int((offset + buffers.size).max(initial=0)), buffers.load)


ALLOCATORS.register("stack", summary="nothing is ever freed")(Stack())
''',
        'assert ew.allocate([0, 2], [1, 3], [8, 8], allocator="stack").height == 16',
        ("arena", "buffers.csv", "--allocator", "stack", "--json", "-"), '"height": 16',
        because="as of schedulers",
    ),
    Case(
        "encoders", "flip",
        '''
from edgewatt.plugins import ENCODERS, Role, Stage


@ENCODERS.register("flip", summary="every bit inverted")
class Flip(Stage):
    role = Role.BUS_CODE

    def encode(self, coded, offset, state):
        return type(coded)(~coded.data, coded.flags, coded.extra), state

    decode = encode
''',
        "given = np.arange(32, dtype=np.uint8)\n"
        'assert (ew.encode(given, "flip", element_bytes=1).data == ~given).all()',
        settings({"encoder": "flip"}), "",
        {"encoder": "flip"},
    ),
    Case(
        "cache-policies", "first-way",
        '''
from edgewatt.plugins import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("first-way", summary="the first way always goes")
class FirstWay(Policy):
    def victim(self, set_):
        return 0
''',
        'assert ew.simulate_cache([0] * 4, [0, 64, 128, 64], 4, **CACHE, policy="first-way").misses == 3',
        ("cache", "t.din", "--level", "256:32:2:first-way", "--json", "-"), '"first-way"',
        {"caches": [{**CACHE, "policy": "first-way"}]},
    ),
    Case(
        "cache-policies", "first-way-c",
        '''
import ctypes
from pathlib import Path
from edgewatt.plugins import CACHE_POLICIES, Policy

library = ctypes.CDLL(str(Path(__file__).with_name("first_way.so")))


@CACHE_POLICIES.register("first-way-c", summary="the first way always goes, compiled")
class FirstWay(Policy):
    kernel = ctypes.addressof(ctypes.c_char.in_dll(library, "first_way"))
''',
        'assert ew.simulate_cache([0] * 4, [0, 64, 128, 64], 4, **CACHE, policy="first-way-c").misses == 3',
        ("cache", "t.din", "--level", "256:32:2:first-way-c", "--json", "-"), '"first-way-c"',
        {"caches": [{**CACHE, "policy": "first-way-c"}]},
    ),
    Case(
        "dram-schedulers", "one-hit",
        '''
from edgewatt.plugins import DRAM_SCHEDULERS, EnginePolicy

DRAM_SCHEDULERS.register("one-hit", summary="one row hit before an older miss")(EnginePolicy(strict_order=0, hit_cap=1))
''',
        "address = np.arange(64, dtype=np.uint64) * 4096\n"
        "spec = {'part': 'lpddr4-3200', 'controller': {'scheduler': 'one-hit'}}\n"
        "assert ew.simulate_dram(address, np.zeros(64, bool), np.arange(64), **spec).total_cycles > 0",
        ("dram", "trace.npz", "--set", "scheduler=one-hit", "--check", "--json", "-"), '"one-hit"',
        {"dram": {"controller": {"scheduler": "one-hit"}}},
    ),
    Case(
        "page-policies", "short-open",
        '''
from edgewatt.plugins import PAGE_POLICIES, EnginePolicy

PAGE_POLICIES.register("short-open", summary="a row idle for 20 clocks is closed")(
    EnginePolicy(page="adaptive", page_idle_cycles=20)
)
''',
        "address = np.arange(64, dtype=np.uint64) * 4096\n"
        "spec = {'part': 'lpddr4-3200', 'controller': {'page_policy': 'short-open'}}\n"
        "assert ew.simulate_dram(address, np.zeros(64, bool), np.arange(64), **spec).total_cycles > 0",
        ("dram", "trace.npz", "--set", "page_policy=short-open", "--check", "--json", "-"), '"short-open"',
        {"dram": {"controller": {"page_policy": "short-open"}}},
    ),
    Case(
        "refresh-policies", "bank-wise",
        '''
from edgewatt.plugins import REFRESH_POLICIES, EnginePolicy

REFRESH_POLICIES.register("bank-wise", summary="per bank, with one pulled in")(
    EnginePolicy(refresh="per-bank", refresh_pull_in=1)
)
''',
        "address = np.arange(64, dtype=np.uint64) * 4096\n"
        "spec = {'part': 'lpddr4-3200', 'controller': {'refresh': 'bank-wise'}}\n"
        "assert ew.simulate_dram(address, np.zeros(64, bool), np.arange(64), **spec).total_cycles > 0",
        ("dram", "trace.npz", "--set", "refresh=bank-wise", "--check", "--json", "-"), '"bank-wise"',
        {"dram": {"controller": {"refresh": "bank-wise"}}},
    ),
    Case(
        "layouts", "sources-only",
        '''
from edgewatt.plugins import LAYOUTS, LayoutKind


class SourcesOnly(LayoutKind):
    runs_of = "target"
    ids = ("source",)


LAYOUTS.register("sources-only", summary="rows one after another, without pointers")(SourcesOnly())
''',
        'regions = ew.build_trace(network, layout="sources-only").memory.regions\n'
        'assert [r.name for r in regions] == ["column_ids", "values", "neurons"]',
        settings({"layout": {"kind": "sources-only"}}), "",
        {"layout": {"kind": "sources-only"}},
    ),
    Case(
        "formats", "fp8_e3m4",
        '''
from edgewatt.plugins import FORMATS, FloatFormat

FORMATS.register("fp8_e3m4", summary="3 exponent, 4 mantissa bits")(FloatFormat(8, "float8_e3m4"))
''',
        'found = ew.order_tuples(matrix, value_format="fp8_e3m4", stride=3, method="sort")\nassert found.ones > 0',
        ("order-tuples", "matrix.npz", "--stride", "3", "--format", "fp8_e3m4", "--json", "-"), '"tuples": 6',
        {"formats": "fp8_e3m4", "system": "edge"},
    ),
    Case(
        "generators", "fan",
        '''
import numpy as np
from edgewatt.plugins import Network, generator


@generator
def fan(n_inputs: int, weight: float = 1.0) -> Network:
    """Build one output fed by all inputs."""
    return Network(np.arange(n_inputs), np.full(n_inputs, n_inputs), n_neurons=n_inputs + 1, inputs=np.arange(n_inputs),
                   outputs=[n_inputs], weights=np.full(n_inputs, weight, np.float32), name="fan")
''',
        "from edgewatt.plugins import GENERATORS\n"
        'assert GENERATORS["fan"].item(n_inputs=3).n_connections == 3',
        settings({"network": {"generate": {"kind": "fan", "n_inputs": 5}}}), "",
        {"network": {"generate": {"kind": "fan", "n_inputs": 5}}},
    ),
    Case(
        "network-readers", "dense-text",
        DENSE_TEXT,
        'assert ew.load("layer.dense").n_connections == 4',
        ("order", "layer.dense", "--memory", "4", "--json", "-"), '"connections": 4',
        {"network": {"file": "layer.dense"}},
    ),
    Case(
        "trace-readers", "own-trace",
        OWN_TRACE,
        "from traces.trace_files import open_trace\n"
        'assert open_trace("t.own").n_accesses == open_trace("t.own", "own-trace").n_accesses == 2',
        ("export", "t.own", "--from", "own-trace", "-f", "dinero", "-o", "out"), "r 40 20\nw 80 20\n",
        {"trace": {"file": "t.own", "format": "own-trace"}},
    ),
    Case(
        "trace-writers", "own-lines",
        OWN_LINES,
        'assert ew.cache.export_trace(trace, "python.own", "own-lines") > 0',
        ("export", "t.din", "-f", "own-lines", "-o", "out"), "r 40\nw 80\n",
        because="what a trace is written as is not part of a point",
    ),
    Case(
        "charts", "misses",
        '''
from edgewatt.plugins import CHARTS, base, quantity


@CHARTS.add("misses", summary="one bar a point", place=60)
def misses(data):
    return base("Misses", "rows", mark="bar", encoding={"x": quantity("hit_rate", "hits of the first level")})
''',
        'ew.report("results", "python.html")\n'
        'assert \'id="chart-misses"\' in open("python.html").read()',
        ("report", "results", "-o", "out"), 'id="chart-misses"',
        because="a page is drawn from records each time; nothing of it is kept",
    ),
    Case(
        "part-readers", "one-line",
        '''
from edgewatt.plugins import PART_READERS, PartReader, Specification


def read(tree):
    return Specification(tree.data["one-line"], "LPDDR4", tree.data["tck_ns"], {}, {})


PART_READERS.register("one-line", summary="name and clock, the rest as of the base part")(
    PartReader(lambda data: isinstance(data, dict) and "one-line" in data, read)
)
''',
        "from hwmodel.part_readers.reader import import_part\n"
        'assert import_part("slow.json").part.name == "slow"',
        ("part", "import", "slow.json", "-o", "out"), "name: slow",
        because="it writes a part file, whose content is part of the points that use it",
    ),
    Case(
        "peers", "einsum",
        '''
import numpy as np
from edgewatt.plugins import PEERS


@PEERS.register("einsum", summary="NumPy's einsum of dense layers")
def einsum(layers, values):
    dense = [layer.matrix.toarray() for layer in layers]

    def step():
        for matrix, layer in zip(dense, layers):
            values[layer.targets] = np.einsum("ij,jb->ib", matrix, values[layer.sources]) + layer.bias
            layer.finish(values[layer.targets])

    return step
''',
        'found = ew.orders.bench(network, batch=4, order=None, peers=["einsum"])\n'
        'assert "einsum" in [row.name for row in found.rows]',
        ("bench", "net.npz", "--order", "own", "--batch", "4", "--peer", "einsum", "--json", "-"), '"einsum"',
        because="what is timed beside our kernel is not part of a point",
    ),
    Case(
        "parts", "own-part",
        "extends: lpddr4-3200\nname: own-part\nnote: slower\n"
        "timing: {tRCD_ns: {value: 25, source: a guess}}\n",
        'assert ew.dram.load_part("own-part").timing.tRCD > ew.dram.load_part("lpddr4-3200").timing.tRCD',
        ("dram", "trace.npz", "--part", "own-part", "--json", "-"), '"own-part"',
        {"dram": {"part": "own-part"}},
    ),
    Case(
        "caches", "own-buffer",
        "description: a small buffer\nsize_bytes: 1024\nline_bytes: 64\nways: 4\npolicy: plru\n",
        '(found,) = ew.run({**BASE, "caches": ["own-buffer"]})\nassert found.config["caches"][0]["size_bytes"] == 1024',
        settings({"caches": ["own-buffer"]}), "",
        {"caches": ["own-buffer"]},
    ),
    Case(
        "buses", "own-wires",
        "description: sixteen wires\nbus_bytes: 2\nblock_bytes: 32\n",
        '(found,) = ew.run({**BASE, "bus": "own-wires"})\nassert found.config["bus"]["bus_bytes"] == 2',
        settings({"bus": "own-wires"}), "",
        {"bus": "own-wires"},
    ),
    Case(
        "systems", "own-board",
        "description: a board\ncaches: [{size_bytes: 8192, line_bytes: 64, ways: 4}]\n"
        "technology: lop-22nm\nencoder: dbi-ac\n",
        '(found,) = ew.run({**BASE, "system": "own-board"})\nassert found.config["encoder"] == "dbi-ac"',
        ("run", "net.npz", "--system", "own-board"), "",
        {"system": "own-board"},
    ),
    Case(
        "technologies", "own-cells",
        "TECHNOLOGY",
        "from hwmodel.energy.technology import load_technology\n"
        'assert load_technology("own-cells").technology_nm == 21',
        settings({"technology": "own-cells", "caches": ["l1-32k"]}), "",
        {"technology": "own-cells", "caches": ["l1-32k"]},
    ),
    Case(
        "sweeps", "own-sweep",
        "description: two encoders\n"
        "base: {network: {generate: {kind: random-layered, n_layers: 2, width: 8, density: 0.5}}}\n"
        "grid: {encoder: [raw, dbi-dc]}\n",
        'assert len(ew.config.load_sweep("own-sweep").points) == 2',
        ("sweep", "own-sweep", "--dry-run", "--json", "-"), '"points": 2',
        because="a sweep is a set of points, each of which is named by what it computes",
    ),
)  # fmt: skip
