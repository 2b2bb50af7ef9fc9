"""The figures of the documentation are what its programs draw today."""

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
    for name in (path.stem for path in SHIPPED.iterdir()):
        head, found, _ = (ROOT / "docs" / "concepts" / f"{name}.md").read_text().partition("\n## The rules\n")
        assert found and "```python" in head and f"(../_static/figures/{name}.svg)" in head, name
