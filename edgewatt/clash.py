"""`traces` is also the name of an unrelated distribution: make sure that ours is the one Python finds."""

from __future__ import annotations

import importlib


def check_traces_package() -> str:
    """Return the folder of our `traces` package; raise with the way out if another one shadows it."""
    traces = importlib.import_module("traces")
    place = (getattr(traces, "__file__", None) or "unknown").removesuffix("__init__.py")
    if not getattr(traces, "__edgewatt__", False):
        raise SystemExit(
            f"edgewatt: the package 'traces' found at {place} is not edgewatt's: another distribution has that name.\n"
            "Mend it with:  pip uninstall traces; pip install --force-reinstall --no-deps edgewatt\n"
            "or install edgewatt in an environment of its own."
        )
    return place
