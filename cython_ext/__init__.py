"""Compiled kernels: typed arrays in, integer counts out. Nothing but numpy and libc."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

SIMD_LEVELS = ("baseline", "avx2", "avx512")

if os.environ.get("EDGEWATT_SIMD", "") not in ("", *SIMD_LEVELS):
    # The kernels would take a name they do not know for the machine's best level: a comparison would compare nothing.
    raise ValueError(
        f"EDGEWATT_SIMD is {os.environ['EDGEWATT_SIMD']!r}: it may be {', '.join(SIMD_LEVELS)}, or not be set at all"
    )

_CHECKOUT = Path(__file__).resolve().parents[1]
HOW_TO_BUILD = f"build the kernels with:  cd {_CHECKOUT} && {sys.executable} setup.py build_ext --inplace"


class _NotBuilt:
    """The last finder to be asked: says how to build a kernel of which there is only the source, as after a pull."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name.startswith("cython_ext.") and _CHECKOUT.joinpath(*name.split(".")).with_suffix(".pyx").is_file():
            raise ModuleNotFoundError(f"{name} is not built; {HOW_TO_BUILD}", name=name)


sys.meta_path.append(_NotBuilt)
