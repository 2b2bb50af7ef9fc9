"""Every name a configuration may use: what `edgewatt list` prints and the configuration reference is made from."""

from __future__ import annotations

import dataclasses
from typing import Any

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.plugins import KINDS, registry
from traces.base.errors import InputError, unknown_name
from traces.base.registry import Registry
from traces.base.resources import outside_files, shipped_names, shipped_path
from traces.layout.settings import AUTO, BEST

_FOLDERS = {
    "parts": "dram",
    "caches": "cache",
    "buses": "bus",
    "systems": "systems",
    "technologies": "onchip",
    "sweeps": "sweeps",
}

_WORDS = {
    "tuple-orders": {AS_GIVEN: "the tuples stay as the ordering gives them (configurations only)"},
    "layouts": {
        AUTO: "csr where the ordering allows it, else the smaller of tuples and runs",
        BEST: "of those that can hold the order the one with the fewest bytes of connections",
    },
}
"""What a configuration may say besides the members of a registry."""


def lists() -> list[str]:
    return [*KINDS, *_FOLDERS]


def catalogue(what: str) -> list[dict[str, Any]]:
    """Return name, summary and parameters ('name = default') of each entry; of a plug-in also where it comes from.

    what: a kind of `edgewatt list`. Raises InputError for an unknown one.
    """
    if what in _FOLDERS:
        return [_file(_FOLDERS[what], name) for name in shipped_names(_FOLDERS[what])]
    if what not in KINDS:
        raise unknown_name("list", what, lists())
    members = registry(what)
    words = [_entry(name, text) for name, text in _WORDS.get(what, {}).items()]
    return words + [_member(members, name) for name in members]


def _file(folder: str, name: str) -> dict[str, Any]:
    described, outside = _entry(name, _description(folder, name)), outside_files(folder)
    return {**described, **dataclasses.asdict(outside[name][1])} if name in outside else described


def _member(members: Registry[Any], name: str) -> dict[str, Any]:
    try:
        entry = members[name]
    except InputError as error:
        return _entry(name, f"cannot be used: {error}")
    described = _entry(entry.name, entry.summary, entry.parameters)
    return {**described, **dataclasses.asdict(entry.origin)} if entry.origin is not None else described


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a run configuration and of a sweep file."""
    from edgewatt.config.models import RunConfig, SweepConfig

    run = RunConfig.model_json_schema()
    definitions = run.pop("$defs", {})
    _allow_names(run, definitions)
    sweep = SweepConfig.model_json_schema()
    definitions |= sweep.pop("$defs", {})
    sweep["properties"]["base"] = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "edgewatt configuration",
        "oneOf": [{"$ref": "#/$defs/RunConfig"}, {"$ref": "#/$defs/SweepConfig"}],
        "$defs": {**definitions, "RunConfig": run, "SweepConfig": sweep},
    }


def _allow_names(run: dict[str, Any], definitions: dict[str, Any]) -> None:
    properties = run["properties"]
    system = {"description": "named machine (`edgewatt list systems`) or a .yaml file"}
    properties["system"] = system | _shipped("systems")
    for key in ("orderings", "strides", "formats", "layout"):
        items = properties[key].pop("items")
        properties[key].pop("type", None)
        properties[key]["anyOf"] = [{"type": "array", "items": items}, items]
    properties["bus"] = {"anyOf": [_shipped("bus"), properties["bus"]]}
    for caches in (properties["caches"], definitions["OnChipSection"]["properties"]["caches"]):
        caches["items"] = {"anyOf": [_shipped("cache"), caches["items"]]}


def _shipped(folder: str) -> dict[str, Any]:
    from edgewatt.config.sections import NamedFile

    return NamedFile(folder).schema()


def _entry(name: str, summary: str, parameters: type | None = None) -> dict[str, Any]:
    fields = dataclasses.fields(parameters) if parameters is not None else ()
    return {"name": name, "summary": summary, "parameters": [_default(f) for f in fields]}


def _default(field: Any) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.name} = {field.default!r}"
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name} = {field.default_factory()!r}"
    return str(field.name)


def _description(folder: str, name: str) -> str:
    from traces.base.document import read_document

    if folder == "dram":
        return _part_summary(name)
    data = read_document(shipped_path(folder, name)).data
    text = data.get("description") or data.get("note") or data.get("standard") or "" if isinstance(data, dict) else ""
    return " ".join(str(text).split())


def _part_summary(name: str) -> str:
    """Return what one compares parts by: data rate, capacity, energy of a read burst per bit with its row open."""
    from hwmodel.dram.energy import core_constants_pj
    from hwmodel.parts.part_file import load_part

    part = load_part(name)
    o = part.organisation
    per_bit = core_constants_pj(part)["read"][1] / (8 * o.burst_bytes)
    estimated = ", currents are estimates" if any("IDD" in key for key in part.estimates) else ""
    wires = f"{o.channels} x {o.dq_bits} data wires" if o.channels > 1 else f"{o.dq_bits} data wires"
    return (
        f"{part.standard}, {part.data_rate_mts:,.0f} MT/s, {wires}, {o.capacity_bytes / 2**30:g} GiB, "
        f"{per_bit:.2f} pJ per bit read in the core{estimated}. {part.note}"
    )
