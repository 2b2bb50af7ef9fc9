"""Which SIMD level the kernels may use on this machine, decided once at run time."""

cdef extern from "common/simd.h" nogil:
    int ew_simd_level()
    int EDGEWATT_DEBUG_BUILD


def simd_level() -> str:
    """Return 'avx512', 'avx2' or 'baseline' (also with EDGEWATT_SIMD=baseline or avx2 in the environment)."""
    return ("baseline", "avx2", "avx512")[ew_simd_level()]


def debug_build() -> bool:
    """Return whether the kernels were compiled with bounds checks on."""
    return bool(EDGEWATT_DEBUG_BUILD)
