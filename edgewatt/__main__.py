"""``python -m edgewatt`` is the command `edgewatt`."""

import sys

from edgewatt.installation import ForeignTracesError, check_traces_package

try:
    check_traces_package()
except ForeignTracesError as error:
    sys.exit(f"edgewatt: {error}")

from traces.base.children import forget_current_folder

forget_current_folder()

from edgewatt.cli import main  # noqa: E402 - what it imports must not lie in the current folder

if __name__ == "__main__":
    main()
