"""`quorate tokens`: delegation tokens, by which clients can be taken for their owner without its password."""

from __future__ import annotations

import base64
import sys
from functools import partial
from typing import Annotated, Final

import typer

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)
from quorate.metadata_log.errors import InvalidArgument
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, Principal, SecretFile
from quorate.scripts.terminal.output import format_time, show
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Make, renew, end and list delegation tokens.", no_args_is_help=True)

#: Characters of an HMAC-SHA512 in base64, and some room for a line end.
_HMAC_CHARS_MAX: Final = 200

HmacFile = Annotated[
    typer.FileText,
    typer.Option(
        "--hmac-file",
        metavar="FILE",
        help="File with the token's HMAC, as `create` printed it; - is standard input.",
        show_default=False,
    ),
]
Period = Annotated[int | None, typer.Option("--period-ms", metavar="MS", help="From now.", min=0, max=2**63 - 1)]


@app.command()
def create(
    principal: Principal = None,
    owner: Annotated[
        str | None, typer.Option(metavar="TYPE:NAME", help="Whose token it is. Default: who asks.", show_default=False)
    ] = None,
    renewer: Annotated[
        list[str] | None, typer.Option(metavar="User:NAME", help="Who may renew and end it too; may be repeated.")
    ] = None,
    max_lifetime_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="Its greatest age.", min=1, max=2**63 - 1, show_default=False)
    ] = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Make a token. Its HMAC is shown now and never again.

    Example: quorate tokens create --principal User:ana --renewer User:bob --max-lifetime-ms 86400000
    """
    owned = None if owner is None else _principal(owner, "--owner")
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owned is None else owned.principal_type,
        owner_principal_name=None if owned is None else owned.principal_name,
        renewers=[_principal(text, "--renewer") for text in renewer or ()],
        max_lifetime_ms=-1 if max_lifetime_ms is None else max_lifetime_ms,
    )
    made = ask(controllers, secret_file, lambda client: client.tokens.create(request), principal)
    if as_json:
        sys.stdout.write(as_document(made) + "\n")
        return
    rows = (
        ("token", made.token_id),
        ("hmac", base64.b64encode(made.hmac).decode()),
        ("owner", f"{made.principal_type}:{made.principal_name}"),
        ("requester", f"{made.token_requester_principal_type}:{made.token_requester_principal_name}"),
        ("ends", format_time(made.expiry_timestamp_ms)),
        ("renewable until", format_time(made.max_timestamp_ms)),
    )
    sys.stdout.writelines(f"{line}\n" for line in columns(rows))


@app.command()
def renew(
    hmac_file: HmacFile,
    principal: Principal = None,
    period_ms: Period = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Let a token live on, until the day at most that it was made for. Its owner and its renewers may.

    Example: quorate tokens renew --principal User:bob --hmac-file token.hmac
    """
    request = RenewDelegationTokenRequest(hmac=_hmac(hmac_file), renew_period_ms=-1 if period_ms is None else period_ms)
    renewed = ask(controllers, secret_file, lambda client: client.tokens.renew(request), principal)
    _report_end(f"ends at {format_time(renewed.expiry_timestamp_ms)}", as_document(renewed) if as_json else None)


@app.command()
def expire(
    hmac_file: HmacFile,
    principal: Principal = None,
    period_ms: Period = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Let a token end: at once, or after a time. Its owner and its renewers may.

    Example: quorate tokens expire --principal User:ana --hmac-file token.hmac
    """
    request = ExpireDelegationTokenRequest(
        hmac=_hmac(hmac_file), expiry_time_period_ms=-1 if period_ms is None else period_ms
    )
    expired = ask(controllers, secret_file, lambda client: client.tokens.expire(request), principal)
    end = "was removed" if request.expiry_time_period_ms < 0 else f"ends at {format_time(expired.expiry_timestamp_ms)}"
    _report_end(end, as_document(expired) if as_json else None)


@app.command(name="list")
def list_(
    owner: Annotated[
        str | None,
        typer.Option(metavar="TYPE:NAME", help="Only tokens of this owner, requester or renewer.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List tokens, without what they authenticate by: that is shown by `create` only.

    Example: quorate tokens list --owner User:ana
    """
    tokens = ask(controllers, secret_file, partial(_all_tokens, owner), path=from_path, at=at)
    show(DescribeDelegationTokenResponse(tokens=tokens, next_after=None), _table(tokens), as_json=as_json)


async def _all_tokens(owner: str | None, client: ControllerClient) -> list[DescribedDelegationToken]:
    page = await client.tokens.describe(owner)
    tokens = page.tokens
    while page.next_after is not None:
        page = await client.tokens.describe(owner, after=page.next_after)
        tokens += page.tokens
    return tokens


def _table(tokens: list[DescribedDelegationToken]) -> list[str]:
    if not tokens:
        return ["There are no tokens."]
    rows = [("TOKEN", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "ENDS", "RENEWABLE UNTIL")]
    for one in tokens:
        renewers = ", ".join(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in one.renewers)
        owner = f"{one.principal_type}:{one.principal_name}"
        requester = f"{one.token_requester_principal_type}:{one.token_requester_principal_name}"
        issued, ends, last = map(format_time, (one.issue_timestamp, one.expiry_timestamp, one.max_timestamp))
        rows.append((one.token_id, owner, requester, renewers or "-", issued, ends, last))
    return columns(rows)


def _principal(text: str, option: str) -> TokenPrincipal:
    type_, _, name = text.partition(":")
    if not type_ or not name:
        raise typer.BadParameter(f"{text[:80]!r} is not TYPE:NAME, such as User:ana", param_hint=option)
    try:
        return TokenPrincipal(principal_type=type_, principal_name=name)
    except InvalidArgument:
        raise typer.BadParameter(f"{text[:80]!r}... is too long", param_hint=option) from None


def _hmac(file: typer.FileText) -> bytes:
    try:
        return base64.b64decode(file.read(_HMAC_CHARS_MAX).strip(), validate=True)
    except ValueError:
        # It may be one with a letter missing: it is not repeated.
        raise typer.BadParameter("the file holds no base64", param_hint="--hmac-file") from None


def _report_end(end: str, json: str | None) -> None:
    sys.stdout.write(f"The token {end}.\n" if json is None else json + "\n")
