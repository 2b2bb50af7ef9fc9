"""Build the compiled kernels: every cython_ext/*/*.pyx is one extension module.

EDGEWATT_DEBUG=1 builds with bounds, wraparound and initialisation checks on (see CONTRIBUTING.md); kernels therefore
never set those directives themselves.
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

DEBUG = os.environ.get("EDGEWATT_DEBUG", "") not in ("", "0")

extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[numpy.get_include(), "cython_ext"],
        depends=sorted(str(h) for f in (source.parent, Path("cython_ext/common")) for h in f.glob("*.h")),
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
        + ([("EDGEWATT_DEBUG", "1")] if DEBUG else [("NDEBUG", "1")]),
        # No fused multiply-adds: partial sums, and so the bytes on the wires, are the same on every machine.
        extra_compile_args=["-ffp-contract=off"] + (["-O1", "-g"] if DEBUG else ["-O3", "-fno-math-errno", "-g0"]),
    )
    for source in sorted(Path("cython_ext").glob("*/*.pyx"))
]

setup(
    packages=[
        *find_packages(include=["cython_ext*", "traces*", "hwmodel*", "reorder*", "edgewatt*"]),
        "edgewatt.configs",
    ],
    package_dir={"edgewatt.configs": "configs"},
    ext_modules=cythonize(
        extensions,
        nthreads=os.cpu_count() or 1,
        build_dir="build/cython-debug" if DEBUG else "build/cython",  # generated C differs: never share it
        annotate=bool(os.environ.get("EDGEWATT_ANNOTATE")),
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "initializedcheck": DEBUG,
            "cdivision": True,
            "embedsignature": True,
        },
    ),
)
