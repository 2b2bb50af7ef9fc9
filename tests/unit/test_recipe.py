"""The recipe and the citation say what the package says."""

import configparser
import re
from pathlib import Path

from edgewatt._version import __version__

ROOT = Path(__file__).parents[2]


def test_the_recipe_needs_what_the_package_needs() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    wanted = setup["options"]["install_requires"].split()
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = [line.replace("- ", "").replace(" ", "") for line in run.splitlines()]
    assert listed == [f"python{setup['options']['python_requires']}", *wanted]
    assert f'version = "{__version__}"' in recipe


def test_the_citation_is_of_this_version() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited is not None and cited[1] == __version__
