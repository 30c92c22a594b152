"""`quorate deployment`: the files that come with the program for who runs it as a service."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from quorate.scripts.deployment.handing_out import KINDS, files_of, write_out
from quorate.scripts.terminal.output import reader_may_leave

app = typer.Typer(
    help="Units of systemd, a container file and manifests of Kubernetes: list them, and write them out.",
    no_args_is_help=True,
)

Kind = Annotated[str, typer.Argument(metavar="|".join(KINDS), show_default=False)]


@app.command("list")
def list_() -> None:
    """List the files there are.

    Example: quorate deployment list
    """
    with reader_may_leave():
        for kind, about in KINDS.items():
            sys.stdout.write(f"{kind}: {about}\n")
            sys.stdout.writelines(f"  {file.name}\n" for file in files_of(kind))


@app.command()
def write(
    kind: Kind,
    target: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Where they are written; made if missing.", show_default=False)
    ],
) -> None:
    """Write the files of one kind into a directory. What is there is never written over.

    They are meant to be read, changed and kept with your own settings: docs/deployment.md leads through them.

    Example: quorate deployment write systemd --to /etc/systemd/system
    """
    if kind not in KINDS:
        raise typer.BadParameter(f"{kind!r}: {', '.join(KINDS)}", param_hint="KIND")
    for path in write_out(kind, target):
        typer.echo(f"Wrote {path}")
