"""Part files: which one is meant, what it extends, and the options that are chosen, laid over each other.

The schema is documented in docs/concepts/dram-parts.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hwmodel.parts.part import Part
from traces.base.document import Document, Mark, locs_in, read_document
from traces.base.errors import InputError, did_you_mean, shown
from traces.base.files import Stamp, stamp_of
from traces.base.resources import shipped_names, shipped_path


def load_part(part: str | Path | Mapping[str, Any] | Part) -> Part:
    """Return a part from a shipped name, the path of a YAML file, or a mapping of the part schema.

    Raises InputError listing every problem: unknown key (with a suggestion), missing or unsourced constant, a number
    written as text, timings that contradict each other; with file, line and column where there is a file.
    """
    if isinstance(part, Part):
        return part
    if isinstance(part, Mapping):
        mark = Mark(f"part {part.get('name', '(mapping)')!r}")
        data = _plain(part)
        marks = dict.fromkeys(locs_in(data), mark)
        return _built(_extended(Document(data, marks, marks), Path(), []))
    if isinstance(part, str) and "+" in part and not Path(part).is_file():
        base, *options = part.split("+")
        return load_part({"extends": base, "name": part, "with": options})
    key = part if _is_shipped(part) else Path(part).absolute()
    stamps, loaded = _LOADED.get(key, ({}, None))
    if loaded is None or any(_stamp(each) != stamp for each, stamp in stamps.items()):
        files: list[Path] = []
        loaded = _built(_read(_find(part), files))
        if len(_LOADED) >= _MOST_KEPT:
            _LOADED.clear()
        _LOADED[key] = {each: _stamp(each) for each in files}, loaded
    return loaded


_LOADED: dict[str | Path, tuple[dict[Path, Stamp | None], Part]] = {}
"""Parts already read, by shipped name or path of their file, good while none of their files changes."""
_MOST_KEPT = 256


def _stamp(file: Path) -> Stamp | None:
    try:
        return stamp_of(file)
    except InputError:  # it is gone
        return None


def part_names() -> list[str]:
    return shipped_names("dram")


def _is_shipped(part: str | Path) -> bool:
    return isinstance(part, str) and not part.endswith((".yaml", ".yml")) and "/" not in part


def _find(part: str | Path) -> Path:
    if isinstance(part, str) and _is_shipped(part):
        return shipped_path("dram", part)
    path = Path(part)
    if not path.is_file():
        raise InputError(f"{path}: no such part file (shipped parts: {', '.join(part_names())})")
    return path


def _read(path: Path, files: list[Path], seen: tuple[str, ...] = ()) -> Document:
    files.append(path)
    document = read_document(path)
    if not isinstance(document.data, dict):
        raise document.fail((), "a part file is a mapping (see docs/concepts/dram-parts.md)")
    return _extended(document, path.parent, files, seen)


def _extended(document: Document, folder: Path, files: list[Path], seen: tuple[str, ...] = ()) -> Document:
    """Return a part laid over its base part, with its options; a constant given again replaces the base's.

    folder: that paths are relative to. files: those read are added. seen: what extends it.
    """
    base_name = document.data.pop("extends", None)
    if base_name is not None:
        if not isinstance(base_name, str) or base_name in seen or len(seen) > 8:
            text = f"extends: must be the name or path of another part, not {shown(base_name)}"
            raise document.fail(("extends",), text, key=True)
        own = base_name.endswith((".yaml", ".yml")) and (folder / base_name).is_file()
        base = _read(folder / base_name if own else _find(base_name), files, (*seen, base_name))
        document = _laid(base, document)
    _choose(document)
    return document


def _laid(below: Document, above: Document) -> Document:
    below.data = _merge(below.data, above.data)
    below.keys |= above.keys
    below.values |= above.values
    return below


def _merge(below: Any, above: Any) -> Any:
    """Lay the data of a part over those of its base: constants are replaced whole, a null takes a section away."""

    def merge(below: Any, above: Any) -> Any:
        if isinstance(below, dict) and isinstance(above, dict) and "value" not in above:
            merged = {**below, **{key: merge(below.get(key), value) for key, value in above.items()}}
            return {key: value for key, value in merged.items() if value is not None}
        return above

    data = merge(below, above)
    # tRCD_ns replaces an inherited tRCD_ns and tRCD_cycles: the new file decides about the whole constant.
    given = above.get("timing")
    for key in given if isinstance(given, dict) else ():
        stem, _, unit = key.rpartition("_")
        other = f"{stem}_{'cycles' if unit == 'ns' else 'ns'}"
        if other not in given:
            data["timing"].pop(other, None)
    return data


def _choose(document: Document) -> None:
    """Lay the chosen options (`with`) over the part: each is a piece of a part file.

    One with a question mark behind its name is taken where the part has it.
    """
    chosen, options = document.data.pop("with", []), document.data.get("options", {})
    if not isinstance(chosen, list) or not all(isinstance(name, str) for name in chosen):
        document.complain(("with",), f"must be a list of options of the part, not {shown(chosen)}")
        return
    has = options if isinstance(options, dict) else {}
    chosen = [name.removesuffix("?") for name in chosen if not name.endswith("?") or name[:-1] in has]
    seen: set[str] = set()
    for name in chosen:
        if name in seen:
            document.complain(("with",), f"option {name!r} is given twice")
        elif not isinstance(has.get(name), dict):
            document.complain(("with",), f"the part has no option {name!r}{did_you_mean(name, list(has))}")
        elif set(has[name]) & {"extends", "with", "options", "name"}:
            document.complain(("options", name), "an option changes constants, not extends, with, options or name")
        else:
            piece = document.at(("options", name))
            piece.values[()] = document.mark(())
            _laid(document, piece)
        seen.add(name)


def _built(document: Document) -> Part:
    from hwmodel.parts.part_sections import build

    document.data.pop("options", None)
    return build(document)


def _plain(node: Any, depth: int = 0) -> Any:
    if depth > 8:
        raise InputError("a part nests at most 8 mappings")
    if isinstance(node, Mapping):
        return {str(key): _plain(value, depth + 1) for key, value in node.items()}
    return list(node) if isinstance(node, tuple) else node
