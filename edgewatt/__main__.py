"""The command `edgewatt`, also as ``python -m edgewatt``."""

import sys


def main(*, as_module: bool = False) -> None:
    """Load the command line and run it. Ctrl-C ends it with one line and status 130, also while it loads."""
    from edgewatt.installation import ForeignTracesError, check_traces_package

    try:
        check_traces_package()
        if as_module:
            from traces.base.subprocesses import forget_current_folder

            forget_current_folder()  # what the command line imports must not lie there
        from edgewatt.cli import main as run

        run()
    except ForeignTracesError as error:
        sys.exit(f"edgewatt: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("edgewatt: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main(as_module=True)
