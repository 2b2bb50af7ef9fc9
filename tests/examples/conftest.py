"""What the tests of pages share."""

from collections.abc import Iterator

import pytest
from browser import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for the pages of a module."""
    browser = Browser()
    yield browser
    browser.close()
