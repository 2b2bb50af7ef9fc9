"""Small YAML files from anywhere, such as tables of constants: plain values, bounded in every direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traces.base.errors import InputError, brief
from traces.base.files import need_regular

MAX_BYTES = 1 << 20
"""Constants of hardware take some kilobytes."""


MOST_LEVELS = 100
"""Of lists and mappings inside each other: far more than files have, far fewer than libyaml's recursion can stand."""


def is_too_deep(error: Exception) -> bool:
    """Whether libyaml itself found the text nested too deeply: from PyYAML 6.0.4 on, beyond a thousand levels."""
    return "nesting depth" in str(getattr(error, "problem", None))


def refuse_deep(text: str, loader: Any) -> None:
    """Raise ValueError for YAML nested too deeply, where libyaml's recursion would end the process."""
    import yaml

    if len(text) <= MOST_LEVELS:
        return
    level = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if level > MOST_LEVELS:
                break
        else:
            return
    except yaml.YAMLError as error:
        if not is_too_deep(error):
            raise
    raise ValueError(f"lists and mappings more than {MOST_LEVELS} levels deep")


def parse_yaml(text: str) -> Any:
    """Return the value of YAML text as `yaml.safe_load` does, whose errors are of many kinds: here ValueError alone.

    Aliases stand for one and the same object: whoever walks the value walks what they expand to, or a cycle.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        refuse_deep(text, loader)
        return yaml.load(text, Loader=loader)
    except (
        yaml.YAMLError, ValueError, TypeError, OverflowError, LookupError, AttributeError, RecursionError,
    ) as error:  # fmt: skip
        raise ValueError(getattr(error, "problem", None) or brief(error)) from error


def read_yaml(path: str | Path) -> Any:
    """Return the value of a YAML file, with `safe_load`'s meaning. Raises InputError naming the file.

    Aliases are refused: ten lines of them stand for a value of any size.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    need_regular(path)
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: more than {MAX_BYTES:,} bytes are no file of constants")
        text = Path(path).read_text("utf-8")
        refuse_deep(text, loader)  # first: deep texts take libyaml's scanner the square of their length
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise InputError(f"{path}: aliases (*{brief(ValueError(event.anchor))}) are not used in such files")
        return parse_yaml(text)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a YAML file ({brief(error)})") from None
