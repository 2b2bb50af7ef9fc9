"""Every command and program of the documentation runs, and prints what the page says it prints.

A `python` block is run, the blocks of a page one after the other in one namespace; a `text` block right behind it is
what it prints. In a `console` block `$` stands before a command, what follows is its output. `...` stands for anything.
A block that does not run says why in a comment before it: `<!-- not run: needs a cluster -->`. Each page runs in a
folder of its own, with the files of the fixture `folder` in it.
"""

import contextlib
import doctest
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from checkpoints import llama
from typer.testing import CliRunner

from edgewatt.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "generated"} & set(p.parts))
PAGES = [ROOT / "README.md", *PAGES]
BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?```([^\n]*)\n(.*?)^```", re.S | re.M)
LANGUAGES = {"python", "console", "text", "yaml", "toml", "c"}
SAME = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass
class Block:
    line: int
    language: str
    text: str
    reason: str | None  # why it is not run
    end: int  # offset behind it


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = (Block(text.count("\n", 0, m.start()) + 1, m[2], m[3], m[1], m.end()) for m in BLOCK.finditer(text))
    return [block for block in found if not block.language.startswith("{")]


def told(page: Path, block: Block) -> str | None:
    """Return what a text block right behind `block` holds: the output that the page shows."""
    behind = page.read_text()[block.end :].lstrip("\n")
    return found[3] if (found := BLOCK.match(behind)) and found[2] == "text" else None


def test_every_block_says_what_it_is() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}:{block.line}: ```{block.language}: write one of {', '.join(sorted(LANGUAGES))}"
        for page in PAGES
        for block in blocks(page)
        if block.language not in LANGUAGES
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that a reader of the pages has: weights, inputs, a model, traces."""
    from model_files import make_tflite

    shutil.copytree(ROOT / "configs", tmp_path / "configs")  # no links: a page may write
    for name in ("net.npz", "mine.npz"):
        shutil.copy(tmp_path / "configs" / "examples" / "networks" / "digits_small.npz", tmp_path / name)
    for name, shape in {"fc1": (96, 64), "fc2": (10, 96), "weights": (64, 64)}.items():
        made = scipy.sparse.random(*shape, density=0.1, format="csr", random_state=1, dtype="float32")
        scipy.sparse.save_npz(tmp_path / f"{name}.npz", made)
    np.savez(tmp_path / "inputs.npz", inputs=np.random.default_rng(1).random((200, 64), np.float32))
    tensors = [("x", (1, 16)), ("a", (1, 64)), ("b", (1, 4)), ("y", (1, 4))]
    operators = [("ABS", [0], [1]), ("RELU", [0], [2]), ("ADD", [2, 2], [3])]
    (tmp_path / "model.tflite").write_bytes(make_tflite(operators, tensors, outputs=(1, 3)))
    lines = [f"0x{int(a):x} {'WRITE' if a % 3 == 0 else 'READ'} {4 * i}" for i, a in enumerate(np.arange(64) * 320)]
    (tmp_path / "trace.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(place: str, wanted: str | None, got: str) -> None:
    if wanted is not None and not SAME.check_output(wanted, got, FLAGS):
        example = doctest.Example("", wanted)
        raise AssertionError(f"{place} prints something else:\n{SAME.output_difference(example, got, FLAGS)}")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield (command, what the page shows of its output)."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        yield command, output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        if block.reason:
            continue
        if block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            check(place, told(page, block), out.getvalue())
        elif block.language == "console":
            for command, output in commands(block.text):
                name, *arguments = shlex.split(command, comments=True)
                assert name == "edgewatt", f"{place}: {name}: only edgewatt runs here; else say why it is not run"
                done = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
                assert done.exit_code == 0, f"{place}: {command}\n{done.output}{done.exception!r}"
                check(f"{place}: {command}", output or None, done.stdout)


def test_reasons_are_few_and_stated() -> None:
    skipped = [(page, block) for page in PAGES for block in blocks(page) if block.reason]
    assert all(len(block.reason or "") > 10 for _, block in skipped)
    run = [b for page in PAGES for b in blocks(page) if b.language in ("python", "console") and not b.reason]
    assert len(skipped) < len(run) / 3


def test_the_commands_of_the_readme_run(folder: Path) -> None:
    """The table of README: what stands in it works with what it names."""
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| [^|]* \|(.*)\|$", text, re.M)
    cells = [command for row in rows for command in re.findall(r"`(edgewatt [^`]*)`", row)]
    assert len(cells) >= 10
    (folder / "my.yaml").write_text("network: {file: net.npz}\norderings: [two-optimal]\n")
    (folder / "my-sweep.yaml").write_text("base: my.yaml\ngrid:\n  encoder: [raw, dbi-dc]\n")
    made = ["edgewatt order net.npz --memory 100 --method by-source -o order.npz", *cells]
    shutil.copy("weights.npz", "w.npz")
    llama(folder / "llama")
    for command in made:
        done = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": "80"})
        assert done.exit_code == 0, f"{command}\n{done.output}{done.exception!r}"
