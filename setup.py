"""Build the compiled kernels: every cython_ext/*/*.pyx is one extension module.

EDGEWATT_DEBUG=1 builds with bounds, wraparound and initialisation checks on, EDGEWATT_SANITIZE=address,undefined (or
thread) with the compiler's sanitizers (see CONTRIBUTING.md); kernels therefore never set those directives themselves.
"""

import os
import platform
import re
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

DEBUG = os.environ.get("EDGEWATT_DEBUG", "") not in ("", "0")
SANITIZE = os.environ.get("EDGEWATT_SANITIZE", "")  # for -fsanitize=..., such as address,undefined or thread
sanitizer = [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"] if SANITIZE else []


def flags_for_branches() -> list[str]:
    """Return what keeps jumps off the borders of 32 bytes, where the compiler can.

    Processors of Intel from Skylake to Cascade Lake keep no decoded code for a jump on such a border (white paper
    "Mitigations for Jump Conditional Code Erratum", November 2019): there a kernel is up to a fifth slower, as chance
    puts its code.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    compiler += shlex.split(sysconfig.get_config_var("CFLAGS") or "")  # may name several processors
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.c")
        source.write_text("")
        for flag in ("-mbranches-within-32B-boundaries", "-Wa,-mbranches-within-32B-boundaries"):  # Clang, GCC
            tried = [*compiler, "-Werror", flag, "-c", str(source), "-o", str(source.with_suffix(".o"))]
            try:
                if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
                    return [flag]
            except OSError:  # no such compiler: the build says so
                return []
    return []


BRANCHES = [] if DEBUG or SANITIZE else flags_for_branches()


def list_members(folder: str, prefix: str, macro: str, out: Path) -> None:
    """Write a header that includes every PREFIX_*.h of a kernel folder and lists their names in a macro."""
    headers = sorted(Path("cython_ext", folder).glob(f"{prefix}_*.h"))
    names = " ".join(f"of({header.stem.removeprefix(prefix + '_')})" for header in headers)
    lines = [*(f'#include "{folder}/{header.name}"' for header in headers), f"#define {macro}(of) {names}", ""]
    if not out.exists() or out.read_text() != "\n".join(lines):  # a newer file would build its users again
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(lines))


MADE = Path("build/include")
list_members("cache/policies", "policy", "EDGEWATT_POLICIES", MADE / "cache/policies.h")
list_members("cache/prefetchers", "prefetch", "EDGEWATT_PREFETCHERS", MADE / "cache/prefetchers.h")


def headers(source: Path) -> list[str]:
    """Return the headers that a kernel includes, however deep: it is built again when one of them changes."""
    own = {source.with_suffix(".pxd")} if source.with_suffix(".pxd").exists() else set()  # no line names it
    found: set[Path] = set(own)
    waiting = [source, *own]
    while waiting:
        text = waiting.pop().read_text()
        names = re.findall(r'(?:#include|extern from) "([^"]+)"', text)
        names += [f"{name.replace('.', '/')}.pxd" for name in re.findall(r"from cython_ext\.([\w.]+) cimport", text)]
        ours = {folder / name for name in names for folder in (Path("cython_ext"), MADE) if (folder / name).exists()}
        waiting += ours - found
        found |= ours
    return sorted(map(str, found))


extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[numpy.get_include(), "cython_ext", str(MADE)],
        depends=headers(source),
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
        + ([("EDGEWATT_DEBUG", "1")] if DEBUG else [("NDEBUG", "1")]),
        # No fused multiply-adds: partial sums, and so the bytes on the wires, are the same on every machine.
        extra_compile_args=["-ffp-contract=off", "-Wno-psabi", *sanitizer]
        + (["-O1", "-g1"] if DEBUG or SANITIZE else ["-O3", "-fno-math-errno", "-g0", *BRANCHES]),
        extra_link_args=sanitizer,
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
            "warn.multiple_declarators": False,  # structs are declared as in their headers
        },
    ),
)
