"""Records as flat rows: the columns that tables, CSV, Parquet, reports and comparisons share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import NoneType
from typing import Any, Literal

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.results.record import Record, of_our_shape
from traces.base.errors import InputError
from traces.base.units import describe_shares


@dataclass(frozen=True)
class Column:
    """One column of a row, for terminal, page, CSV and comparison.

    head: over it in a table. kind: text, count, share (shown in per cent), quantity (energy, time or bytes, in the unit
    that suits the values: the end of the key says which it is) or decimal. title: at an axis and in a sentence. cost:
    lower is better. brief: head of its column on a terminal; without one it has none there. listed: it is in the page's
    table.
    """

    key: str
    head: str
    kind: Literal["text", "count", "share", "quantity", "decimal"] = "text"
    title: str = ""
    cost: bool = False
    brief: str = ""
    listed: bool = True


BOUNDS = ("bandwidth", "latency", "engine", "dma")

_COLUMNS = (
    Column("network", "network"),
    Column("trace", "trace"),
    Column("ordering", "ordering"),
    Column("stride", "stride", title="tuple order and stride"),
    Column("format", "format"),
    Column("memory", "M", "count", "fast memory M (values)"),
    Column("policy", "policy"),
    Column("encoder", "encoder"),
    Column("onchip", "on-chip memory"),
    Column("lanes", "lanes", "count"),
    Column("engines", "engines", "count"),
    Column("layout", "layout"),
    Column("part", "part", title="memory part"),
    Column("timing", "timing"),
    Column("seed", "seed", "count"),
    Column("runs", "runs", "count", cost=True, brief="runs"),
    Column("reads", "reads", "count", cost=True, brief="reads"),
    Column("writes", "writes", "count", cost=True, brief="writes"),
    Column("io", "I/Os", "count", cost=True, brief="I/Os"),
    Column("distance", "distance", "count", "data movement distance"),
    Column("gap", "gap %", "share", brief="gap"),
    Column("gap_to_bound", "to best bound %", "share", brief="to best"),
    Column("bound", "best bound"),
    Column("hit_rate", "hit %", "share", brief="hit"),
    *(Column(f"l{n}_hit_rate", f"L{n} hit %", "share", brief=f"L{n} hit") for n in range(2, 10)),
    Column("cache_misses", "misses", "count", "cache misses", cost=True),
    Column("bytes", "DRAM traffic", "quantity", cost=True, brief="traffic"),
    Column("neuron_bytes", "activation traffic", "quantity", brief="activations"),
    Column("ones", "ones", "count", cost=True, brief="ones"),
    Column("toggles", "toggles", "count", cost=True, brief="toggles"),
    Column("io_energy_pj", "DQ", "quantity", "DQ energy", cost=True),
    Column("wire_energy_pj", "wires", "quantity", "wire energy", cost=True, brief="wires"),
    Column("dram_energy_pj", "DRAM", "quantity", "DRAM energy", cost=True, brief="DRAM"),
    Column("onchip_energy_pj", "on-chip", "quantity", "on-chip energy", cost=True, brief="on-chip"),
    Column("compute_energy_pj", "compute", "quantity", "compute energy", cost=True, brief="compute"),
    Column("dynamic_energy_pj", "dynamic", "quantity", "dynamic energy", cost=True),
    Column("static_energy_pj", "static", "quantity", "static energy", cost=True, brief="static"),
    Column("energy_pj", "energy", "quantity", cost=True, brief="total"),
    Column("energy_low_pj", "energy, low end", "quantity"),
    Column("energy_high_pj", "energy, high end", "quantity"),
    Column("energy_change", "energy ± %", "share"),
    Column("time_ns", "time", "quantity", cost=True, brief="time"),
    Column("time_change", "time ± %", "share"),
    Column("area_um2", "area um2", "count", "area on chip (um2)", cost=True),
    Column("bound_by", "bound by", title="what bounds the time", brief="bound by (%)"),
    *(Column(f"bound_by_{name}", f"{name} %", "share", f"time bound by {name}", listed=False) for name in BOUNDS),
    Column("roofline_bandwidth_ns", "bytes at peak", "quantity", "bytes over peak bandwidth"),
    Column("roofline_engine_ns", "work at peak", "quantity", "operations over peak rate"),
    Column("accuracy", "accuracy %", "share", brief="accuracy"),
    Column("agreement", "as float64 %", "share", brief="as float64"),
    Column("relative_error", "relative error", "decimal"),
    Column("accuracy_loss", "accuracy lost", "share", cost=True, listed=False),
    Column("hash", "record"),
)
COLUMNS = {column.key: column for column in _COLUMNS}
"""Key -> column, in the order of the page's table."""


