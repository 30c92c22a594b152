"""Entry of the `quorate` command."""

from __future__ import annotations

import os
import sys

import typer

from metadata_log.errors import QuorateError
from scripts.cli import exit_codes, image, log

app = typer.Typer(
    name="quorate",
    help="A KRaft-style metadata controller: run it, look into it, rehearse on it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(log.app, name="log")
app.add_typer(image.app, name="image")


def main() -> None:
    """Run one command; errors that we raise on purpose become one sentence and an exit code."""
    try:
        app()
    except QuorateError as error:
        sys.stderr.write(f"quorate: {error}\n")
        sys.exit(exit_codes.REFUSED)
    except BrokenPipeError:
        # The reader of our output has had enough (`| head`): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(exit_codes.DONE)
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    main()
