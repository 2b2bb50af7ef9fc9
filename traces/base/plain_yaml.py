"""Small YAML files from anywhere, such as tables of constants: plain values, bounded in every direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traces.base.errors import InputError, brief

MAX_BYTES = 1 << 20
"""Constants of hardware take some kilobytes."""


def read_yaml(path: str | Path) -> Any:
    """Return the value of a YAML file, with `safe_load`'s meaning. Raises InputError naming the file.

    Aliases are refused: ten lines of them stand for a value of any size.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: more than {MAX_BYTES:,} bytes are no file of constants")
        text = Path(path).read_text("utf-8")
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(f"{path}: aliases (*{brief(ValueError(event.anchor))}) are not used in such files")
        return yaml.load(text, Loader=loader)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path}: not a YAML file ({brief(error)})") from None
