"""Sphinx configuration. The reference pages are generated from the code (docs/generate.py)."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generate  # noqa: E402

from edgewatt import __version__  # noqa: E402

generate.write(HERE / "generated")

project = "edgewatt"
author = "the edgewatt contributors"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "README.md"]
nb_execution_timeout = 300
nb_execution_mode = "force"  # a notebook is shown as it runs, or the build fails
nb_execution_raise_on_error = True
nb_execution_in_temp = True
html_theme = "furo"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
html_title = f"edgewatt {__version__}"
html_static_path = ["_static"] if (HERE / "_static").is_dir() else []
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "code"
nitpicky = False
suppress_warnings = ["myst.header"]
