"""Links of the documentation: files and anchors are there, addresses elsewhere have the form of one, paths exist."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from links import broken, wrong_address  # noqa: E402

PAGES = sorted(ROOT.glob("*.md")) + sorted(p for p in DOCS.rglob("*.md") if not {"_build", "generated"} & set(p.parts))
NOTEBOOKS = sorted(DOCS.glob("guides/*.ipynb"))
LINK = re.compile(
    r"\]\(\s*<?([^)>\s]*)>?(?:\s+\"[^\"]*\")?\s*\)|<(https?://[^>\s]*)>|(?<![(<\"'])(https?://[^\s)>`\"']+)"
)

TALES = {"CHANGELOG.md", "extending.md", "test_extending.py"}  # of files that have gone, or that a reader writes


def words(path: Path) -> str:
    """The text of a page without its code."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text())["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = path.read_text()
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(```+|:::+)[^\n]*\n.*?^\1\s*$", "", text, flags=re.S | re.M))


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```\s*$", "", path.read_text(), flags=re.S | re.M)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", text, re.M):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        k = 1
        name = slug
        while name in found:
            name, k = f"{slug}-{k}", k + 1
        found.add(name)
    return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference pages, which are made from the code when the documentation is built."""
    folder = tmp_path_factory.mktemp("generated")
    code = f"import sys; sys.path[:0] = [{str(DOCS)!r}, {str(ROOT)!r}]; import generate; from pathlib import Path; "
    subprocess.run([sys.executable, "-c", f"{code}generate.write(Path({str(folder)!r}))"], check=True)
    return folder


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path, generated: Path) -> None:
    wrong = []
    for match in LINK.finditer(words(page)):
        link = (match[1] or match[2] or match[3] or "").rstrip(".,;")
        if link.startswith("http"):
            said = wrong_address(link)
        elif not link or link.startswith("mailto:"):
            continue
        else:
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if target.parent == DOCS / "generated":
                target = generated / target.name
            said = None if target.exists() else "no such file"
            if said is None and anchor and target.suffix == ".md" and anchor not in anchors(target):
                said = f"no heading {anchor!r} there"
        if said:
            wrong.append(f"{page.relative_to(ROOT)}: {link}: {said}")
    assert not wrong, "\n".join(wrong)


def test_paths_that_pages_and_programs_name_are_there() -> None:
    """What docstrings and pages name under docs, scripts, tests and configs is there."""
    named = re.compile(
        r"(?<![\w/.-])((?:docs|scripts|tests|configs)/[\w./-]*[\w-]\.(?:md|py|yaml|ipynb|csv|npz|css|js|html))\b"
    )
    sources = [*PAGES, *(p for top in ("edgewatt", "traces", "hwmodel", "reorder", "cython_ext", "scripts", "tests")
                         for p in (ROOT / top).rglob("*") if p.suffix in (".py", ".pyx", ".pxd", ".h"))]  # fmt: skip
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        if path.name not in TALES
        for name in named.findall(path.read_text())
        if not (ROOT / name).exists() and "NAME" not in name
    }
    assert not missing, "\n".join(sorted(missing))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://doi.org/10.1145/3373376.3378534", None), ("https://en.wikipedia.org/wiki/Trace_(algebra)", None),
        ("http://example.org", "not https"), ("https://localhost/x", "no public host"),
        ("https://exa mple.org", "no public host"),
        ("https://example.org/a.", "characters"), ("https://example.org/(a", "do not pair"),
        ("https://example.org:99999", "out of range"), ("https://example.org:80/x", "no public host"),
    ],
)  # fmt: skip
def test_addresses_are_read_by_their_form(address: str, said: str | None) -> None:
    found = wrong_address(address)
    assert (found is None) == (said is None) and (said or "") in (found or ""), found


def test_built_pages_with_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#there">1</a><a href="#top">2</a><img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html">1</a><a href="a.html#no">2</a><a href="https://x">3</a>')
    assert broken(tmp_path) == [
        "a.html: b.html#there: no anchor 'there' there", "a.html: c.png: no such file",
        "b.html: a.html#no: no anchor 'no' there", "b.html: https://x: no public host",
    ]  # fmt: skip
