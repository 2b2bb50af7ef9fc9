"""Build the compiled kernels: every cython_ext/*/*.pyx is one extension module.

What Cython writes into every module that takes arrays (two thirds of its C) is compiled once, as cython_ext.shared.
EDGEWATT_DEBUG=1 builds with bounds, wraparound and initialisation checks on, EDGEWATT_SANITIZE=address,undefined (or
thread) with the compiler's sanitizers (see CONTRIBUTING.md); kernels therefore never set those directives themselves.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import threading
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

DEBUG = os.environ.get("EDGEWATT_DEBUG", "") not in ("", "0")
SANITIZE = os.environ.get("EDGEWATT_SANITIZE", "")  # for -fsanitize=..., such as address,undefined or thread
SHARED = "cython_ext.shared"
MADE = Path("build/include")


def flags_for_branches() -> list[str]:
    """Return what keeps jumps off the borders of 32 bytes, where the compiler can.

    Processors of Intel from Skylake to Cascade Lake keep no decoded code for a jump on such a border (white paper
    "Mitigations for Jump Conditional Code Erratum", November 2019): there a kernel is up to a fifth slower, as chance
    puts its code.
    """
    if DEBUG or SANITIZE or platform.machine().lower() not in ("x86_64", "amd64"):
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


def list_members(folder: str, prefix: str, macro: str, out: Path) -> None:
    """Write a header that includes every PREFIX_*.h of a kernel folder and lists their names in a macro."""
    headers = sorted(Path("cython_ext", folder).glob(f"{prefix}_*.h"))
    names = " ".join(f"of({header.stem.removeprefix(prefix + '_')})" for header in headers)
    lines = [*(f'#include "{folder}/{header.name}"' for header in headers), f"#define {macro}(of) {names}", ""]
    if not out.exists() or out.read_text() != "\n".join(lines):  # a newer file would build its users again
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(lines))


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


class Modules(build_py):
    """What an earlier build left, of modules that are gone, does not get into a wheel."""

    def run(self) -> None:
        for package in ("traces", "hwmodel", "reorder", "edgewatt"):
            shutil.rmtree(Path(self.build_lib, package), ignore_errors=True)
        super().run()


class Kernels(build_ext):
    """Translates kernels to C and compiles them, one compiler a core, the longest first; says which one it is at."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1
        self.lock = threading.Lock()
        self.begun = self.stale = 0

    def run(self) -> None:
        if self.editable_mode:  # setuptools gives each editable install folders of its own, and compiles all again
            plain = self.distribution.get_command_class("build")(self.distribution)
            plain.ensure_finalized()
            self.build_lib, self.build_temp = plain.build_lib, plain.build_temp
        super().run()

    def build_extensions(self) -> None:
        list_members("cache/policies", "policy", "EDGEWATT_POLICIES", MADE / "cache/policies.h")
        print("kernels: Cython to C, where something changed", flush=True)
        branches = flags_for_branches()
        sources = {extension.name: Path(extension.sources[0]) for extension in self.extensions}
        made = cythonize(
            list(self.extensions),
            nthreads=self.parallel,
            build_dir="build/generated-debug" if DEBUG else "build/generated",  # generated C differs: never share it
            shared_utility_qualified_name=SHARED,
            annotate=bool(os.environ.get("EDGEWATT_ANNOTATE")),
            compiler_directives={
                "language_level": 3,
                "boundscheck": DEBUG,
                "wraparound": False,
                "initializedcheck": DEBUG,
                "cdivision": True,
                "allow_none_for_extension_args": False,
                "embedsignature": True,
                "warn.multiple_declarators": False,  # structs are declared as in their headers
            },
        )
        c_files = {extension.name: extension.sources for extension in made}
        for extension in self.extensions:
            extension.sources = c_files[extension.name]
            extension.depends = [] if extension.name == SHARED else headers(sources[extension.name])
            extension.extra_compile_args += branches
        # How long a compiler takes: most of what Cython writes is quickly compiled, unlike our own headers.
        self.extensions.sort(
            key=lambda e: -sum(map(os.path.getsize, e.sources)) - 10 * sum(map(os.path.getsize, e.depends))
        )
        self.stale = sum(map(self.is_stale, self.extensions))
        if not self.stale:
            print(f"kernels: all {len(self.extensions)} are up to date", flush=True)
        super().build_extensions()

    def is_stale(self, extension: Extension) -> bool:
        built = self.get_ext_fullpath(extension.name)
        return bool(self.force or newer_group(extension.sources + extension.depends, built, "newer"))

    def build_extension(self, extension: Extension) -> None:
        if self.is_stale(extension):
            with self.lock:
                self.begun += 1
                name = extension.name.removeprefix("cython_ext.").replace(".", "/")
                print(f"kernel {self.begun} of {self.stale}: {name}", flush=True)
        super().build_extension(extension)


def kernel(name: str, source: str) -> Extension:
    sanitizer = [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"] if SANITIZE else []
    return Extension(
        name,
        [source],
        include_dirs=[numpy.get_include(), "cython_ext", str(MADE)],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
        + ([("EDGEWATT_DEBUG", "1")] if DEBUG else [("NDEBUG", "1")]),
        # No fused multiply-adds: partial sums, and so the bytes on the wires, are the same on every machine.
        extra_compile_args=["-ffp-contract=off", "-Wno-psabi", "-Werror=implicit-function-declaration", *sanitizer]
        + (["-O1", "-g1"] if DEBUG or SANITIZE else ["-O3", "-fno-math-errno", "-g0"]),
        extra_link_args=sanitizer,
    )


setup(
    packages=[
        *find_packages(include=["cython_ext*", "traces*", "hwmodel*", "reorder*", "edgewatt*"]),
        "edgewatt.configs",
    ],
    package_dir={"edgewatt.configs": "configs"},
    cmdclass={"build_ext": Kernels, "build_py": Modules},
    ext_modules=[
        *(
            kernel(".".join(path.with_suffix("").parts), str(path))
            for path in sorted(Path("cython_ext").glob("*/*.pyx"))
        ),
        kernel(SHARED, "cython_ext/shared.c"),  # written by Cython into the build folder
    ],
)
