"""A small distribution of another author, installed by hand in a folder: modules and the metadata of entry points."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def write_distribution(folder: Path, name: str, version: str, modules: dict[str, str], entry_points: str) -> Path:
    """Write modules (name -> source) and the metadata of this version, in place of others'; return the folder."""
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)
    for other in folder.glob(f"{name}-*.dist-info"):
        shutil.rmtree(other)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)
    (info / "RECORD").write_text("")
    return folder


def run_with(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run this Python with `folder` on its path, where its distribution is found."""
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{root}"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, timeout=300
    )