def column_title(key: str) -> str:
    return COLUMNS[key].title or COLUMNS[key].head if key in COLUMNS else key


class Table(Sequence[dict[str, Any]]):
    """Rows of scalars, kept as a list a column: a fraction of the memory of as many dictionaries."""

    absent: Any = None  # stands where a row lacks something

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self.columns: dict[str, list[Any]] = {}
        self._size = 0
        for row in rows:
            self.append(row)

    def append(self, row: Mapping[str, Any]) -> None:
        for key, value in row.items():
            column = self.columns.get(key)
            if column is None:
                column = self.columns[key] = [self.absent] * self._size
            column.append(self._kept(key, column, value))
        self._size += 1
        if len(row) < len(self.columns):
            for column in self.columns.values():
                if len(column) < self._size:
                    column.append(self.absent)

    def _kept(self, key: str, column: list[Any], value: Any) -> Any:
        return intern(value) if type(value) is str else value

    def put(self, key: str, values: Iterable[Any]) -> None:
        self.columns[key] = list(values)

    def values(self, key: str) -> list[Any]:
        return self.columns.get(key) or [self.absent] * self._size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(self._size))]
        if not -self._size <= row < self._size:
            raise IndexError(f"row {row} of {self._size}")
        return {key: value for key, column in self.columns.items() if (value := column[row]) is not self.absent}


Rows = Sequence[dict[str, Any]]


