"""Entry of the `quorate` command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import typer

from metadata_log.errors import QuorateError
from scripts.cli import exit_codes
from scripts.lean_imports import import_lean

# Each command is imported when it is called: looking into a file must not wait for the libraries of a server.


def _log(app: typer.Typer) -> None:
    from scripts.cli import log

    app.add_typer(log.app, name="log")


def _image(app: typer.Typer) -> None:
    from scripts.cli import image

    app.add_typer(image.app, name="image")


def _status(app: typer.Typer) -> None:
    import_lean()
    from scripts.cli import status

    app.command()(status.status)


def _broker(app: typer.Typer) -> None:
    import_lean()
    from scripts.cli import broker

    app.command()(broker.broker)


def _controller(app: typer.Typer) -> None:
    import_lean()
    from scripts.cli import controller

    app.command()(controller.controller)


def _up(app: typer.Typer) -> None:
    import_lean()
    from scripts.cli import up

    app.command()(up.up)


#: By name, in the order of the help text.
_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "up": _up,
    "controller": _controller,
    "broker": _broker,
    "status": _status,
    "image": _image,
    "log": _log,
}


def _app(arguments: list[str]) -> typer.Typer:
    """The application with the command that is called, or with all of them where none is (`--help`, a misspelling)."""
    app = typer.Typer(
        name="quorate",
        help="A KRaft-style metadata controller: run it, look into it, rehearse on it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_keep_names)
    called = arguments[0] if arguments else ""
    for name in [called] if called in _COMMANDS else _COMMANDS:
        _COMMANDS[name](app)
    return app


def _keep_names() -> None:
    """Keep the name of a command necessary even where it is the only one that was imported."""


def main() -> None:
    """Run one command; errors that we raise on purpose become one sentence and an exit code."""
    try:
        # What is imported stays for as long as the process: the collector need not look at it, now or later.
        gc.disable()
        app = _app(sys.argv[1:])
        gc.freeze()
        gc.enable()
        app(prog_name="quorate")
    except QuorateError as error:
        sys.stderr.write(f"quorate: {error}\n")
        sys.exit(exit_codes.REFUSED)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    main()
