"""edgewatt: for this sparse network and this memory system, what does the order of the work cost?

The names here are the stable façade; what else is public is in its namespaces `orders`, `wires`, `cache`, `dram`,
`operators`, `generators`, `results` and `config`. Each name loads its module on first use, so ``import edgewatt`` stays
cheap.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from edgewatt._version import __version__
from edgewatt.names import MOVED, SPACES, public

__getattr__, _names = public(__name__)
__all__ = ["__version__", *_names]


def __dir__() -> list[str]:
    return sorted((*__all__, *SPACES))


class _FacadeModule(ModuleType):
    """Keeps a function's name the function: importing the submodule of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and (name in _names or name in MOVED)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FacadeModule
