"""`quorate acls`: who may do what on which resources."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Annotated, Final, Literal, get_args

import typer
from pydantic import BaseModel

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.protocol.acls import (
    AclCreation,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DescribeAclsResponse,
    MatchingAcl,
)
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo, Yes, confirm
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.bulk import ItemOutcome, only, report
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.output import counted, show
from quorate.scripts.terminal.requesting import make
from quorate.scripts.terminal.tables import columns

app = typer.Typer(
    help="Show, add and remove ACLs: who may do what, with brokers and with controllers.", no_args_is_help=True
)

#: The type of everybody who is no node.
_USER: Final = "User"
_CLUSTER_NAME: Final = "kafka-cluster"
_TYPES: Final[dict[str, AclResourceType]] = {
    "topic": "TOPIC",
    "group": "GROUP",
    "cluster": "CLUSTER",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user": "USER",
}
#: As people write them: describe-configs.
_OPERATIONS: Final[dict[str, AclOperation]] = {
    name.lower().replace("_", "-"): name for name in get_args(AclOperation) if name != "ANY"
}
_Pattern = Literal["literal", "prefixed", "match", "any"]
_PATTERNS: Final[dict[str, AclPatternType]] = {
    "literal": "LITERAL",
    "prefixed": "PREFIXED",
    "match": "MATCH",
    "any": "ANY",
}
_RESOURCES: Final = "topic/NAME, group/NAME, transactional-id/NAME, delegation-token/NAME, user/NAME or cluster"

WhichResource = Annotated[
    str | None,
    typer.Argument(
        metavar="RESOURCE",
        help=f"{_RESOURCES}; topic/* means the ACLs of *, and topic alone those of all topics.",
        show_default=False,
    ),
]
WhichPattern = Annotated[
    _Pattern | None,
    typer.Option(
        help="literal and prefixed: ACLs of that pattern with that name. match: all that apply to a resource of that "
        "name. any: either pattern. Default: literal where a name is given, as Kafka's tool has it.",
        show_default=False,
    ),
]
WhichPrincipal = Annotated[str | None, typer.Option(metavar="TYPE:NAME", help="As User:ana.", show_default=False)]
WhichHost = Annotated[str | None, typer.Option(metavar="HOST", help="As it was given.", show_default=False)]
WhichOperation = Annotated[
    str | None, typer.Option(metavar="OPERATION", help=f"One of {', '.join(_OPERATIONS)}.", show_default=False)
]
WhichPermission = Annotated[Literal["allow", "deny"] | None, typer.Option(show_default=False)]


@app.command(name="list")
def list_(
    resource: WhichResource = None,
    pattern: WhichPattern = None,
    principal: WhichPrincipal = None,
    host: WhichHost = None,
    operation: WhichOperation = None,
    permission: WhichPermission = None,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show the ACLs that meet all that is said.

    Example: quorate acls list topic/orders --pattern match
    """
    wanted = _filter(resource, pattern, principal, host, operation, permission)
    described = ask(controllers, secret_file, lambda client: client.access.describe_acls(wanted), path=from_path, at=at)
    show(described, _table(_flat(described)) or ["There are none."], as_json=as_json)


