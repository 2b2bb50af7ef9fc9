"""Strict pydantic models of what documents hold, and what is wrong with one at its file, line and column."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import cache, cached_property
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from traces.base.document import MOST_PROBLEMS, ConfigError, Document, Loc, dotted
from traces.base.errors import InputError, did_you_mean, shown

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def _whole(given: Any) -> Any:
    return int(given) if isinstance(given, float) and given.is_integer() else given


Whole = Annotated[int, BeforeValidator(_whole)]  # 8.0 is one
ABSENT: Any = None  # default of a key that may be missing, but is no null


class Section(BaseModel):
    """A mapping of a configuration: unknown keys and loose types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    @cached_property
    def plain(self) -> dict[str, Any]:
        return self.model_dump()


class SectionChoice:
    """Annotation of a field whose section depends on what the file says there."""

    def chosen(self, data: Any) -> list[type[BaseModel]]:
        """Return the section for such data; [] where they say none."""
        raise NotImplementedError


def validate(model: type[M], document: Document) -> M:
    """Validate a document. Raises ConfigError with every problem, those noted before included, at its place."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError([*document.problems, *refusal(model, document, error, with_name).problems]) from None


def refusal(
    model: type[BaseModel], document: Document, error: ValidationError, say: Callable[[Loc, str], str]
) -> ConfigError:
    """Return what pydantic refuses with the places in the document. say(loc, text): what is said of a problem."""
    problems = _problems(document.data, error)
    marks = [document.mark(loc, key=key) for loc, key, _ in problems]
    last = sorted(marks)[:MOST_PROBLEMS][-1]  # that is shown: what was meant is not sought for more
    return ConfigError(
        (mark, say(loc, _unknown_key(model, document.data, loc, hint=mark <= last) if text is None else text))
        for mark, (loc, _, text) in zip(marks, problems, strict=True)
    )


def number_of(value: Any, least: float, most: float, *, whole: bool) -> float:
    """Return a value that must be a number. Raises InputError saying what else it is."""
    kind: Any = Annotated[Whole if whole else float, Field(ge=least, le=most)]
    try:
        return float(TypeAdapter(kind, config=Section.model_config).validate_python(value))
    except ValidationError as error:
        raise InputError(_problems(value, error)[0][2]) from None


def with_name(loc: Loc, text: str) -> str:
    """Return the text of a problem behind the dotted name of what it is about, unless it names that itself."""
    at = loc[:-1] if loc and (loc[-1] == "value" or shown(loc[-1]) in text) else loc
    return f"{dotted(at)}: {text}" if at else text


Problem = tuple[Loc, bool, str | None]
"""Where it stands, whether its key is meant rather than its value, and what is wrong; None: the key is unknown."""


def _problems(data: Any, error: ValidationError) -> list[Problem]:
    by_loc: dict[Loc, list[dict[str, Any]]] = {}
    for problem in error.errors(include_url=False):
        loc, rest, value = _locate(data, problem["loc"])
        by_loc.setdefault(loc, []).append({**problem, "rest": rest, "value": value})
    # A union reports each of its members; what went deepest into the data says most, so ancestors' type errors go.
    problems: list[Problem] = []
    for loc, items in by_loc.items():
        expected = [_WANTED[item["type"]] for item in items if item["type"] in _WANTED]
        others = [item for item in items if item["type"] not in _WANTED]
        if expected and not (others and any(item["type"] == "literal_error" for item in others) and len(items) > 1):
            problems.append((loc, False, _wrong_type(expected, items[0]["value"])))
        problems += [_one(loc, item, expected) for item in others]
    return problems


def _unknown_key(model: type[BaseModel], data: Any, loc: Loc, *, hint: bool) -> str:
    text = f"unknown key {shown(loc[-1])}"
    if not hint:
        return text
    known, present = known_keys(model, loc[:-1], data)
    begun = {key for key in known - present if key.startswith(f"{loc[-1]}_")}  # size, where size_bytes is meant
    meant = elsewhere(model, loc[-1], known) if not begun else ""
    return text + (meant or did_you_mean(loc[-1], begun or known - present, known))


def _one(loc: Loc, item: dict[str, Any], expected: list[str]) -> Problem:
    kind, context, value = item["type"], item.get("ctx", {}), item["value"]
    if kind == "extra_forbidden":
        return loc, True, None
    if kind == "missing":
        missing = item["rest"][-1] if item["rest"] else "?"
        return loc, True, f"missing key {shown(missing)}"
    if kind == "literal_error":
        names = [part.strip().strip("'") for part in context["expected"].replace(" or ", ", ").split(",")]
        if not isinstance(value, str) or (expected and _as_number(value)):
            return loc, False, _wrong_type([*expected, f"one of {', '.join(names)}"], value)
        what = shown(next((step for step in reversed(loc) if isinstance(step, str)), ""))
        return loc, False, f"{what} cannot be {shown(value)}{did_you_mean(value, names)}"
    if kind in _BOUNDS:
        key, text = _BOUNDS[kind]
        return loc, False, f"{text} {context[key]}, not {shown(value)}"
    message = str(context.get("error") or item["msg"]).removeprefix("Value error, ")
    return loc, kind == "value_error" and isinstance(value, dict), " ".join(message.split())


def _as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _wrong_type(expected: list[str], value: Any) -> str:
    due = " or ".join(dict.fromkeys(expected))
    names = {dict: "a mapping", list: "a list", type(None): "nothing", bool: "true or false", str: "the text"}
    what = names.get(type(value), "")
    if isinstance(value, (str, int, float)):
        what = f"{what} {shown(value)}".strip() if not isinstance(value, bool) else str(value).lower()
    hint = ""
    if isinstance(value, str) and "number" in due and _as_number(value):
        hint = " (remove the quotes)"
    elif isinstance(value, str) and "true" in due and value.lower() in ("yes", "no", "on", "off"):
        hint = f" (write {'true' if value.lower() in ('yes', 'on') else 'false'})"
    return f"expected {due}, not {what}{hint}"


def _locate(data: Any, location: tuple[str | int, ...]) -> tuple[Loc, tuple[str | int, ...], Any]:
    """Follow pydantic's location as far as the data goes; return the loc, the steps left over and the value there."""
    loc: list[str | int] = []
    rest: list[str | int] = []
    for step in location:
        if isinstance(step, int) and not isinstance(data, list):
            continue  # a single value where a list may stand
        if not rest and _has(data, step):
            loc.append(step)
            data = data[step]
        elif isinstance(data, dict):
            rest.append(step)
    return tuple(loc), tuple(rest), data


