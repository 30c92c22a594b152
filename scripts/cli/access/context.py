"""`quorate context`: clusters by name, so that no command has to be told addresses and files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from quorate.scripts.logins.kept_contexts import (
    CONTEXTS_MAX,
    KeptContext,
    contexts_file,
    read_contexts,
    write_contexts,
)
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.places.controllers import full_urls
from quorate.scripts.terminal.programs.failures import Failed
from quorate.scripts.terminal.requesting import make
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Name clusters, and use one of them in all commands.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of a context, as prod.", show_default=False)]
KeptName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Of a context.", autocompletion=completed_by(NameKind.CONTEXTS), show_default=False
    ),
]
Addresses = Annotated[
    str | None,
    typer.Option("--controllers", metavar="HOST:PORT,...", help="HTTP addresses of controllers.", show_default=False),
]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Or a local cluster of `quorate up`.", show_default=False),
]
CaFiles = Annotated[
    list[Path] | None, typer.Option("--ca-file", metavar="FILE", help="A CA to trust, PEM; again for each.")
]
CertFile = Annotated[Path | None, typer.Option("--cert-file", metavar="FILE", help="A certificate to show, PEM.")]
KeyFile = Annotated[Path | None, typer.Option("--key-file", metavar="FILE", help="Its key, PEM.")]
SecretFile = Annotated[Path | None, typer.Option("--secret-file", metavar="FILE", help="A secret or token.")]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who logs in, with a password.")]
PasswordFile = Annotated[Path | None, typer.Option("--password-file", metavar="FILE", help="The password.")]


class ContextsReply(BaseModel):
    """In the output for programs."""

    model_config = ConfigDict(frozen=True)

    current: str | None
    contexts: tuple[KeptContext, ...]


@app.command()
def add(
    name: Name,
    addresses: Addresses = None,
    directory: Directory = None,
    ca_file: CaFiles = None,
    cert_file: CertFile = None,
    key_file: KeyFile = None,
    secret_file: SecretFile = None,
    user: User = None,
    password_file: PasswordFile = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Send secrets without TLS to other machines.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="In the place of the one of this name.")] = False,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
) -> None:
    """Keep a cluster under a name: where its controllers are, and who asks there.

    Files are named, not copied: what is secret stays where it is. In a command the context takes the place of all that
    the environment says of controllers, certificates, secrets and users. Who logs in with `quorate login` needs no user
    here: the login is found by the controllers.

    Examples:

      quorate context add prod --controllers c1.example:8080,c2.example:8080 --ca-file ca.pem --use

      quorate context add twin --dir var-twin
    """
    if (addresses is None) == (directory is None):
        raise typer.BadParameter("say where the cluster is: --controllers, or --dir")
    _check_who(cert_file, key_file, secret_file, user, password_file)
    if addresses is not None:
        full_urls([part for part in addresses.split(",") if part.strip()] or [addresses])
    made = make(
        KeptContext, name=name, controllers=addresses, directory=_absolute(directory),
        ca_files=",".join(str(_absolute(one)) for one in ca_file or ()) or None, cert_file=_absolute(cert_file),
        key_file=_absolute(key_file), secret_file=_absolute(secret_file), user=user,
        password_file=_absolute(password_file), insecure=insecure,
    )  # fmt: skip
    _keep(made, replaces=replace, is_used=use)
    said = "Commands are about it now." if use else f"To use it: quorate context use {name}"
    typer.echo(f"Context {name} is kept in {contexts_file()}. {said}")


def _check_who(
    cert_file: Path | None, key_file: Path | None, secret_file: Path | None, user: str | None, password: Path | None
) -> None:
    if (cert_file is None) != (key_file is None):
        raise typer.BadParameter("a certificate and its key belong together: --cert-file and --key-file")
    if (user is None) != (password is None):
        raise typer.BadParameter("a user and his password belong together: --user and --password-file")
    if sum(one is not None for one in (cert_file, secret_file, user)) > 1:
        raise typer.BadParameter("who asks is one thing: a certificate, a secret file or a user")


def _keep(made: KeptContext, *, replaces: bool, is_used: bool) -> None:
    kept = read_contexts()
    others = [one for one in kept.contexts if one.name != made.name]
    if len(others) < len(kept.contexts) and not replaces:
        raise Failed(f"there is a context {made.name} already: say --replace, or another name")
    if len(others) == CONTEXTS_MAX:
        raise Failed(f"there are {CONTEXTS_MAX} contexts, the most: remove some")
    current = made.name if is_used else kept.current
    write_contexts(kept.model_copy(update={"current": current, "contexts": (*others, made)}))


@app.command()
def use(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Of a context.", autocompletion=completed_by(NameKind.CONTEXTS), show_default=False
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No context: the local cluster in ./var, as at first.")] = False,
) -> None:
    """Use a context in all commands that do not say another cluster.

    --context, --controllers or --dir in a command, and QUORATE_CONTEXT, QUORATE_CONTROLLERS or QUORATE_DIR in its
    environment, go before it.

    Example: quorate context use prod
    """
    if (name is None) != none:
        raise typer.BadParameter("say which context: a NAME, or --none")
    kept = read_contexts()
    current = None if name is None else kept.named(name).name
    write_contexts(kept.model_copy(update={"current": current}))
    typer.echo("No context is in use." if current is None else f"Commands are about {current} now.")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the contexts; the one in use has a star.

    Example: quorate context list
    """
    kept = read_contexts()
    rows = [("", "NAME", "CLUSTER", "WHO")]
    rows += [
        ("*" if one.name == kept.current else "", one.name, one.controllers or one.directory or "", _who(one))
        for one in kept.contexts
    ]
    lines = columns(rows) if kept.contexts else ["There are no contexts."]
    show(ContextsReply(current=kept.current, contexts=kept.contexts), lines, as_json=as_json)


@app.command()
def remove(name: KeptName) -> None:
    """Forget a context. The files that it names stay.

    Example: quorate context remove prod
    """
    kept = read_contexts()
    gone = kept.named(name)
    left = tuple(one for one in kept.contexts if one is not gone)
    current = None if kept.current == name else kept.current
    write_contexts(kept.model_copy(update={"current": current, "contexts": left}))
    typer.echo(f"Context {name} is forgotten{', and none is in use' if kept.current == name else ''}.")


def _who(one: KeptContext) -> str:
    if one.user is not None:
        return f"User:{one.user}"
    return one.cert_file or one.secret_file or "-"


def _absolute(file: Path | None) -> str | None:
    """The path from wherever a command is run.

    Raises:
        typer.BadParameter: there is nothing.
    """
    if file is None:
        return None
    if not file.exists():
        raise typer.BadParameter(f"{file}: there is no such file or directory")
    return str(file.absolute())
