"""Hundreds of mutated configuration files: never a traceback, always a file, a line and a column."""

import random
import re
from pathlib import Path

import pytest
from fuzz.configurations import MUTATIONS, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewatt.config import ConfigError
from edgewatt.sweeps.plan import load_sweep
from traces.base.resources import config_root

pytestmark = pytest.mark.application

EXAMPLES = sorted((config_root() / "examples").glob("*.yaml"))
PLACED = re.compile(r".+:\d+:\d+: .+")


def check(text: str, folder: Path, name: str) -> bool:
    """Return whether the text is refused; refuse it any other way than with a place, and the test fails."""
    file = folder / name
    file.write_text(text, encoding="utf-8", newline="")
    try:
        load_sweep(file)
    except ConfigError as error:
        for line in str(error).splitlines():
            assert PLACED.fullmatch(line), line
        return True
    finally:
        file.unlink()
    return False


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_mutated_examples(example: Path, tmp_path: Path) -> None:
    """100 mutants of each example, in a copy of its folder (links to the networks and other examples)."""
    for other in example.parent.iterdir():
        (tmp_path / other.name).symlink_to(other)
    pick = random.Random(example.stem)
    refused = 0
    for _ in range(100):
        lines = example.read_text().splitlines()
        for _ in range(pick.choice((1, 1, 2, 3))):
            pick.choice(MUTATIONS)(lines, pick)
            lines = lines or [""]
        refused += check("\n".join(lines), tmp_path, "mutant.yaml")
    assert refused >= 20, "the mutations hardly break anything"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200) | st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join))
def test_arbitrary_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    check(text.encode("utf-8", "replace").decode(), tmp_path_factory.getbasetemp(), "text.yaml")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "bytes.yaml"
    file.write_bytes(data)
    with pytest.raises(ConfigError):
        load_sweep(file)