def column(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    return rows.values(key) if isinstance(rows, Table) else [row.get(key) for row in rows]


def distinct(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    return [value for value in dict.fromkeys(column(rows, key)) if value is not None]


def telling(rows: Sequence[Mapping[str, Any]], keys: Iterable[str], positions: Iterable[int]) -> list[str]:
    """Return the columns in which these rows differ, without those that tell rows apart as an earlier one
    does."""
    positions, found = list(positions), []
    seen: set[tuple[int, ...]] = set()
    for key in keys:
        values = column(rows, key)
        numbers: dict[Any, int] = {}
        signature = tuple(numbers.setdefault(values[k], len(numbers)) for k in positions)
        if len(numbers) > 1 and signature not in seen:
            seen.add(signature)
            found.append(key)
    return found


def put_column(rows: Rows, key: str, values: Iterable[Any]) -> None:
    if isinstance(rows, Table):
        rows.put(key, values)
        return
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            row[key] = value


def label_of(section: Mapping[str, Any]) -> str:
    kind = str(section["kind"])
    label = f"{kind} {section['stride']}" if "stride" in section else kind
    usual = _defaults("stride" in section, kind)
    named = {k: v["name"] if isinstance(v, Mapping) and "sha256" in v else v for k, v in section.items()}
    changed = [f"{k}={v}" for k, v in named.items() if k not in ("kind", "stride") and v != usual.get(k, v)]
    return f"{label} ({', '.join(changed)})" if changed else label


@lru_cache(maxsize=256)
def _defaults(is_stride: bool, kind: str) -> dict[str, Any]:
    from edgewatt.config.models import ordering_section, stride_section

    try:
        fields = (stride_section if is_stride else ordering_section)(kind).model_fields
    except InputError:  # a record made with a plugin that is not installed here
        return {}
    return {name: field.default for name, field in fields.items()}


_PARAMETERS = re.compile(r" \([^)]*\)")


def shorten_names(rows: Rows) -> dict[str, dict[str, str]]:
    """Leave the parameters out of orderings and strides where all rows of that kind have the same."""
    renamed: dict[str, dict[str, str]] = {}
    for key in ("ordering", "stride"):
        kinds: dict[str, set[str]] = {}
        for label in distinct(rows, key):
            kinds.setdefault(_PARAMETERS.sub("", label), set()).add(label)
        short = renamed[key] = {labels.pop(): kind for kind, labels in kinds.items() if len(labels) == 1}
        put_column(rows, key, [short.get(name, name) for name in column(rows, key)])
    return renamed


NAMING = (
    "name", "network", "trace", "ordering", "stride", "format", "memory", "policy", "lanes", "engines", "layout",
    "onchip", "encoder", "part", "timing", "seed",
)  # fmt: skip


_ONCHIP_PARTS = re.compile(r"caches_\d+_(size_bytes|ways|policy)|scratchpad_(size_bytes|policy)")  # in `onchip_label`


def distinct_labels(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[str]:
    """Return a label for each row of `row_of`: the values in which the rows differ.

    titles: further columns that may tell rows apart, and what they are called (`edgewatt.results.swept`).
    """
    keys = dict.fromkeys((*NAMING, *titles))
    varying = [key for key in keys if len(set(column(rows, key))) > 1]
    if "onchip" in titles:  # it says these parts
        varying = [key for key in varying if not _ONCHIP_PARTS.fullmatch(key)]
    elif any(key.startswith(("caches_", "scratchpad_")) for key in titles):  # its parts say it
        varying = [key for key in varying if key != "onchip"]
    for key in ("layout", "memory"):  # the ordering and the on-chip memory decide them where nothing else is said
        rest = [column(rows, other) for other in varying if other != key]
        if (
            key in varying
            and rest
            and len(set(zip(*rest, column(rows, key), strict=True))) == len(set(zip(*rest, strict=True)))
        ):
            varying.remove(key)
    labels = [
        ", ".join(words_of(key, row[key], titles.get(key)) for key in varying if row.get(key) is not None)
        for row in rows
    ]
    seen = Counter(labels)
    return [
        label if label and seen[label] == 1 else f"{label} [{row['hash'][:6]}]".strip() if row["hash"] else label
        for label, row in zip(labels, rows, strict=True)
    ]


def words_of(key: str, value: Any, title: str | None) -> str:
    """Return the value of a column in words; title: of one that was swept and is not a column of NAMING."""
    prefix = {"stride": "" if value != AS_GIVEN else "stride "}
    prefix |= {"memory": "M ", "seed": "seed ", "lanes": "lanes ", "engines": "engines "}
    return format_value(title, value) if title and key not in NAMING else f"{prefix.get(key, '')}{value}"


def format_value(title: str, value: Any) -> str:
    """Return a swept value in words: ('L1 size (bytes)', 8192) is 'L1 size 8 KiB'."""
    name, _, unit = title.partition(" (")
    if value is None:
        return f"{name} default"
    if unit == "bytes)" and isinstance(value, int):
        return f"{name} {value // 1024} KiB" if value and value % 1024 == 0 else f"{name} {value} B"
    return f"{name} {value}{' ' + unit.rstrip(')') if unit else ''}"


def row_of(record: Record) -> dict[str, Any]:
    """Return the numbers of one record as a flat row. Energies in pJ, times in ns; absent where meaningless."""
    with of_our_shape(f"record {record.hash}"):
        row = _row_of(record)
        for key, value in row.items():
            if type(value) not in (_NUMBERS if key in METRICS else _SCALARS):
                raise TypeError(f"{key} is {str(value)[:40]!r}")
        return row


def per_inference(row: dict[str, Any]) -> dict[str, Any]:
    many = row.get("inputs", 1)
    of = {k: v / many for k, v in row.items() if v is not None and (k.endswith("_pj") or k == "time_ns")}
    return {**row, **of} if many != 1 else row


_NUMBERS = (int, float, NoneType)
_SCALARS = (*_NUMBERS, str, bool)


def _row_of(record: Record) -> dict[str, Any]:
    config, results = record.config, record.results
    row: dict[str, Any] = {"hash": record.hash, "name": record.provenance.get("name", "")}
    row |= config_columns(config)
    if "ordering" in config:
        io = results["io"]
        if cut := describe_cut(record):
            row["ordering"] += f", {cut}"
        row |= {"runs": io["runs"], "reads": io["reads"], "writes": io["writes"], "io": io["total"]}
        row |= {"io_lower": results["bounds"]["lower_total"], "io_upper": results["bounds"]["upper_total"]}
        row |= {"distance": results["movement_distance"]} if "movement_distance" in results else {}
        row["gap"] = results["gap"]
        best = results.get("best_bound")  # older records have Theorem 1 only
        row["io_bound"] = best["total"] if best else row["io_lower"]
        row["bound"] = best["argument"] if best else "theorem-1"
        row["gap_to_bound"] = results["gap_to_best_bound"] if best else row["gap"]
    measured = results.get("accuracy")
    if measured is not None:
        share = measured["agreement"] if measured["accuracy"] is None else measured["accuracy"]
        row |= {"accuracy": measured["accuracy"], "agreement": measured["agreement"]}
        row |= {"relative_error": measured["relative_error"], "accuracy_loss": 1 - share}
    return {**row, **_machine_columns(config, results)} if "energy_pj" in results else row


def order_label(config: Mapping[str, Any]) -> str:
    label, aim = label_of(config["ordering"]), config.get("search", {}).get("objective", "io")
    usual = "energy" if config.get("measure") == "all" else "io"
    if aim == usual or not searches(config):
        return label
    aim = aim.get("kind", aim) if isinstance(aim, Mapping) else aim
    return f"{label} for {'I/Os' if aim == 'io' else aim}"


def searches(config: Mapping[str, Any]) -> bool:
    from reorder.base import ORDERINGS

    kind = str(config.get("ordering", {}).get("kind"))
    return kind in ORDERINGS and bool(ORDERINGS[kind].item.searches)


def describe_cut(record: Record) -> str:
    """Say where a time limit ended the search of a record's order ('cut at 300 of 20000'); empty where none did."""
    found = record.results.get("ordering", {})
    if not found.get("truncated"):
        return ""
    from reorder.base import ORDERINGS

    ordering = record.config["ordering"]
    kind, curve = ordering["kind"], found.get("curve") or [[0, 0.0]]
    steps = ORDERINGS[kind].item.steps if kind in ORDERINGS else None
    planned = ordering.get(steps) if steps else None
    return f"cut at {curve[-1][0]}{f' of {planned}' if planned else ' steps'}"


def config_columns(config: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if "ordering" in config:
        network = config["network"]
        files = network.get("files") or []
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        row["network"] = f"{files[0]['name']}{more}" if files else network["generate"]["kind"]
        row |= {"ordering": order_label(config), "stride": label_of(config["stride"])}
        row["format"] = config["format"]
        row |= {"memory": config["fast_memory"]["size"], "policy": config["fast_memory"]["policy"]}
    else:
        row["trace"] = config["trace"]["files"][0]["name"]
    row["seed"] = config["seed"]
    if config.get("measure") == "all":
        row |= {"encoder": config["encoder"], "part": config["dram"]["part"], "timing": config["timing"]}
        row["onchip"] = onchip_label(config)
    return row


def _machine_columns(config: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    row["lanes"] = results.get("lanes", 1)
    row["inputs"] = int(config.get("batch") or row["lanes"])
    row["engines"] = config.get("engines", {}).get("count", 1)
    row["layout"] = results["layout"]
    row["zeroed_weights"] = results["zeroed_weights"]
    first = results["cache"][0] if results["cache"] else None
    lookups = first["hits"] + first["misses"] if first else 0
    row["cache_lookups"] = lookups
    row["cache_misses"] = first["misses"] if first else None
    row["hit_rate"] = first["hits"] / lookups if first and lookups else None
    for number, level in enumerate(results["cache"][1:], 2):
        seen = level["hits"] + level["misses"]
        row[f"l{number}_hit_rate"] = level["hits"] / seen if seen else None
    row |= moved_bytes(results)
    row |= {f"dram_{key}": results["traffic"][key] for key in ("reads", "writes")}
    row |= {key: results["bus"][key] for key in ("ones", "toggles")}
    energy = results["energy_pj"]
    row |= {
        "io_energy_pj": energy["io"],
        "wire_energy_pj": energy["interface"],
        "dram_energy_pj": energy["dram"],
        "memory_energy_pj": energy["interface"] + energy["dram"],
        "onchip_energy_pj": energy.get("onchip"),
        "compute_energy_pj": energy.get("compute"),
        **{f"{kind}_energy_pj": energy.get(kind) for kind in ("dynamic", "static")},  # not in older records
        "energy_pj": energy["total"],
        **{f"energy_{end}_pj": energy.get(end) for end in ("low", "high")},
        "idle": _idle(energy.get("idle")),
        "time_ns": results["time_ns"],
        "area_um2": results.get("area_um2"),
    }
    if "bound_by" in results:
        row["bound_by"] = describe_shares(results["bound_by"])
        row |= {f"bound_by_{name}": results["bound_by"][name] for name in BOUNDS}
        row |= {f"roofline_{name}_ns": results["roofline_ns"][name] for name in ("bandwidth", "engine")}
    return row


def _idle(idle: Mapping[str, Any] | None) -> str | None:
    if idle is None:
        return None
    billed = idle["billed"]
    return f"{billed} ({idle['share']:.2g})" if billed in ("capacity", "bandwidth") else str(billed)


NEURON_STREAMS = ("inputs", "partial_sums", "outputs")


def moved_bytes(results: Mapping[str, Any]) -> dict[str, int]:
    """Return what went over the bus: bursts, without requests that were merged or answered by a waiting write."""
    traffic = results["traffic"]

    def moved(counts: Mapping[str, int]) -> int:
        bursts = counts.get("bursts", counts["reads"] + counts["writes"])  # older records have requests alone
        return bursts * int(traffic["block_bytes"])

    neurons = sum(moved(traffic["streams"][name]) for name in NEURON_STREAMS if name in traffic["streams"])
    total = moved(traffic)
    return {"bytes": total, "neuron_bytes": neurons, "connection_bytes": total - neurons}


def onchip_label(config: Mapping[str, Any]) -> str:
    pad = config.get("scratchpad")
    if pad is not None:
        return f"{pad['size_bytes'] / 1024:g} KiB scratchpad {pad['policy']}"
    levels = [f"{c['size_bytes'] / 1024:g} KiB {c['ways']}-way {c['policy']}" for c in config["caches"]]
    return " + ".join(levels) or "no cache"


METRICS = tuple(key for key, each in COLUMNS.items() if each.cost)
"""Columns of a row that are costs: lower is better."""


def metrics_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    io, machine = METRICS[: METRICS.index("cache_misses")], METRICS[METRICS.index("cache_misses") :]
    absent = ("accuracy_loss",) if config.get("technology") else ("accuracy_loss", "area_um2")
    metrics = (io if "ordering" in config else ()) + (machine if config["measure"] == "all" else ())
    loss = ("accuracy_loss",) if config.get("accuracy") else ()
    return (*(metric for metric in metrics if metric not in absent), *loss)


def percent(value: float | None, base: float | None) -> str:
    if value is None or base is None or (base == 0 and value != 0):
        return "-"
    change = 0.0 if base == 0 else 100.0 * (value - base) / base
    return "0" if abs(change) < 0.05 else f"{change:+.1f}"


def compact(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    for limit, factor, unit in ((1e4, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M"), (1e12, 1e9, "G"), (1e15, 1e12, "T")):
        if abs(value) < limit * 0.99995:
            return f"{value / factor:.{max(0, 3 - len(str(int(abs(value / factor)))))}f}{unit}"
    return f"{value:.2e}"


def flat(value: Any, key: str = "") -> dict[str, Any]:
    """Return nested JSON values as one mapping with dotted keys."""
    leaves: dict[str, Any] = {}
    _put_leaves(value, key, leaves)
    return leaves


def _put_leaves(value: Any, key: str, leaves: dict[str, Any]) -> None:
    if value is None or isinstance(value, (str, int, float)):  # most are: an abstract class takes its time to say no
        leaves[key] = value
    elif isinstance(value, (dict, Mapping)):
        for name, item in value.items():
            _put_leaves(item, f"{key}.{name}" if key else str(name), leaves)
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for index, item in enumerate(value):
            _put_leaves(item, f"{key}.{index}", leaves)
    else:
        leaves[key] = value
