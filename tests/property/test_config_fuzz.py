"""Hundreds of mutated configuration files: never a traceback, always a file, a line and a column."""

import random
import re
import sys
from pathlib import Path

import pytest
from fuzz import configurations
from fuzz.configurations import MUTATIONS, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.runs.plan import load_sweep
from traces.base.document import ConfigError
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


def test_a_slice_of_damaged_configurations_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, or run: see `python -m fuzz.configurations`."""
    monkeypatch.setattr(sys, "argv", ["fuzz.configurations", "60"])
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    assert configurations.main() == 0


@pytest.mark.parametrize("iterations", [2**32, 2**62])
def test_work_without_end_reports_and_can_be_stopped(iterations: int, tmp_path: Path) -> None:
    """As many steps as are asked for are a legal wish: progress is heard, and an exception out of it ends the run."""
    text = f"""network: {{generate: {{kind: random-layered, n_layers: 2, width: 6, density: 0.5}}}}
orderings: [{{kind: connection-reordering, iterations: {iterations}}}]
measure: io
"""
    file = tmp_path / "c.yaml"
    file.write_text(text)
    heard = []

    def listen(done: int, total: int | None, text: str) -> None:
        heard.append(text)
        if len(heard) > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ew.run(file, progress=listen)
    assert any("(0 %)" in text for text in heard), heard
    limited = ew.run(file, overrides=["search.time_limit_s=0.2"])
    assert limited[0].canonical["results"]["ordering"]["truncated"]
