"""Photograph a page as the tutorial shows it: python docs/figures/screenshot.py report.html docs/_static/report.png"""

import base64
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from browser import Browser  # lies among the tests


def main(source: str, target: str, width: int = 1280, height: int = 1000) -> None:
    """Write the top of a page as PNG. Needs Chromium."""
    browser = Browser()
    try:
        with browser.page(Path(source).resolve(), width, height) as page:
            page.wait("document.body.dataset.drawn")
            time.sleep(1)
            picture = browser.call("Page.captureScreenshot", page.session, format="png")
        Path(target).write_bytes(base64.b64decode(picture["data"]))
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:3])
