"""`quorate bearer-tokens`: the file of tokens by which a controller knows who asks."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.controller.identity.bearer_tokens import FILE_BYTES_MAX, BearerTokens, InvalidTokens, token_line
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import exposure
from quorate.scripts.terminal.tables import columns

app = typer.Typer(
    help="Give principals tokens, by which controllers with `access.authorizer = acl` know who asks.",
    no_args_is_help=True,
)

#: Random bytes of a token: as strong as the hash that is kept of it.
_TOKEN_BYTES: Final = 32

TokensPath = Annotated[
    Path, typer.Option("--file", metavar="FILE", help="The file that `access.tokens_file` names.", show_default=False)
]
TokenPrincipalName = Annotated[
    str,
    typer.Argument(
        metavar="TYPE:NAME", help="User:NAME, or Broker:ID (Broker:11,12 for a process that plays several)."
    ),
]


@app.command()
def add(principal: TokenPrincipalName, file: TokensPath) -> None:
    """Give a principal a new token, beside those it has. It is printed now and never again; the file has its hash.

    The file is made where there is none, for its owner alone. Copy it to every controller, which read it again by
    themselves. The token goes into a file for --secret-file, or a broker's `shared_secret_file`.

    Example: quorate bearer-tokens add User:ana --file tokens > ana.token
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    text = _read(file)
    line = token_line(token, principal)
    _write(file, text + ("" if not text or text.endswith("\n") else "\n") + f"{line}\n")
    sys.stdout.write(f"{token}\n")


@app.command(name="list")
def list_tokens(file: TokensPath) -> None:
    """Show which principals have tokens, with the beginning of each token's hash."""
    rows = [line.split(maxsplit=1) for line in _lines(_read(file))]
    sys.stdout.writelines(f"{row}\n" for row in columns([(who, hashed[:19]) for hashed, who in rows]))


@app.command()
def remove(principal: TokenPrincipalName, file: TokensPath) -> None:
    """Take all tokens of a principal away. They end within seconds on every controller that has the new file."""
    lines = _read(file).splitlines(keepends=True)
    kept = [line for line in lines if not _lines(line) or line.split(maxsplit=1)[1].strip() != principal]
    gone = len(lines) - len(kept)
    if not gone:
        raise InvalidTokens(f"{file}: {principal} has no token")
    _write(file, "".join(kept))
    sys.stdout.write(f"{principal} had {gone} token{'s' if gone > 1 else ''}\n")


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def _read(file: Path) -> str:
    """The text of the file, which is a good one; empty where there is none."""
    try:
        with file.open("rb") as opened:
            if (said := exposure(file, os.fstat(opened.fileno()))) is not None:
                raise InvalidSettings(f"--file {file} {said}")
            data = opened.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidSettings(f"--file {file} cannot be read: {error.strerror or error}") from error
    try:
        text = data.decode("utf-8")
        BearerTokens.parse(text)
    except (UnicodeDecodeError, InvalidTokens) as error:
        raise InvalidSettings(f"--file {file}: {error}") from error
    return text


def _write(file: Path, text: str) -> None:
    """The whole of the new file in the place of the old one: a controller that reads it now finds either."""
    BearerTokens.parse(text)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(file)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InvalidSettings(f"--file {file} cannot be written: {error.strerror or error}") from error
