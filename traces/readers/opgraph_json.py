"""Operator graphs in JSON: one object with `name`, `nodes` and `outputs` (docs/concepts/operator-schedules.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traces.base.errors import InputError, brief, did_you_mean, shown
from traces.base.memory import JSON_TIMES, read_within
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor
from traces.readers.reader import NETWORK_READERS, NetworkReader

NODE_KEYS = ("name", "op", "inputs", "shape", "bytes", "buffer", "dtype", "also", "attributes")
ALSO_KEYS = ("name", "shape", "bytes", "buffer", "dtype")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number a graph can hold")


def from_dict(value: Any, *, source: str = "") -> OpGraph:
    where = f"{source}: " if source else ""
    if not isinstance(value, Mapping) or not isinstance(value.get("nodes"), list):
        raise InputError(f"{where}an operator graph is an object with a list `nodes`")
    outputs = value.get("outputs")
    if not isinstance(outputs, list) or not all(isinstance(name, str) for name in outputs):
        raise InputError(f"{where}an operator graph needs `outputs`: a list of tensor names")
    name = value.get("name", Path(source).stem or "graph")
    if not isinstance(name, str):
        raise InputError(f"{where}`name` must be text, not {name!r}")
    nodes = [_node(entry, i, where) for i, entry in enumerate(value["nodes"])]
    return OpGraph(name, tuple(nodes), tuple(outputs), source=source)


def _node(entry: Any, index: int, where: str) -> Operator:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise InputError(f"{where}nodes[{index}] must be an object with a `name`")
    at = f"{where}node {entry['name']!r}"
    _known_keys(entry, NODE_KEYS, at)
    op = entry.get("op", INPUT if not entry.get("inputs") else "OP")
    inputs = entry.get("inputs", [])
    if not isinstance(op, str) or not op:
        raise InputError(f"{at}: `op` must be a name, not {shown(op)}")
    if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
        raise InputError(f"{at}: `inputs` must be a list of tensor names")
    also = entry.get("also", [])
    if not isinstance(also, list) or not all(isinstance(t, Mapping) and isinstance(t.get("name"), str) for t in also):
        raise InputError(f"{at}: `also` must be a list of further tensors, each with a `name`")
    attributes = entry.get("attributes", {})
    if not isinstance(attributes, Mapping):
        raise InputError(f"{at}: `attributes` must be an object")
    tensors = [_tensor(entry, at)]
    for extra in also:
        where = f"{at}, tensor {extra['name']!r}"
        _known_keys(extra, ALSO_KEYS, where)
        tensors.append(_tensor(extra, where))
    return Operator(entry["name"], op, tuple(inputs), tuple(tensors), attributes=dict(attributes))


def _known_keys(entry: Mapping[str, Any], known: tuple[str, ...], at: str) -> None:
    for key in entry:
        if key not in known:
            raise InputError(f"{at}: unknown key {key!r}{did_you_mean(key, known)}")


def _tensor(entry: Mapping[str, Any], at: str) -> Tensor:
    shape = entry.get("shape")
    if not isinstance(shape, list) or any(type(s) is not int or s < 0 for s in shape):
        raise InputError(f"{at}: unknown shape {shape!r}: give every dimension as a whole number")
    n_bytes = entry.get("bytes")
    if type(n_bytes) is not int:
        raise InputError(f"{at}: `bytes` must be a whole number, not {shown(n_bytes)}")
    buffer, dtype = entry.get("buffer", entry["name"]), entry.get("dtype", "uint8")
    if not isinstance(buffer, str) or not isinstance(dtype, str):
        raise InputError(f"{at}: `buffer` and `dtype` must be text")
    return Tensor(entry["name"], tuple(shape), n_bytes, buffer, dtype)


class OpGraphJson(NetworkReader):
    suffixes = (".json",)

    def opgraph(self, file: Path) -> OpGraph:
        data = read_within(file, JSON_TIMES)
        try:
            value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise InputError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
        except (RecursionError, ValueError, MemoryError) as error:
            raise InputError(f"{file}: not a usable JSON file ({brief(error)})") from error
        return from_dict(value, source=str(file))


NETWORK_READERS.register("opgraph-json", summary="operator graph in JSON")(OpGraphJson())
