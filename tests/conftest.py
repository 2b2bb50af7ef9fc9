"""Shared fixtures."""

import os
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


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference data, or a skip that says how to get it used."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set EDGEWATT_REFERENCE to the folder of reference data to run this test")
    return Path(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the pages of a module."""
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
