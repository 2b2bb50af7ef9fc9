"""Data files: shipped ones (configs/), and those of other distributions, found without importing what carries them.

Another distribution's file NAME.yaml is named by an entry point NAME of the folder's group, whose value is the package
that the file lies in.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path

from traces.base.errors import EdgewattError, unknown_name
from traces.base.registry import Origin, origin_of


@cache
def config_root() -> Path:
    """Return the folder of shipped configuration data: edgewatt/configs in a wheel, configs/ in a checkout."""
    spec = importlib.util.find_spec("edgewatt")
    for location in spec.submodule_search_locations or () if spec else ():
        for candidate in (Path(location) / "configs", Path(location).parent / "configs"):
            if (candidate / "dram").is_dir():
                return candidate
    raise EdgewattError("the shipped configuration data (configs/) is missing: reinstall edgewatt")


GROUPS = {
    "dram": "edgewatt.parts", "cache": "edgewatt.caches", "bus": "edgewatt.buses", "systems": "edgewatt.systems",
    "onchip": "edgewatt.technologies", "sweeps": "edgewatt.runs",
}  # fmt: skip
"""Folder of configs/ -> entry points of other distributions' files of that kind."""


@cache
def outside_files(folder: str) -> dict[str, tuple[Path, Origin]]:
    """Return name -> file and origin of the files that other distributions add to a folder; ours win."""
    from importlib.metadata import entry_points

    files: dict[str, tuple[Path, Origin]] = {}
    for point in entry_points(group=GROUPS[folder]) if folder in GROUPS else ():
        try:
            spec = importlib.util.find_spec(point.module)
        except ImportError:
            continue
        for location in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(location) / f"{point.name}.yaml"
            if path.is_file():
                files[point.name] = path, origin_of(point)
    return files


def shipped_names(folder: str, suffix: str = ".yaml") -> list[str]:
    """Return the names (without suffix) of the files in one folder of configs/, sorted, other distributions' too."""
    ours = {path.name[: -len(suffix)] for path in (config_root() / folder).glob(f"*{suffix}")}
    return sorted(ours | (outside_files(folder).keys() if suffix == ".yaml" else set()))


def shipped_path(folder: str, name: str, suffix: str = ".yaml") -> Path:
    path = config_root() / folder / f"{name}{suffix}"
    plain = "/" not in name and "\\" not in name and len(name) < 200  # as long as a file's name may be
    if plain and path.is_file():  # without a look at all the others
        return path
    names = shipped_names(folder, suffix)
    if name not in names:
        name = name.lower()
    if name not in names:
        raise unknown_name(f"shipped {folder} file", name, names)
    path = config_root() / folder / f"{name}{suffix}"
    return path if path.exists() else outside_files(folder)[name][0]


def network_file(name: str, folder: str | Path = "") -> str:
    """Return the path of the shipped network that a name without suffix means, unless a file of that name is there."""
    shipped = "examples/networks"
    if Path(name).suffix or os.path.lexists(Path(folder, name)) or name not in shipped_names(shipped, ".npz"):
        return name
    return str(shipped_path(shipped, name, ".npz"))
