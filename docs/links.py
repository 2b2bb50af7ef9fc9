"""Links of the built documentation: `python docs/links.py docs/_build/html` names every one that leads nowhere.

Pages, anchors and files must be there; addresses elsewhere are only read, since a build asks nothing of the network.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


class Page(HTMLParser):
    """The anchors and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and name in ("href", "src") and tag not in ("use", "form"):
                self.links.append(value)


def wrong_address(address: str) -> str | None:
    """Return what is wrong with an address elsewhere, by its form alone."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme != "https" and host != "www.w3.org":
        return "not https"
    if not _HOST.fullmatch(host) or port is not None or parts.username:
        return "no public host"
    if re.search(r"[\s<>\"{}|\\^`]", address) or address[-1] in ".,;:'":
        return "characters that no address has"
    return "brackets that do not pair" if address.count("(") != address.count(")") else None


def broken(folder: Path) -> list[str]:
    """Return 'page: link: what is wrong' for every link of the HTML pages in a folder that leads nowhere."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            if link.startswith(("http:", "https:", "//")):
                wrong = wrong_address(f"https:{link}" if link.startswith("//") else link)
            elif link.startswith(("data:", "mailto:")):
                wrong = None
            else:
                wrong = _wrong_inside(path, link, pages)
            if wrong:
                found.append(f"{path.relative_to(folder.resolve())}: {link}: {wrong}")
    return found


def _wrong_inside(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"no anchor {anchor!r} there"
    return None


def main(folder: str) -> None:
    """Print what is broken and exit with 1 if anything is."""
    if not list(Path(folder).rglob("*.html")):
        sys.exit(f"{folder}: no pages: build them first (make docs)")
    found = broken(Path(folder))
    if found:
        sys.exit("\n".join([*found, f"{len(found)} links lead nowhere"]))


if __name__ == "__main__":
    main(sys.argv[1])
