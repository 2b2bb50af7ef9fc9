"""``python -m edgewatt`` is the command `edgewatt`."""

from edgewatt.cli import main

if __name__ == "__main__":
    main()
