"""`quorate login` and `quorate logout`: who asks from now on, without a password for each command."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import typer

from quorate.controller.api.login_models import LoginReply
from quorate.controller.client.connection import NotSent
from quorate.controller.client.login import LoginSession, PasswordLogin
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.targets import UNIX, check_way
from quorate.metadata_log.errors import ApiError
from quorate.scripts.logins.kept_logins import KeptLogin, drop, keep, logins_file
from quorate.scripts.logins.passwords import PasswordFile, ask_password
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import refuse_other_proofs
from quorate.scripts.terminal.connecting import Controllers
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.places.controllers import find_controllers, find_tls
from quorate.scripts.terminal.programs.failures import UNREACHABLE, Failed

#: Of one controller's answers.
_TIMEOUT_MS: Final = 5_000.0
_NOTHING_KEPT: Final = (
    "nothing was kept: commands go on asking in the name that they asked in before, which in the directory of a local "
    "cluster is its administrator's unless somebody is logged in"
)


def login(
    user: Annotated[str, typer.Argument(metavar="USER", help="Without `User:`; as ana.", show_default=False)],
    password_file: PasswordFile = None,
    mechanism: Annotated[
        Literal["SCRAM-SHA-256", "SCRAM-SHA-512"],
        typer.Option(case_sensitive=False, help="The one of which the user has a credential."),
    ] = "SCRAM-SHA-256",
    is_delegation_token: Annotated[
        bool,
        typer.Option("--delegation-token", help="USER is the id of a delegation token, and the password its HMAC."),
    ] = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
) -> None:
    """Log in with a password, and be this user in all commands until the login ends.

    The controllers give a token for the time that their settings say (access.login_lifetime_ms, 15 minutes by default);
    it is kept in your own file, mode 600, and is shown to the controllers that are named here and to no others. The
    password is kept nowhere, and sent to nobody. When the login has ended, commands say so and ask in no other name:
    log in again, or `quorate logout`. It also ends when the password is changed.

    What is named for a command goes before a login that is kept: a secret or token (--secret-file), a certificate, or a
    user. Programs and jobs name QUORATE_USER and QUORATE_PASSWORD_FILE in the environment instead of this: commands
    then log in by themselves, each time.

    Controllers let users log in by access.login_mechanisms, over TLS or from their own machine; `quorate users set`
    gives a user a password. Exit code 0: logged in; 1: refused; 3: no controller answers.

    Examples:

      quorate login ana --controllers c1.example:8080,c2.example:8080

      quorate login ana --password-file ana.password
    """
    refuse_other_proofs("it would go before the login that is to be kept: unset it")
    urls = _closed_ways(find_controllers(controllers))
    wanted = PasswordLogin(user, ask_password(user, password_file, is_new=False), mechanism, is_delegation_token)
    reply = asyncio.run(_log_in(urls, wanted))
    # By this machine's clock, which is asked later: the controllers' may be another.
    ends_at_ms = time.time_ns() // 1_000_000 + reply.lifetime_ms
    kept = KeptLogin(controllers=urls, user=user, principal=reply.principal, token=reply.token, ends_at_ms=ends_at_ms)
    keep(kept)
    if as_json:
        sys.stdout.write(json.dumps(kept.model_dump(include={"controllers", "principal", "ends_at_ms"})) + "\n")
        return
    typer.echo(f"Logged in as {shown_name(kept.principal)} until {kept.ends_at}, at {', '.join(urls)}.")
    typer.echo(f"Commands ask in this name now; the token is in {logins_file()}. To end it: quorate logout")


def logout(
    every: Annotated[bool, typer.Option("--all", help="From all clusters.")] = False,
    controllers: Controllers = None,
) -> None:
    """Forget the login that is kept for a cluster.

    Commands no longer ask in its name. The token was nobody else's; the controllers themselves take it until it ends,
    or the user's password is changed.
    Exit code 0, whether there was one or not.

    Example: quorate logout
    """
    dropped = drop(None if every else find_controllers(controllers))
    for one in dropped:
        typer.echo(f"{shown_name(one.principal)} is logged out of {shown_name(', '.join(one.controllers))}.")
        typer.echo(f"No command shows that token any more; whoever copied it may until {one.ends_at}.")
    if not dropped:
        typer.echo("Nobody was logged in there.")
    typer.echo("In the directory of a local cluster commands ask as its administrator from now on.")


def _closed_ways(urls: tuple[str, ...]) -> tuple[str, ...]:
    for url in urls:
        if url.startswith(UNIX):
            raise typer.BadParameter(f"{url}: the machine says who asks through a socket: log in at HOST:PORT")
        check_way(url)
    return urls


async def _log_in(urls: Sequence[str], wanted: PasswordLogin) -> LoginReply:
    """The answer of the first controller that gives one."""
    session = PendingSession(None, None)
    here = LoginSession(wanted, session, find_tls(urls, is_administrator=False))
    reasons = []
    try:
        for url in urls:
            try:
                return await here.log_in(url, _TIMEOUT_MS)
            except NotSent as error:
                reasons.append(shown_name(str(error)))
    except ApiError:
        sys.stderr.write(f"quorate: {_NOTHING_KEPT}\n")
        raise
    finally:
        await session.close()
    raise Failed(*reasons, name=UNREACHABLE)
