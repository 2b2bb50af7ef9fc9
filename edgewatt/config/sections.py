"""How configuration sections are made: strict pydantic models, many of them derived from the dataclasses they fill."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel, Field, GetJsonSchemaHandler, ValidationError, ValidationInfo, create_model
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from edgewatt.config.kinds import registry
from traces.base.errors import InputError, unknown_name
from traces.base.resources import shipped_names
from traces.base.schema import Section, SectionChoice

Extra = tuple[tuple[str, Any, Any], ...]  # (name, type, default) of further fields


@cache
def section_for(
    what: type,
    *,
    name: str | None = None,
    omit: tuple[str, ...] = (),
    extra: Extra = (),
    named: tuple[tuple[str, Named], ...] = (),
) -> type[Section]:
    """Derive the section that fills a dataclass (fields `omit` left out, ``(name, type, default)`` triples added).

    named: fields, dotted where they are in a section inside, that hold the name of a kind's member.

    Validating the section builds the dataclass once, so that its own checks speak too.
    """
    hints = typing.get_type_hints(what)
    fields: dict[str, Any] = {}
    for item in dataclasses.fields(what):
        if item.name in omit:
            continue
        default: Any = item.default
        if default is dataclasses.MISSING and item.default_factory is not dataclasses.MISSING:
            default = typing.cast(Any, item.default_factory)()
        required = default is dataclasses.MISSING
        if item.name in dict(named):
            hints[item.name] = typing.Annotated[hints[item.name], dict(named)[item.name]]
        if dataclasses.is_dataclass(hints[item.name]):  # a section inside the section
            inside = tuple((key.partition(".")[2], kind) for key, kind in named if key.startswith(f"{item.name}."))
            hints[item.name] = section_for(hints[item.name], name=f"{hints[item.name].__name__}Section", named=inside)
            default = hints[item.name].model_validate(dataclasses.asdict(default)) if not required else default
        fields[item.name] = (_loosen(hints[item.name]), ... if required else Field(default, validate_default=False))
    for key, kind, default in extra:
        fields[key] = (kind, default)
    derived = create_model(name or what.__name__, __base__=_Filling, __doc__=inspect.getdoc(what), **fields)
    derived._fills = what
    return derived


def _loosen(hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return typing.Annotated[hint, Field(strict=False)]
    if arguments and origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_loosen(a) for a in arguments)]  # noqa: UP007 - built at run time
    return hint


class _Filling(Section):
    _fills: typing.ClassVar[type]

    def model_post_init(self, context: Any, /) -> None:
        self.build()

    def build(self) -> Any:
        names = _filled_fields(type(self))
        values = [getattr(self, name) for name in names]
        values = [value.build() if isinstance(value, _Filling) else value for value in values]
        try:
            return _built(self._fills, names, *values)
        except TypeError:  # a list among them
            return self._fills(**dict(zip(names, values, strict=True)))


@lru_cache(maxsize=256, typed=True)
def _built(what: type, names: tuple[str, ...], *values: Any) -> Any:
    """Build a dataclass, once for the points of a sweep that have it alike."""
    return what(**dict(zip(names, values, strict=True)))


@cache
def _filled_fields(section: type[_Filling]) -> tuple[str, ...]:
    names = {item.name for item in dataclasses.fields(section._fills)}
    return tuple(name for name in section.model_fields if name in names)


class Named:
    """Annotation of a text that names a member of a kind; for a chain, several joined by '+' and checked elsewhere."""

    def __init__(self, kind: str, *words: str, chain: bool = False) -> None:
        self.kind, self.words, self.chain = kind, words, chain

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        inner: CoreSchema = handler(source)
        return core_schema.no_info_after_validator_function(self._validate, inner)

    def _validate(self, value: str) -> str:
        known = registry(self.kind)
        if not self.chain and value not in self.words and value not in known:
            raise unknown_name(known.what, value, [*self.words, *known])
        return value

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names = [*self.words, *registry(self.kind).loadable()]
        if not self.chain:
            return {"type": "string", "enum": names}
        one = "|".join(re.escape(name).replace(r"\-", "-") for name in names)
        return {"type": "string", "pattern": rf"^({one})(\+({one}))*$"}


class NamedFile:
    """Annotation of a text that names a shipped file, one of another distribution or a YAML file of the user's."""

    def __init__(self, folder: str, *words: str) -> None:
        self.folder, self.words = folder, words

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.schema()

    def schema(self) -> dict[str, Any]:
        names = [*self.words, *shipped_names(self.folder)]
        return {"anyOf": [{"enum": names}, {"type": "string", "pattern": r"\.ya?ml$"}]}


class KindChoice(SectionChoice):
    """Annotation of a field that holds one kind of a registry: ``kind`` alone, or ``{kind: ..., parameter: ...}``."""

    def __init__(self, kind: str, extra: Extra = ()) -> None:
        self.kind = kind
        self.extra = extra

    def section(self, kind: str) -> type[Section]:
        entry = registry(self.kind)[kind]
        return _kind_section(entry.name, entry.parameters, entry.summary, self.extra)

    def chosen(self, data: Any) -> list[type[BaseModel]]:
        kind = data.get("kind") if isinstance(data, dict) else None
        try:
            return [self.section(kind)] if isinstance(kind, str) else []
        except ValueError:
            return []

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._validate)

    def _validate(self, value: Any, info: ValidationInfo) -> Section:
        if isinstance(value, Section):
            return value
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
            what = registry(self.kind).what
            raise PydanticCustomError(
                "choice", "{message}", {"message": f"expected the name of one {what}, or a mapping with 'kind'"}
            )
        try:
            section = self.section(value["kind"])
        except InputError as error:
            problem = PydanticCustomError("unknown_kind", "{message}", {"message": str(error)})
            details: Any = {"type": problem, "loc": ("kind",), "input": value["kind"]}
            raise ValidationError.from_exception_data("kind", [details]) from None
        if len(value) == 1:
            return _with_defaults(section, value["kind"])
        return section.model_validate(value, context=info.context)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        kinds = list(registry(self.kind).loadable())
        variants = [self.section(kind).model_json_schema(ref_template="#/$defs/{model}") for kind in kinds]
        for variant in variants:
            variant.pop("$defs", None)
            variant["required"] = sorted({"kind", *variant.get("required", ())})
        return {"anyOf": [{"enum": kinds}, *variants]}


@cache
def _with_defaults(section: type[Section], kind: str) -> Section:
    return section.model_validate({"kind": kind})


@cache
def _kind_section(kind: str, parameters: type | None, summary: str, extra: Extra) -> type[Section]:
    tag = ("kind", typing.Literal[kind], kind)
    name = "".join(part.capitalize() for part in kind.split("-"))
    if parameters is None:
        fields: dict[str, Any] = {key: (hint, default) for key, hint, default in (tag, *extra)}
        return create_model(name, __base__=Section, __doc__=summary, **fields)
    return section_for(parameters, name=name, extra=(tag, *extra))