def _has(data: Any, step: str | int) -> bool:
    if isinstance(data, dict):
        return step in data
    return isinstance(data, list) and isinstance(step, int) and step < len(data)


def keys_of(section: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in section.model_fields.items()}


def known_keys(model: Any, loc: tuple[str | int, ...], data: Any) -> tuple[set[str], set[str]]:
    """Return the keys that the section at `loc` may have, and those that it has."""
    hints: list[Any] = [model]
    for step in loc:
        data, above = data[step], data
        if not isinstance(step, int):  # of a list, sections_in looks through it
            sections = [section for hint in hints for section in sections_in(hint, above)]
            known = [keys_of(section)[step] for section in sections if step in keys_of(section)]
            hints = [(field.annotation, field.metadata) for field in known] or [*map(_others, sections)]
    sections = [section for hint in hints for section in sections_in(hint, data)]
    return {key for section in sections for key in keys_of(section)}, set(data or ())


def _others(section: type[BaseModel]) -> Any:
    """Return what further keys of a section hold, where it may have any."""
    return inspect.get_annotations(section, eval_str=True).get("__pydantic_extra__")


def sections_in(hint: Any, data: Any) -> list[type[BaseModel]]:
    if isinstance(hint, tuple):  # (annotation, metadata) of a field
        hint, metadata = hint
        chosen = [section for item in metadata if isinstance(item, SectionChoice) for section in item.chosen(data)]
        return chosen or sections_in(hint, data)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    if typing.get_origin(hint) is typing.Annotated:
        return sections_in((hint.__origin__, hint.__metadata__), data)
    if typing.get_origin(hint) in (list, tuple, dict, typing.Union, types.UnionType):
        return [section for inner in typing.get_args(hint) for section in sections_in(inner, data)]
    return []


def elsewhere(model: type[BaseModel], given: object, known: set[str]) -> str:
    """Say where a key belongs that is known in another section; options of the command line are found, too."""
    name = str(given).strip("-").replace("-", "_")
    if name in known and name == given:
        return ""
    locs = [loc for loc in key_locs(model) if loc[-1] == name] or [
        loc for loc in key_locs(model) if loc[-1].rpartition("_")[0] == name
    ]
    if not locs:
        return ""
    here = [repr(".".join(loc)) + " at the top" * (len(loc) == 1) for loc in locs]
    return f" (did you mean {' or '.join(here[:3])}?)"


@cache
def key_locs(model: type[BaseModel]) -> tuple[tuple[str, ...], ...]:
    locs: list[tuple[str, ...]] = []
    for key, field in keys_of(model).items():
        locs.append((key,))
        for section in dict.fromkeys(sections_in((field.annotation, field.metadata), None)):
            locs += [(key, *loc) for loc in key_locs(section)]
    return tuple(locs)
