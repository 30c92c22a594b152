"""Options by which a command is told which controllers to ask, and what of: the same ones in every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.scripts.logins.cluster_variables import (
    CONTROLLERS_VARIABLE,
    DIRECTORY_VARIABLE,
    PRINCIPAL_VARIABLE,
    SECRET_VARIABLE,
)
from quorate.snapshots.checkpoints.moments import InvalidMoment, parse_moment

Controllers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,...",
        envvar=CONTROLLERS_VARIABLE,
        help="HTTP addresses of controllers, or unix:PATH of their sockets; one that answers is enough. "
        "Default: those of the context in use, or of the local cluster.",
        show_default=False,
    ),
]
LocalDirectory = Annotated[
    Path,
    typer.Option("--dir", envvar=DIRECTORY_VARIABLE, help="The directory of a local cluster of `quorate up`."),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        envvar=SECRET_VARIABLE,
        help="File with the controllers' shared secret, or with the token of who asks. To log in with a password: "
        "quorate login, or QUORATE_USER and QUORATE_PASSWORD_FILE in the environment.",
        show_default=False,
    ),
]
Principal = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE:NAME",
        envvar=PRINCIPAL_VARIABLE,
        help="In whose name to ask, such as User:ana.",
        show_default=False,
    ),
]


def _moment(text: str | None) -> str | None:
    if text is not None:
        try:
            parse_moment(text)
        except InvalidMoment as error:
            raise typer.BadParameter(str(error)) from None
    return text


def files_not_address(path: Path | None) -> Path | None:
    """Refuse an address where files are read: as a path it would not be there, and that says nothing.

    Raises:
        typer.BadParameter: it is one.
    """
    if path is not None and path.parts[:1] in (("http:",), ("https:",)):
        raise typer.BadParameter(
            f"{path.parts[0]}//{'/'.join(path.parts[1:])} is an address, and files are read here: say the path of a "
            "metadata directory, a segment or a checkpoint; those of a running controller lie on its machine"
        )
    return path


FromPath = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="PATH",
        help="Ask no controller: read a metadata directory, a segment or a checkpoint.",
        callback=files_not_address,
        show_default=False,
    ),
]
AtMoment = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="OFFSET|TIME|epoch:N",
        help="The state at an offset, after the last batch not later than a time (2026-01-31T12:00:00Z), or at the end "
        "of an epoch.",
        callback=_moment,
        show_default=False,
    ),
]
