"""Entry of the `quorate` command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

import typer

from metadata_log.errors import QuorateError
from scripts.cli import exit_codes
from scripts.lean_imports import import_lean_client, import_lean_server

# Looking into a file must not wait for the libraries of a server.


def _log(app: typer.Typer) -> None:
    from scripts.cli import log

    app.add_typer(log.app, name="log")


def _image(app: typer.Typer) -> None:
    from scripts.cli import image

    app.add_typer(image.app, name="image")


def _status(app: typer.Typer) -> None:
    import_lean_client()
    from scripts.cli import status

    app.command()(status.status)


def _broker(app: typer.Typer) -> None:
    import_lean_server()
    from scripts.cli import broker

    app.command()(broker.broker)


def _controller(app: typer.Typer) -> None:
    import_lean_server()
    from scripts.cli import controller

    app.command()(controller.controller)


def _up(app: typer.Typer) -> None:
    import_lean_client()
    from scripts.cli import up

    app.command()(up.up)


def _configs(app: typer.Typer) -> None:
    import_lean_client()
    from scripts.cli import configs

    app.add_typer(configs.app, name="configs")


def _features(app: typer.Typer) -> None:
    import_lean_client()
    from scripts.cli import features

    app.add_typer(features.app, name="features")


class _Command(NamedTuple):
    """A command that is imported when it is called."""

    add: Callable[[typer.Typer], None]
    #: What the list of commands says of it, which must not take the time to import them all.
    summary: str


#: By name, in the order of the help text.
_COMMANDS: Final = {
    "up": _Command(
        _up, "Start controllers and brokers on loopback, show the live status, and stop them in order at Ctrl-C."
    ),
    "controller": _Command(
        _controller,
        "Run one voter of the quorum: it agrees on the log, follows or decides, and serves the HTTP API.",
    ),
    "broker": _Command(
        _broker, "Play brokers: register, follow the metadata log, heartbeat, lead and follow without any data."
    ),
    "status": _Command(_status, "Show the verdict on a cluster, its controllers, brokers and offline partitions."),
    "configs": _Command(
        _configs, "Show and change the configs of topics, brokers, groups and client metrics subscriptions."
    ),
    "features": _Command(_features, "Show, raise and lower the levels of a cluster's features."),
    "image": _Command(_image, "The state that a log or a checkpoint adds up to."),
    "log": _Command(_log, "Look into metadata logs and checkpoints, Quorate's or Apache Kafka's."),
}


def _app(arguments: list[str]) -> typer.Typer:
    """The application with the command that is called, or with a list of all where none is (`--help`, misspellings)."""
    app = typer.Typer(
        name="quorate",
        help="A KRaft-style metadata controller: run it, look into it, rehearse on it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_keep_names)
    called = next((argument for argument in arguments if argument != "--"), "")
    if called in _COMMANDS:
        _COMMANDS[called].add(app)
    else:
        for name, command in _COMMANDS.items():
            app.command(name, help=command.summary)(_only_listed)
    return app


def _keep_names() -> None:
    """Keep the name of a command necessary even where it is the only one that was imported."""


def _only_listed() -> None:
    raise AssertionError("a command that is called is imported")


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
