"""Shipped data files (configs/): found without importing the package that carries them."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from traces.base.errors import EdgewattError, unknown_name


@cache
def config_root() -> Path:
    """Return the folder of shipped configuration data: edgewatt/configs in a wheel, configs/ in a checkout.

    ``find_spec`` locates a top-level package without executing it, so lower layers may call this.
    """
    spec = importlib.util.find_spec("edgewatt")
    for location in spec.submodule_search_locations or () if spec else ():
        for candidate in (Path(location) / "configs", Path(location).parent / "configs"):
            if (candidate / "dram").is_dir():
                return candidate
    raise EdgewattError("the shipped configuration data (configs/) is missing: reinstall edgewatt")


def shipped_names(folder: str, suffix: str = ".yaml") -> list[str]:
    """Return the names (without suffix) of the shipped files in one folder of configs/, sorted."""
    return sorted(path.name[: -len(suffix)] for path in (config_root() / folder).glob(f"*{suffix}"))


def shipped_path(folder: str, name: str, suffix: str = ".yaml") -> Path:
    """Return the path of the shipped file ``configs/<folder>/<name><suffix>``.

    Raises InputError with a suggestion if there is none of that name.
    """
    names = shipped_names(folder, suffix)
    if name not in names:
        raise unknown_name(f"shipped {folder} file", name, names)
    return config_root() / folder / f"{name}{suffix}"
