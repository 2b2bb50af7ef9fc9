"""The notebook runs from top to bottom, and its numbers hang together."""

import os
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guides" / "first-sweep.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are made, not kept"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    outputs = [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert "(30, 30, {})" in outputs[2] and "(0, 30)" in outputs[3]
    assert sum("image/png" in output for output in outputs) == 2
    counts = {line.split()[0]: int(line.split()[1]) for line in notebook.cells[3].outputs[0].text.splitlines()}
    assert counts["bound"] <= counts["auto"] <= counts["two-optimal"]
    assert (tmp_path / "report.html").stat().st_size > 100_000
