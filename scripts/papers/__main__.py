"""`python scripts/papers`: the papers' figures as sweeps, their printed claims beside ours."""

import sys
from pathlib import Path

# The folder above in place of this one, whose `statistics` would hide Python's.
HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parent), *(path for path in sys.path if Path(path).resolve() != HERE)]

from edgewatt.cli import main  # noqa: E402
from papers.command import app  # noqa: E402

if __name__ == "__main__":
    main(app)
