"""Shared fixtures."""

import itertools
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from hypothesis import settings

# A red run must be the fault of the change it judges: examples are the same in every run, unless one explores.
# No deadline for one example: machines are busy, and sanitizers slow.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


ROOT = Path(__file__).parents[1]
os.environ["XDG_CACHE_HOME"] = str(ROOT / "build" / "cache")  # what tests keep there is nobody else's
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def _folders_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the folders that tests start in."""
    yield tmp_path_factory.mktemp("places")
    os.chdir(ROOT)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(_folders_of_tests: Path) -> None:
    """What a test or its commands write by a relative name lands outside the repository; `configs` is in reach."""
    own = _folders_of_tests / str(next(_NUMBERS))
    own.mkdir()
    (own / "configs").symlink_to(ROOT / "configs", target_is_directory=True)
    os.chdir(own)


def changes() -> str:
    """Return what git sees changed in the checkout, or nothing where it is none."""
    asked = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout


BEFORE = changes()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A suite that leaves anything in the checkout is red."""
    if not hasattr(session.config, "workerinput") and (after := changes()) != BEFORE:
        print(f"\nthe tests changed the checkout; before:\n{BEFORE}after:\n{after}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference data, or a skip that says how to get it used."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no reference data: set EDGEWATT_REFERENCE")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the pages of all tests; each page is a target of its own."""
    browser = Browser()
    yield browser
    browser.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples and hostile files are whole commands, whatever a test of theirs says."""
    for item in items:
        if item.path.parent.name in ("examples", "fuzz"):
            item.add_marker(pytest.mark.application)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once for each reason how many tests could not run."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.line(f"skipped {count}: {reason}")
