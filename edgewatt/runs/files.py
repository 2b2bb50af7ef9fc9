"""Files and DRAM parts named by their content, so that a point has the same name on any machine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from edgewatt.results.record import content_hash
from edgewatt.runs.model import FileIdentity
from traces.base.errors import InputError
from traces.base.files import need_regular

_PART_HASHES: dict[tuple[str, str, tuple[int, int] | None], str] = {}


def part_hash(path: str, overrides: Mapping[str, Any]) -> str:
    """Return the content hash of a part: its constants decide counts and energies, not the name of its file."""
    key = (
        path,
        content_hash(overrides) if overrides else "",
        _stamp(path) if path.endswith((".yaml", ".yml")) else None,
    )
    if key not in _PART_HASHES:
        _PART_HASHES[key] = content_hash(part_content(load_part_with(path, overrides)))
    return _PART_HASHES[key]


def load_part_with(part: str, overrides: Mapping[str, Any]) -> Any:
    """Return the DRAM part of that name or file with some of its fields replaced."""
    from hwmodel.dram.engine import load_part

    base = load_part(part)
    return load_part({"extends": part, "name": base.name, **overrides}) if overrides else base


def part_content(part: Any) -> dict[str, Any]:
    """Return all that a part says, as JSON values, without the wording of its sources."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            members = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
            return {f.name: plain(item) for f, item in members if not (f.metadata.get("later") and item == f.default)}
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, tuple | list) else value

    return {key: value for key, value in plain(part).items() if key not in ("constants", "note")}


def file_identity(path: str) -> dict[str, str]:
    """Return the name and content hash of a file, or of all files in a folder. Raises InputError if unreadable."""
    return {"name": Path(path).name, "sha256": _content(path, _stamp(path))}


def check_unchanged(files: tuple[FileIdentity, ...], paths: list[str]) -> None:
    """Raise InputError naming the file that is gone or has another content than the point was made for."""
    for path, wanted in zip(paths, files, strict=True):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file")
        if file_identity(path)["sha256"] != wanted.sha256:
            raise InputError(f"{path}: the file has changed since this configuration was read")


def _stamp(path: str) -> tuple[int, int]:
    need_regular(path)
    try:
        state = Path(path).stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=256)
def _content(path: str, stamp: tuple[int, int]) -> str:
    digest = hashlib.sha256()
    root = Path(path)
    files = sorted(p for p in root.rglob("*") if p.is_file()) if root.is_dir() else [root]
    try:
        for file in files:
            if len(files) > 1 or file != root:
                digest.update(f"{file.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return digest.hexdigest()
