"""The command line. Command modules import only typer at the top; everything heavy loads inside the command."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from edgewatt.cli import checks, export, learn, listing, memory, order, order_tuples, prune, results, run, schedule
from edgewatt.cli.parts.arguments import CommandGroup
from edgewatt.cli.parts.output import plain, say

SECTIONS = {
    "Which order, and does it pay": ("run", "break-even", "init", "sweep", "optimize"),
    "Make an order": ("order", "order-tuples", "schedule", "arena", "learn"),
    "Fit a model to a memory": ("prune", "token"),
    "Look at results": ("report", "show", "compare", "collect", "rerun"),
    "Play traces": ("cache", "dram", "accelerator", "export", "part"),
    "Check and find": ("validate", "bench", "list", "doctor"),
}
"""Commands by what one wants to do, in the order of `edgewatt --help`."""


class _Sections(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        room = max(map(len, self.commands))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(room), self.commands[name].get_short_help_str(formatter.width - 6 - room))
                     for name in names]
                )  # fmt: skip


app = CommandGroup(
    cls=_Sections,
    name="edgewatt",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="For this sparse network and this memory system: what does the order of the work cost?",
    epilog="Start with:  edgewatt run quickstart",
)


def _version(requested: bool) -> None:
    if requested:
        from edgewatt._version import __version__

        say(f"edgewatt {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Take the options that come before a command."""


for module in (run, order, learn, order_tuples, prune, schedule, results, checks, export, memory, listing):
    module.add_to(app)


def _usable_streams() -> None:
    """Replace streams that a shell closed; what a terminal's encoding lacks becomes a question mark; no width of 0."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the end
        elif name == "stdout" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]


def main(command: typer.Typer = app) -> None:
    """Run a command line: exit status 2 on anything the user can mend, 130 on Ctrl-C, 1 on a failed run."""
    _usable_streams()
    try:
        from cython_ext import HOW_TO_BUILD  # checks what the environment says of the kernels, too
    except ValueError as error:
        sys.stderr.write(f"edgewatt: {error}\n")
        sys.exit(2)
    from traces.base.errors import EdgewattError, EdgewattWarning, InputError

    def shown(message: Warning | str, category: type[Warning], *location: object) -> None:
        if issubclass(category, EdgewattWarning):
            say(f"edgewatt: {message}", err=True)
        else:
            python(message, category, *location)  # type: ignore[arg-type]

    python = warnings.showwarning
    warnings.showwarning = shown  # type: ignore[assignment]
    try:
        _run(command)
    except EdgewattError as error:
        if os.environ.get("EDGEWATT_TRACEBACK"):
            traceback.print_exception(error)
        say(f"edgewatt: {error}", err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except MemoryError as error:
        say(f"edgewatt: {str(error) or 'there is not as much memory as this takes'}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone (`edgewatt ... | head`)
        sys.exit(141)
    except KeyboardInterrupt:
        sys.stderr.write("edgewatt: interrupted\n")
        sys.exit(130)
    except ImportError as error:
        if not (error.name or "").startswith("cython_ext."):
            raise
        text = str(error) if HOW_TO_BUILD in str(error) else f"{error}; {HOW_TO_BUILD}"  # built, but of other sources
        sys.stderr.write(f"edgewatt: {text}\n")
        sys.exit(1)
    except OSError as error:
        if error.filename is not None and error.errno in _NOT_OPENED:
            say(f"edgewatt: {error.filename}: cannot be opened ({error.strerror})", err=True)
            sys.exit(2)
        if error.errno not in _OUTPUT_FAILS:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in buffers goes nowhere, without a traceback
        sys.stderr.write(f"edgewatt: the output cannot be written ({error.strerror})\n")
        sys.exit(1)


_NOT_OPENED = (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG)
_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


_UsageError: Any = typer.BadParameter.__bases__[0]  # of the Click that Typer uses, wherever that lies


def _as_setting(error: Any) -> str:
    """Return how an unknown option is said that a configuration knows: ``--orderings`` is ``-s orderings=...``."""
    key = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
    command = getattr(getattr(error, "ctx", None), "command", None)
    if not any(parameter.name == "overrides" for parameter in getattr(command, "params", ())):
        return ""
    from edgewatt.config.models import RunConfig
    from traces.base.schema import keys_of

    return f": a configuration's key is set by -s {key}=..." if key in keys_of(RunConfig) else ""


def _run(command: typer.Typer) -> None:
    try:
        status = command(standalone_mode=False)
        if status == 130:
            raise KeyboardInterrupt  # which Typer made a status of
        if isinstance(status, int) and status:
            sys.exit(status)
    except _UsageError as error:  # it repeats words of the command line, which a shell may have taken from file names
        error.message = plain(error.message) + _as_setting(error)
        error.show()
        sys.exit(error.exit_code)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
