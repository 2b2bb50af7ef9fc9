"""Vega, Vega-Lite and vega-embed, which draw the charts of a page."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.util import find_spec

from traces.base.errors import EdgewattError, MissingExtraError

_BUNDLE = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: it ends with who asked, also while it bundles
import vl_convert
try:
    sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())
    sys.stdout.flush()
except BrokenPipeError:  # who asked was ended
    os._exit(1)
"""


def need_charts() -> None:
    """Raise MissingExtraError where no chart can be drawn: before hours of work for a page of them."""
    if find_spec("vl_convert") is None:
        raise MissingExtraError("vl-convert-python", "report")


@cache
def libraries() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script. Raises MissingExtraError without the extra `report`."""
    need_charts()
    # In a process of its own: bundling takes 150 MB, which this one would never give back.
    # In a group of its own: Ctrl-C is for this process, which ends the other.
    made = subprocess.run([sys.executable, "-P", "-c", _BUNDLE], stdout=subprocess.PIPE, check=False, process_group=0)
    if made.returncode:
        raise EdgewattError("vl-convert-python cannot give the scripts of a page's charts: install it again")
    script = made.stdout.decode()
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
