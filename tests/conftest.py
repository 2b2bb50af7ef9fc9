"""Shared fixtures."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference data, or a skip that says how to get it used."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set EDGEWATT_REFERENCE to the folder of reference data to run this test")
    return Path(folder)