@app.command()
def add(
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help=f"{_RESOURCES}; topic/* is every topic.", show_default=False)
    ],
    principal: Annotated[
        list[str], typer.Option(metavar="TYPE:NAME", help="As User:ana; User:* is everybody. May be repeated.")
    ],
    operation: Annotated[
        list[str],
        typer.Option(metavar="OPERATION", help=f"One of {', '.join(_OPERATIONS)}. May be repeated."),
    ],
    prefixed: Annotated[bool, typer.Option("--prefixed", help="For every name that begins so.")] = False,
    host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="An address. Default: every host. May be repeated.")
    ] = None,
    deny: Annotated[bool, typer.Option("--deny", help="Keep from it, whatever else allows it.")] = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Allow operations (or deny them), an ACL for each principal, host and operation. Those there already stay.

    Example: quorate acls add topic/orders- --prefixed --principal User:ana --operation read --operation describe
    """
    type_, name = _resource(resource)
    if name is None:
        raise typer.BadParameter(f"{resource}: which? Say {resource}/NAME", param_hint="RESOURCE")
    _point_out_slips(principal)
    creations = [
        make(
            AclCreation,
            resource_type=type_,
            resource_name=name,
            resource_pattern_type="PREFIXED" if prefixed else "LITERAL",
            principal=who,
            host=where,
            operation=what,
            permission_type="DENY" if deny else "ALLOW",
        )
        for who, where, what in product(principal, host or ["*"], map(_operation, operation))
    ]
    request: CreateAclsRequest = make(CreateAclsRequest, creations=creations)
    if plan is not None:
        write_plan(plan, "acls add", [PlannedChange(create_acls=request)], controllers, secret_file)
        return
    subjects = [f"{one.principal}, {_word(one.operation)}, from {one.host}" for one in creations]
    response = ask(controllers, secret_file, lambda client: client.access.create_acls(request), about=only(subjects))
    _report_added(subjects, response, "Denied" if deny else "Allowed", as_json=as_json)


def _point_out_slips(principals: Sequence[str]) -> None:
    """Say of each that is nobody because of the case of its letters who may be meant: any type can be written."""
    for who in dict.fromkeys(principals):
        type_, colon, name = who.partition(":")
        if colon and type_ != _USER and type_.casefold() == _USER.casefold():
            sys.stderr.write(f"quorate: nobody is of type {type_}: did you mean {_USER}:{shown_name(name)}?\n")


def _report_added(subjects: list[str], response: CreateAclsResponse, verb: str, *, as_json: bool) -> None:
    outcomes = [
        ItemOutcome(subject, result.error_code, result.error_message, f"{verb}: {subject}.")
        for subject, result in zip(subjects, response.results, strict=True)
    ]
    report(response, outcomes, as_json=as_json)


@app.command()
def remove(
    resource: WhichResource = None,
    pattern: WhichPattern = None,
    principal: WhichPrincipal = None,
    host: WhichHost = None,
    operation: WhichOperation = None,
    permission: WhichPermission = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Remove the ACLs that meet all that is said, and show them; `acls list` finds the same ones by the same words.

    Example: quorate acls remove topic/orders --principal User:ana
    """
    wanted = _filter(resource, pattern, principal, host, operation, permission)
    if wanted == AclFilter():
        raise typer.BadParameter("say which: RESOURCE, --principal, --host, --operation or --permission")
    request: DeleteAclsRequest = make(DeleteAclsRequest, filters=[wanted])
    if plan is not None:
        write_plan(plan, "acls remove", [PlannedChange(delete_acls=request)], controllers, secret_file)
        return
    if dry_run or not yes:
        described = ask(controllers, secret_file, lambda client: client.access.describe_acls(wanted))
        found = _flat(described)
        if dry_run:
            _show_removed(found, described, "can be removed", as_json=as_json)
            return
        if found:
            confirm(f"remove {counted(len(found), 'ACL')} for good", yes=False)
    response = ask(controllers, secret_file, lambda client: client.access.delete_acls(request))
    matching = response.filter_results[0].matching_acls
    _show_removed(matching, response, "was removed" if len(matching) == 1 else "were removed", as_json=as_json)


def _show_removed(acls: list[MatchingAcl], reply: BaseModel, verb: str, *, as_json: bool) -> None:
    show(reply, (*_table(acls), f"{counted(len(acls), 'ACL')} {verb}."), as_json=as_json)


def _flat(described: DescribeAclsResponse) -> list[MatchingAcl]:
    return [
        MatchingAcl(
            resource_type=pattern.resource_type,
            resource_name=pattern.resource_name,
            pattern_type=pattern.pattern_type,
            **acl.model_dump(),
        )
        for pattern in described.resources
        for acl in pattern.acls
    ]


def _table(acls: Iterable[MatchingAcl]) -> list[str]:
    """Each as it is said on the command line; no line where there is none."""
    words: dict[str, str] = {kafka: word for word, kafka in _TYPES.items()}
    rows = [
        (
            f"{words.get(acl.resource_type, acl.resource_type)}/{acl.resource_name}",
            acl.pattern_type.lower(),
            acl.principal,
            acl.host,
            _word(acl.operation),
            acl.permission_type.lower(),
        )
        for acl in acls
    ]
    return columns([("RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"), *rows]) if rows else []


def _filter(
    resource: str | None,
    pattern: str | None,
    principal: str | None,
    host: str | None,
    operation: str | None,
    permission: str | None,
) -> AclFilter:
    type_, name = ("ANY", None) if resource is None else _resource(resource)
    default: AclPatternType = "ANY" if name is None else "LITERAL"
    permission_type: AclPermissionType = "ANY" if permission is None else "DENY" if permission == "deny" else "ALLOW"
    return make(
        AclFilter,
        resource_type_filter=type_,
        resource_name_filter=name,
        pattern_type_filter=default if pattern is None else _PATTERNS[pattern],
        principal_filter=principal,
        host_filter=host,
        operation="ANY" if operation is None else _operation(operation),
        permission_type=permission_type,
    )


def _resource(text: str) -> tuple[AclResourceType, str | None]:
    """Type and name; no name where the type alone was said, but of the cluster there is one."""
    word, slash, name = text.partition("/")
    if word not in _TYPES:
        raise typer.BadParameter(f"{text!r} names no resource: one of {_RESOURCES}", param_hint="RESOURCE")
    if word == "cluster":
        return _TYPES[word], name if slash else _CLUSTER_NAME
    return _TYPES[word], name if slash else None


def _word(operation: str) -> str:
    """As people write it."""
    return operation.lower().replace("_", "-")


def _operation(text: str) -> AclOperation:
    found = _OPERATIONS.get(text.lower().replace("_", "-"))
    if found is None:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(_OPERATIONS)}", param_hint="--operation")
    return found
