"""``python -m edgewatt`` is the command `edgewatt`."""

from traces.base.children import forget_current_folder

forget_current_folder()

from edgewatt.cli import main  # noqa: E402 - what it imports must not lie in the current folder

if __name__ == "__main__":
    main()
