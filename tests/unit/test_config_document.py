"""YAML with positions: what is read, and that nothing a file holds can hurt."""

from pathlib import Path

import pytest

from traces.base.document import ConfigError, Document, Mark, parse_document, read_document


def test_values_and_marks() -> None:
    document = parse_document('a: {b: 1e-3, c: [1, "2", 1e4]}\nd: yes\ne:\n', "f.yaml")
    assert document.data == {"a": {"b": 0.001, "c": [1, "2", 10000]}, "d": "yes", "e": None}
    assert isinstance(document.data["a"]["c"][2], int)
    assert document.mark(("a", "c", 1)) == Mark("f.yaml", 1, 21)
    assert document.mark(("d",), key=True) == Mark("f.yaml", 2, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "f.yaml:2:1: key 'a' appears twice (first in line 1)"),
        ("a:\n  - [1,\nb: }", "f.yaml:3:4: not YAML"),
        ("a: \x00", "f.yaml:1:4: not YAML: a control character"),
        ("a: !!python/object:os.system x", "f.yaml:1:4: tags such as"),
        ("a: &a [*a]", "f.yaml:1:8: alias *a stands inside its own anchor"),
        ("a: *b", "f.yaml:1:4: alias *b has no anchor before it"),
        ("<<: {a: 1}", "f.yaml:1:1: merge keys"),
        ("? [1]\n: 2", "f.yaml:1:3: a key must be a word"),
        ("[" * 100000, "nested more than 32 levels deep"),
        ("", "f.yaml:1:1: the file is empty"),
        ("--- 1\n--- 2", "f.yaml:2:1: a second YAML document"),
        ("a: " + "9" * 5000, "is too long"),
        ('a: "\\q"', "f.yaml:1:5: not YAML"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "f.yaml")
    assert message in str(caught.value)


def test_alias_expansion_is_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(ConfigError, match=r"f.yaml:\d+:\d+: aliases expand to more than"):
        parse_document("\n".join(lines), "f.yaml")


def test_aliases_keep_their_origin() -> None:
    document = parse_document("a: &x {b: 1}\nc: *x", "f.yaml")
    assert document.data["c"] == {"b": 1} and document.data["c"] is not document.data["a"]
    assert document.mark(("c", "b")) == Mark("f.yaml", 1, 11)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin.yaml:2:7: byte 0xe9 is not UTF-8"):
        read_document(tmp_path / "latin.yaml")
    with pytest.raises(ConfigError, match="no such file"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="is a folder: name the YAML file in it"):
        read_document(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document("a\0b")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(tmp_path / "bom.yaml").data == {"a": 1}


def test_put() -> None:
    document = parse_document("a: {b: 1}\nc: [1, 2]\nd: 3", "f.yaml")
    new = Document({"x": 9}, {("x",): Mark("g", 1, 2)}, {(): Mark("g", 1, 1), ("x",): Mark("g", 1, 5)})
    document.put(("a", "b"), new)
    document.put(("e", "f"), new)
    document.put(("c", 1), new)
    assert document.data == {"a": {"b": {"x": 9}}, "c": [1, {"x": 9}], "d": 3, "e": {"f": {"x": 9}}}
    assert document.mark(("a", "b", "x")) == Mark("g", 1, 5)
    for place in (("d", "e"), ("c", 5), ("c", "x"), ("c", 7, "y")):
        with pytest.raises(ConfigError):
            document.put(place, new)
