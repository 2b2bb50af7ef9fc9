"""Words of our own that the field's have replaced stay away: as identifiers, in help, docs and messages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import edgewatt

ROOT = Path(edgewatt.__file__).parents[1]
PACKAGES = ("edgewatt", "reorder", "hwmodel", "traces")
IDENTIFIERS = {
    "_word", "_facts", "Shown", "sound", "_look", "_looked", "_looking", "beside_channel", "Before", "Course", "SAID",
    "still_windows", "BothOrder", "BothCosts", "JudgedOrders", "MachineJudge", "CONSTRUCTED", "SWEPT", "LOCAL_AGED",
    "STILL_FEWER", "SHORT_US", "FAR_TIME", "FAR_START", "ROOMS", "LATER", "HEADS", "HURRY", "WORTH", "GRACE_S",
    "ROLLED_COST", "BEYOND_S", "saves_up_to_here", "PayPoint", "Pays", "pays_machine", "order_pages", "judges",
    "load_beside", "_told", "MOST_LOOKED_AT", "MOST_TOLD", "PruneRequest",
}  # fmt: skip
KERNELS = {"ES_NOBODY", "ep_own", "ep_note", "edgewatt_tally", "edgewatt_cache_tally", "its_word", "ew_judge", "asks"}
"""Names that there were, with what they should be, when the glossary was written (docs/glossary.md)."""
IDENTIFIERS |= {
    "judge", "judged", "JUDGED", "said", "told", "beside", "hopeless", "roomy", "ROOMY", "looked", "quiet", "course",
    "places", "place_records", "by_place", "known_places", "key_places", "narrow_places", "Place", "asked", "wanted",
}  # fmt: skip
SENTENCES = (
    "may end earlier for it", "segments that are none", "answered right", "saves_up_to_here", "Of all orders",
    "Of each search", "Stop searching then", "right %",
)  # fmt: skip


def names_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.parametrize("package", PACKAGES)
def test_no_retired_name_is_an_identifier(package: str) -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in names_of(ast.parse(path.read_text()))
        if name in IDENTIFIERS
    }
    assert not found


def test_no_retired_name_is_left_in_compiled_code() -> None:
    files = [path for path in (ROOT / "cython_ext").rglob("*") if path.suffix in (".pyx", ".pxd", ".h")]
    retired = re.compile(rf"\b({'|'.join(sorted(IDENTIFIERS))})\b(?=\()")
    assert not [f"{path.name}: {found[0]}" for path in files if (found := retired.search(path.read_text()))]


def test_no_retired_name_is_in_a_kernel() -> None:
    files = [path for end in ("pyx", "pxd", "h") for path in (ROOT / "cython_ext").rglob(f"*.{end}")]
    retired = re.compile(rf"^(?!\s*(?:/?\*|#|\"))[^\"#*]*\b({'|'.join(sorted(KERNELS))})\b *[=(),;]", re.M)
    assert not [f"{path.relative_to(ROOT)}: {m[1]}" for path in files for m in retired.finditer(path.read_text())]


def test_no_retired_sentence_is_printed_or_documented() -> None:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    files += [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    files = [path for path in files if not {"_build", "generated"} & {*path.parts}]
    said = re.compile("|".join(map(re.escape, SENTENCES)))
    assert not [str(path) for path in files if path.is_file() and said.search(path.read_text())]
