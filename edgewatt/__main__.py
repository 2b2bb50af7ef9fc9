"""The command `edgewatt`, also as ``python -m edgewatt``."""

import sys


def main() -> None:
    """Load the command line and run it. Ctrl-C ends it with one line and status 130, also while it loads."""
    try:
        from edgewatt.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("edgewatt: interrupted\n")
        sys.exit(130)


def _as_module() -> None:
    from edgewatt.installation import ForeignTracesError, check_traces_package

    try:
        check_traces_package()
    except ForeignTracesError as error:
        sys.exit(f"edgewatt: {error}")
    from traces.base.subprocesses import forget_current_folder

    forget_current_folder()  # what the command line imports must not lie there
    main()


if __name__ == "__main__":
    _as_module()
