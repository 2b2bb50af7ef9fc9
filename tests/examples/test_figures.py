"""The figures of the documentation are what its programs draw today."""

import configparser
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "docs" / "_static" / "figures"


def test_figures_are_up_to_date(tmp_path: Path) -> None:
    code = f"import sys; sys.path[:0] = [r'{ROOT / 'docs' / 'figures'}', r'{ROOT}']; import runpy\n"
    code += "from pathlib import Path\n"
    code += f"runpy.run_path(r'{ROOT / 'docs' / 'figures' / '__main__.py'}')['main']([], Path(r'{tmp_path}'))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made.keys() == {path.name for path in SHIPPED.iterdir()}
    stale = [name for name, text in made.items() if text != (SHIPPED / name).read_text()]
    assert not stale, f"{', '.join(stale)}: write them again with  python docs/figures"


def test_every_concept_begins_with_an_example_and_its_figure() -> None:
    figures = {path.stem for path in SHIPPED.iterdir()}
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "concepts").glob("*.md")}
    assert pages.keys() <= figures | {"architecture"}, "the map draws itself in text, everything else has a figure"
    for name in figures - pages.keys():  # a second figure of a page
        assert any(f"(../_static/figures/{name}.svg)" in page for page in pages.values()), name
    for name in figures & pages.keys():
        head, found, _ = pages[name].partition("\n## The rules\n")
        assert found and "```python" in head and f"(../_static/figures/{name}.svg)" in head, name
    head, found, _ = pages["architecture"].partition("\n## Rooms\n")
    assert found and "## An example" in head and "```python" in head and "cython_ext      kernels" in head


def test_concepts_stand_in_the_order_of_the_pipeline() -> None:
    """The index leads three readers through the pages, and lists every concept once, from the work to the machine."""
    index = (ROOT / "docs" / "index.md").read_text()
    listed = re.findall(r"^concepts/(\S+)$", index, re.M)
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs" / "concepts").glob("*.md"))
    pipeline = ["networks", "orderings", "io-model", "traces", "caches", "encoders", "dram", "records"]
    assert [name for name in listed if name in pipeline] == pipeline
    assert "(_static/flow.svg)" in index
    for reader in ("computer architect", "compiler", "embedded"):
        assert re.search(rf"\*\*[^|]*{reader}|{reader}\*\*", index), reader


def test_every_extra_and_command_is_documented() -> None:
    """The table of extras is setup.cfg's; quickstart installs those the page says; each command has its reference."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    page = (ROOT / "docs" / "install.md").read_text()
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == sorted(settings["options.extras_require"])
    quickstart = (ROOT / "Makefile").read_text().partition("$(VENV)/.installed:")[2].partition("touch")[0]
    assert "--no-build-isolation -e .)" in quickstart and "without any extra" in " ".join(page.split())
    paths = [str(ROOT / "docs"), str(ROOT)]
    code = f"import sys; sys.path[:0] = {paths!r}; import commands; print(commands.commands())"
    reference = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    from edgewatt.cli import app

    names = [c.name or c.callback.__name__.replace("_", "-") for c in app.registered_commands]  # type: ignore[union-attr]
    assert len(names) > 20 and not [name for name in names if f"edgewatt {name}" not in reference]
