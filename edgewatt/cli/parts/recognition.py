"""What a file is: the one place that knows the kinds of files people have, and which command reads each."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

_HEAD_BYTES = 1 << 16
_PARSED_BYTES = 1 << 22  # no larger mapping is read only to say what it is


@dataclass(frozen=True)
class FirstLook:
    """A file as far as one must look to say what it is."""

    path: Path
    head: bytes

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    @cached_property
    def keys(self) -> frozenset[str]:
        if self.suffix not in (".yaml", ".yml", ".json") or self.path.stat().st_size > _PARSED_BYTES:
            return frozenset()
        text = self.path.read_text("utf-8-sig")
        if self.suffix == ".json":
            data = json.loads(text)
        else:
            from traces.base.document import parse_document

            data = parse_document(text, str(self.path)).data
        return frozenset(map(str, data)) if isinstance(data, dict) else frozenset()

    @cached_property
    def arrays(self) -> frozenset[str]:
        from traces.base.archive import npz_names

        return frozenset(npz_names(self.path)) if self.head.startswith(b"PK") else frozenset()

    @cached_property
    def dimensions(self) -> int:
        from traces.base.archive import read_npy_header

        return len(read_npy_header(BytesIO(self.head), str(self.path))[0]) if self.suffix == ".npy" else 0

    @cached_property
    def columns(self) -> frozenset[str]:
        first = self.head.partition(b"\n")[0].decode("utf-8", "replace")
        return frozenset(name.strip().strip('"') for name in first.split(",")) if self.suffix == ".csv" else frozenset()


def _is_pickle(head: bytes) -> bool:
    """Tell a pickle of protocol 2 to 5 by its first two bytes, PROTO and the number, and the opcode that follows."""
    return (
        len(head) > 2
        and head[:1] == b"\x80"
        and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
        and head[2:3] in b"\x95}](ck\x8a"
    )


def _is_trace(look: FirstLook) -> bool:
    from traces.trace_files.reader import TRACE_READERS
    from traces.trace_files.source import Source

    source = Source.of(look.path)  # which unpacks
    with source.open() as stream:
        head = stream.read(_HEAD_BYTES)
    readers = [entry.item for entry in TRACE_READERS.loadable().values()]
    return any(each.recognises(head, source.n_bytes) for each in readers if not each.last_resort)


def _is_sweep(look: FirstLook) -> bool:
    from edgewatt.config.models import SweepConfig
    from traces.base.schema import keys_of

    return "base" in look.keys and look.keys <= keys_of(SweepConfig).keys()


def _is_system(look: FirstLook) -> bool:
    from edgewatt.config.models import SystemFile
    from traces.base.schema import keys_of

    return bool(look.keys) and look.keys <= keys_of(SystemFile).keys()


@dataclass(frozen=True)
class Kind:
    """A kind of file. noun: with its article. advice: which command reads it, {file} in its place."""

    noun: str
    advice: str
    fits: Callable[[FirstLook], bool]


KINDS = {
    "pickle": Kind(
        "a file of pickled objects, as torch.save writes",
        "no pickle is ever opened, since it may run code. Save the tensors alone, "
        "`safetensors.torch.save_file(model.state_dict(), 'net.safetensors')`, for `edgewatt order`",
        lambda look: (look.head.startswith(b"PK") and b"/data.pkl" in look.head) or _is_pickle(look.head),
    ),
    "model": Kind(
        "a model",
        "`edgewatt schedule {file}` orders its operators, `edgewatt order {file}` the connections of a chain of layers",
        lambda look: look.suffix in (".onnx", ".tflite") or look.head[4:8] == b"TFL3",
    ),
    "weights": Kind(
        "a file of weights",
        "`edgewatt order {file}` orders their connections, `edgewatt run {file} --system edge` runs them on a machine",
        lambda look: look.suffix == ".safetensors",
    ),
    "gguf": Kind(
        "a language model in GGUF",
        "`edgewatt token {file}` says what a token of it costs in a memory",
        lambda look: look.head.startswith(b"GGUF"),
    ),
    "network": Kind(
        "a network",
        "`edgewatt order {file}` orders it, `edgewatt run {file} --system edge` runs it on a machine",
        lambda look: "edgewatt_network" in look.arrays or look.suffix == ".tsv",
    ),
    "matrix": Kind(
        "a sparse matrix",
        "`edgewatt order-tuples {file}` orders its tuples, `edgewatt order {file}` takes it as a network's layer",
        lambda look: (
            {"format", "shape", "data"} <= look.arrays
            or look.suffix == ".mtx"
            or look.dimensions == 2
            or look.head.lower().startswith(b"%%matrixmarket")
        ),
    ),
    "order": Kind(
        "an order of connections",
        "`edgewatt break-even NETWORK --order {file}` says where it saves, "
        "`edgewatt validate --network NETWORK --order {file}` checks it",
        lambda look: "edges" in look.arrays,
    ),
    "record": Kind(
        "a record",
        "`edgewatt show {file}` prints it, `edgewatt rerun {file}` repeats it",
        lambda look: look.head.startswith(b'{"schema":') and b'"canonical":' in look.head,
    ),
    "graph": Kind(
        "an operator graph", "`edgewatt schedule {file}` orders its operators", lambda look: "nodes" in look.keys
    ),
    "plan": Kind(
        "a plan of operators",
        "`edgewatt arena {file}` places its buffers",
        lambda look: look.suffix == ".json" and {"buffers", "order"} <= look.keys,
    ),
    "sweep": Kind("a sweep file", "`edgewatt sweep {file}` computes it", _is_sweep),
    "configuration": Kind(
        "a run configuration",
        "`edgewatt run {file}` computes it",
        lambda look: bool(look.keys & {"network", "trace", "orderings"}),
    ),
    "part": Kind(
        "a memory part",
        "`edgewatt dram TRACE --part {file}` plays a trace on it, and a configuration names it as dram.part",
        lambda look: bool(look.keys & {"extends", "organisation", "timing"}),
    ),
    "system": Kind("a machine", "`edgewatt run NETWORK --system {file}` runs a network on it", _is_system),
    "buffers": Kind(
        "a table of buffers",
        "`edgewatt arena {file}` places them",
        lambda look: {"id", "lower", "upper", "size"} <= look.columns,
    ),
    "table": Kind(
        "a table of collected results",
        "`edgewatt report` and `edgewatt compare` take the folder that it was collected from",
        lambda look: {"hash", "config.seed"} <= look.columns or look.head.startswith(b"PAR1"),
    ),
    "page": Kind(
        "a page", "open it in a browser", lambda look: look.head.lstrip().lower().startswith((b"<!doctype", b"<html"))
    ),
    "trace": Kind(
        "a memory trace",
        "`edgewatt cache {file}` plays it through caches, `edgewatt dram {file}` on a memory part",
        lambda look: "meta.json" in look.arrays or (not look.arrays and _is_trace(look)),
    ),
    "results": Kind(
        "a folder of results",
        "`edgewatt report {file}` draws it, `edgewatt compare {file} OTHER` compares it with another",
        lambda look: False,  # a folder, see `kind_of`
    ),
}
"""Kinds of files, the surest signs first."""


def kind_of(path: Path) -> str | None:
    """Return which of KINDS a file or folder is, None where nothing is sure. Never raises for what a file holds."""
    import yaml

    from traces.base.errors import EdgewattError

    try:
        if path.is_dir():
            return "results" if (path / "records").is_dir() else None
        if not path.is_file():  # a pipe is not to be read twice
            return None
        with path.open("rb") as stream:
            look = FirstLook(path, stream.read(_HEAD_BYTES))
    except (OSError, ValueError):
        return None
    for name, kind in KINDS.items():
        try:
            if kind.fits(look):
                return name
        except (EdgewattError, OSError, ValueError, RecursionError, yaml.YAMLError):
            continue
    return None


def wrong_kind(file: str, kind: str, expected: str) -> str:
    """Return the message for a file of one of KINDS where something else is wanted."""
    file_kind = KINDS[kind]
    return f"{file}: this is {file_kind.noun}, not {expected}: {file_kind.advice.replace('{file}', shlex.quote(file))}"


def explain(given: object, message: str, expected: str, kinds: Collection[str]) -> str | None:
    """Return better words for an error where a file given is of another kind, or is not there but its like is.

    given: an argument's value, or a list of values. message: of the error. expected: in words, with the article. kinds:
    which of KINDS were meant.
    """
    for each in given if isinstance(given, list | tuple) else (given,):
        if not isinstance(each, str | Path) or not str(each):
            continue
        kind = kind_of(Path(each))
        if kind is not None and kind not in kinds:
            return wrong_kind(str(each), kind, expected)
        if f"{each}: no such" in message and "did you mean" not in message and (near := near_name(Path(each))):
            return f"{message} (did you mean {near!r}?)"
    return None


def refuse_other_kinds(expected: str, kinds: Collection[str], file: str) -> None:
    """Raise InputError for a file that is surely something else, before anything is read."""
    from traces.base.errors import InputError

    if message := explain(file, "", expected, kinds):
        raise InputError(message)


def near_name(missing: Path) -> str | None:
    """Return the path of the file beside a missing one that has the name most like its own."""
    try:
        names = [entry.name for entry in missing.parent.iterdir() if entry.name != missing.name][:1000]  # no dead link
    except OSError:
        return None
    close = difflib.get_close_matches(missing.name, names, n=1)
    return str(missing.with_name(close[0])) if close else None
