"""`quorate users`: the SCRAM credentials by which users log in to brokers."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.protocol.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.credentials import users_of
from quorate.controller.scram.keys import ITERATIONS_MAX, ITERATIONS_MIN, salted_password
from quorate.controller.scram.server import ScramServer
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.logins.passwords import PasswordFile, ask_password
from quorate.scripts.terminal.arguments import AsJson, PlanTo, Yes, confirm
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.passed_over import load_image_and_say
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.requesting import make
from quorate.scripts.terminal.tables import columns
from quorate.snapshots.checkpoints.moments import parse_moment

app = typer.Typer(help="Show, set, check and remove the SCRAM credentials of users.", no_args_is_help=True)

_SALT_BYTES: Final = 32

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user, without `User:`.", show_default=False)]
Mechanism = Annotated[
    Literal["SCRAM-SHA-256", "SCRAM-SHA-512"],
    typer.Option(case_sensitive=False, help="A user may have a credential of each."),
]


@app.command(name="list")
def list_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one.", show_default=False)] = None,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show who has credentials, and of which mechanisms. Nobody is shown more of them than that.

    Example: quorate users list
    """
    described = ask(
        controllers,
        secret_file,
        lambda client: client.access.describe_user_scram_credentials(name),
        path=from_path,
        at=at,
    )
    show(described, _lines(described), as_json=as_json)


def _lines(described: DescribeUserScramCredentialsResponse) -> list[str]:
    if not described.results:
        return ["No user has a credential."]
    rows = [("USER", "MECHANISM", "ITERATIONS")]
    for user in described.results:
        rows += ((user.user, info.mechanism, str(info.iterations)) for info in user.credential_infos)
    return columns(rows)


@app.command(name="set")
def set_(
    name: Name,
    mechanism: Mechanism,
    iterations: Annotated[
        int, typer.Option(min=ITERATIONS_MIN, max=ITERATIONS_MAX, help="More make guessing slower, and logging in too.")
    ] = ITERATIONS_MIN,
    password_file: PasswordFile = None,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Give a user a password, or another one.

    The password itself is never sent, and cannot be given as an argument, where other users of this machine see it. A
    plan holds what is sent, by which the user could log in: it is for its owner alone.

    Example: quorate users set ana --mechanism SCRAM-SHA-256 --password-file ana.password
    """
    password = ask_password(name, password_file, is_new=True)
    salt = secrets.token_bytes(_SALT_BYTES)
    upsertion = make(
        ScramCredentialUpsertion,
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password, salt, iterations),
    )
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    if plan is not None:
        write_plan(plan, "users set", [PlannedChange(alter_user_scram_credentials=request)], controllers, secret_file)
        return
    _alter(request, name, f"The {mechanism} credential of {name} was set.", controllers, secret_file, as_json=as_json)


@app.command()
def remove(
    name: Name,
    mechanism: Mechanism,
    plan: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Remove a user's credential of one mechanism, for good: only the user knows the password.

    Example: quorate users remove ana --mechanism SCRAM-SHA-256
    """
    request = AlterUserScramCredentialsRequest(
        deletions=[make(ScramCredentialDeletion, name=name, mechanism=mechanism)]
    )
    if plan is not None:
        change = PlannedChange(alter_user_scram_credentials=request)
        write_plan(plan, "users remove", [change], controllers, secret_file)
        return
    confirm(f"remove the {mechanism} credential of {name[:80]}", yes=yes)
    _alter(
        request, name, f"The {mechanism} credential of {name} was removed.", controllers, secret_file, as_json=as_json
    )


@app.command()
def check(
    name: Name,
    mechanism: Mechanism,
    path: Annotated[
        Path,
        typer.Option("--from", metavar="PATH", help="Metadata directory, segment or checkpoint.", show_default=False),
    ],
    password_file: PasswordFile = None,
    at: AtMoment = None,
) -> None:
    """Try a password against the credential that files hold: a whole login, of which nothing leaves this machine.

    A running cluster tells nobody its credentials, so its files are read; a directory in use may be read, too.

    Example: quorate users check ana --mechanism SCRAM-SHA-256 --from var/controller-1/metadata
    """
    password = ask_password(name, password_file, is_new=False)
    image, _ = load_image_and_say(path, None if at is None else parse_moment(at))
    client = ScramClient(mechanism, name, password, secrets.token_urlsafe())
    server = ScramServer(mechanism, secrets.token_urlsafe(), users_of(image.scram, mechanism), lambda _: None)
    client.check(server.answer(client.last(server.answer(client.first()))))
    sys.stdout.write(f"{name} logs in by {mechanism} with this password.\n")


def _alter(
    request: AlterUserScramCredentialsRequest,
    name: str,
    done: str,
    controllers: str | None,
    secret_file: Path | None,
    *,
    as_json: bool,
) -> None:
    response = ask(
        controllers, secret_file, lambda client: client.access.alter_user_scram_credentials(request), about=name
    )
    sys.stdout.write((as_document(response) if as_json else done) + "\n")
