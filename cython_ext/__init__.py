"""Compiled kernels: typed arrays in, integer counts out. Nothing but numpy and libc."""

import os

SIMD_LEVELS = ("baseline", "avx2", "avx512")

if os.environ.get("EDGEWATT_SIMD", "") not in ("", *SIMD_LEVELS):
    # The kernels would take a name they do not know for the machine's best level: a comparison would compare nothing.
    raise ValueError(
        f"EDGEWATT_SIMD is {os.environ['EDGEWATT_SIMD']!r}: it may be {', '.join(SIMD_LEVELS)}, or not be set at all"
    )
