"""`quorate quotas`: how much users, clients and addresses may ask of brokers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.protocol.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasResponse,
    QuotaEntityPart,
    QuotaMatch,
)
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.requesting import make
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Show, set and remove the quotas of users, client ids and addresses.", no_args_is_help=True)

_TYPES: Final = ("user", "client-id", "ip")

Entity = Annotated[
    list[str],
    typer.Argument(
        metavar="ENTITY...",
        help="user/NAME, client-id/NAME, user/NAME client-id/NAME together, or ip/ADDRESS; without a name (user/) the "
        "default of all that have none of their own.",
        show_default=False,
    ),
]


@app.command(name="list")
def list_(
    entity: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENTITY",
            help="Only what has all of these: user/NAME, user/ (the default), user (any), and so client-id and ip.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Only what has no other types than these.")] = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show quotas.

    Example: quorate quotas list user/ana
    """
    wanted: dict[str, tuple[QuotaMatch, str | None]] = {}
    for text in entity or ():
        type_, slash, name = _parts_of(text)
        if type_ in wanted:
            raise typer.BadParameter(f"{type_} is named twice", param_hint="ENTITY")
        wanted[type_] = ("EXACT", name) if name else ("DEFAULT" if slash else "ANY", None)
    described = ask(
        controllers,
        secret_file,
        lambda client: client.access.describe_client_quotas(wanted, is_strict=strict),
        path=from_path,
        at=at,
    )
    show(described, _lines(described), as_json=as_json)


def _lines(described: DescribeClientQuotasResponse) -> list[str]:
    if not described.entries:
        return ["No quotas are set."]
    rows = [("ENTITY", "QUOTA", "VALUE")]
    for entry in described.entries:
        rows += ((_entity_text(entry.entity), quota.key, f"{quota.value:.15g}") for quota in entry.values)
    return columns(rows)


@app.command(name="set")
def set_(
    entity: Entity,
    quota: Annotated[
        list[str],
        typer.Option(
            "--quota",
            metavar="NAME=VALUE",
            help="producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of an address "
            "connection_creation_rate. May be repeated.",
        ),
    ],
    dry_run: DryRun = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Set quotas, all of them or none.

    Example: quorate quotas set user/ana --quota producer_byte_rate=1048576 --quota request_percentage=50
    """
    ops = [{"key": key, "value": value} for key, value in _values(quota)]
    _alter(entity, ops, controllers, secret_file, is_dry_run=dry_run, plan=plan, as_json=as_json)


@app.command()
def remove(
    entity: Entity,
    quota: Annotated[list[str], typer.Option("--quota", metavar="NAME", help="May be repeated.")],
    dry_run: DryRun = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Remove quotas, so that the next wider one holds: of the user alone, say, or the default.

    Example: quorate quotas remove user/ana client-id/batch --quota producer_byte_rate
    """
    ops = [{"key": key, "remove": True} for key in quota]
    _alter(entity, ops, controllers, secret_file, is_dry_run=dry_run, plan=plan, as_json=as_json)


def _alter(
    entity: list[str],
    ops: list[dict[str, Any]],
    controllers: str | None,
    secret_file: Path | None,
    *,
    is_dry_run: bool,
    plan: Path | None,
    as_json: bool,
) -> None:
    parts = []
    for text in entity:
        type_, slash, name = _parts_of(text)
        if not slash:
            raise typer.BadParameter(f"{text}: say {text}/NAME, or {text}/ for the default", param_hint="ENTITY")
        parts.append({"entity_type": type_, "entity_name": name or None})
    is_tried = is_dry_run or plan is not None
    request = make(AlterClientQuotasRequest, entries=[{"entity": parts, "ops": ops}], validate_only=is_tried)
    response: AlterClientQuotasResponse = ask(
        controllers, secret_file, lambda client: client.access.alter_client_quotas(request), about=" ".join(entity)
    )
    if plan is not None:
        wanted = AlterClientQuotasRequest(entries=request.entries)
        write_plan(plan, "quotas", [PlannedChange(alter_client_quotas=wanted)], controllers, secret_file)
    elif as_json:
        sys.stdout.write(as_document(response) + "\n")
    else:
        named = _entity_text(response.entries[0].entity)
        sys.stdout.write(f"The quotas of {named} {'can be' if is_dry_run else 'were'} changed.\n")


def _parts_of(text: str) -> tuple[str, str, str]:
    type_, slash, name = text.partition("/")
    if type_ not in _TYPES:
        kinds = ", ".join(f"{known}/..." for known in _TYPES)
        raise typer.BadParameter(f"{text!r} names nothing that has quotas: one of {kinds}", param_hint="ENTITY")
    return type_, slash, name


def _entity_text(entity: list[QuotaEntityPart]) -> str:
    """As it is named on the command line."""
    return " ".join(f"{part.entity_type}/{part.entity_name or ''}" for part in entity)


def _values(texts: list[str]) -> Iterator[tuple[str, float]]:
    for text in texts:
        key, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE with a number", param_hint="--quota") from None
        if not key or number - number != 0:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE with a finite number", param_hint="--quota")
        yield key, number
