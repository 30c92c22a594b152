"""`quorate configs`: what topics, brokers, groups and client metrics subscriptions are configured to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, Final, Literal

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    ConfigValue,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    ReplacedConfigsResource,
    ResourceTypeName,
)
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.cli.topics.config_names import point_out_slips
from quorate.scripts.cli.topics.missing_topics import asked_about
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo, key_values
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.tables import columns

_BY_SETTING: Final = completed_by(NameKind.SETTINGS)
_BY_CONFIG: Final = completed_by(NameKind.CONFIGS)

app = typer.Typer(
    help="Show and change the configs of topics, brokers, groups and client metrics subscriptions.",
    no_args_is_help=True,
)

_KINDS: Final[dict[str, ResourceTypeName]] = {
    "topic": "TOPIC",
    "broker": "BROKER",
    "group": "GROUP",
    "client-metrics": "CLIENT_METRICS",
}

Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="topic/NAME, broker/ID, broker/ (the default of all brokers), group/NAME or client-metrics/NAME.",
        autocompletion=completed_by(NameKind.RESOURCES),
        show_default=False,
    ),
]
SetConfigs = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="May be repeated.", autocompletion=_BY_SETTING),
]


@app.command()
def describe(
    resource: Resource,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this config; may be repeated.", autocompletion=_BY_CONFIG),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also what nobody has set: Kafka's defaults.")] = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show the configs that hold, and where they come from.

    Values that may be secrets are not shown.

    Example: quorate configs describe topic/orders --all
    """
    kind, resource_name = _resource(resource)

    async def question(client: ControllerClient) -> DescribeConfigsResult:
        return await asked_about(
            client,
            _topics(kind, resource_name),
            lambda asked: asked.describe_configs(kind, resource_name, is_linearizable=True),
        )

    described = ask(controllers, secret_file, question, path=from_path, at=at)
    show(described, _lines(described, name, is_all=all_), as_json=as_json)


def _lines(described: DescribeConfigsResult, names: list[str] | None, *, is_all: bool) -> Iterable[str]:
    rows = []
    for config in described.configs:
        if config.name in names if names else is_all or config.source != "DEFAULT_CONFIG":
            value = "(hidden)" if config.is_sensitive else "(none)" if config.value is None else config.value
            others = [f"{_source(at.source)}: {at.value}" for at in config.synonyms[1:] if not config.is_sensitive]
            rows.append((config.name, value, _source(config.source), f"({', '.join(others)})" if others else ""))
    return columns(rows) if rows else ["Nothing is set."]


def _source(name: str) -> str:
    """DYNAMIC_DEFAULT_BROKER_CONFIG as people read it."""
    return name.removesuffix("_CONFIG").replace("_", " ").lower()


@app.command()
def alter(
    resource: Resource,
    set_: SetConfigs = None,
    append: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=ITEM,...", help="Add items to a list.", autocompletion=_BY_SETTING),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=ITEM,...", help="Take items from a list.", autocompletion=_BY_SETTING),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Set no longer.", autocompletion=_BY_CONFIG),
    ] = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Change configs one by one, all of them or none. What looks like a slip in a name is pointed out.

    Example: quorate configs alter topic/orders --set retention.ms=86400000 --delete segment.ms
    """
    kind, name = _resource(resource)
    changes = [AlterableConfig(name=key, config_operation="DELETE") for key in delete or ()]
    operations: tuple[tuple[Literal["SET", "APPEND", "SUBTRACT"], list[str] | None], ...] = (
        ("SET", set_), ("APPEND", append), ("SUBTRACT", subtract)
    )  # fmt: skip
    for operation, texts in operations:
        changes += (AlterableConfig(name=k, config_operation=operation, value=v) for k, v in key_values(texts))
    if not changes:
        raise typer.BadParameter("say what is to change: --set, --delete, --append or --subtract")
    point_out_slips(kind, [change.name for change in changes if change.config_operation != "DELETE"])
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)],
        validate_only=dry_run or plan is not None,
    )

    async def question(client: ControllerClient) -> AlterConfigsResponse:
        return await asked_about(client, _topics(kind, name), lambda asked: asked.incremental_alter_configs(request))

    response = ask(controllers, secret_file, question, about=resource)
    if plan is None:
        _report(resource, response, is_dry_run=dry_run)
        return
    _check(response)
    change = PlannedChange(incremental_alter_configs=IncrementalAlterConfigsRequest(resources=request.resources))
    write_plan(plan, "configs alter", [change], controllers, secret_file)


@app.command()
def replace(
    resource: Resource,
    set_: SetConfigs = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Give a resource these configs and no others.

    Example: quorate configs replace topic/orders --set retention.ms=86400000
    """
    kind, name = _resource(resource)
    configs = [ConfigValue(name=key, value=value) for key, value in key_values(set_)]
    point_out_slips(kind, [config.name for config in configs])
    request = AlterConfigsRequest(
        resources=[ReplacedConfigsResource(resource_type=kind, resource_name=name, configs=configs)],
        validate_only=dry_run or plan is not None,
    )

    async def question(client: ControllerClient) -> AlterConfigsResponse:
        return await asked_about(client, _topics(kind, name), lambda asked: asked.alter_configs(request))

    response = ask(controllers, secret_file, question, about=resource)
    if plan is None:
        _report(resource, response, is_dry_run=dry_run)
        return
    _check(response)
    change = PlannedChange(alter_configs=AlterConfigsRequest(resources=request.resources))
    write_plan(plan, "configs replace", [change], controllers, secret_file)


def _resource(text: str) -> tuple[ResourceTypeName, str]:
    kind, slash, name = text.partition("/")
    if kind not in _KINDS or not slash:
        kinds = ", ".join(f"{known}/..." for known in _KINDS)
        raise typer.BadParameter(f"{text!r} names no resource: one of {kinds}", param_hint="RESOURCE")
    return _KINDS[kind], name


def _topics(kind: ResourceTypeName, name: str) -> list[str]:
    return [name] if kind == "TOPIC" else []


def _report(resource: str, response: AlterConfigsResponse, *, is_dry_run: bool) -> None:
    _check(response)
    sys.stdout.write(f"{resource} {'can be' if is_dry_run else 'was'} changed.\n")


def _check(response: AlterConfigsResponse) -> None:
    (result,) = response.responses
    if result.error_code:
        raise ApiError(result.error_code, result.error_message or result.error_code.name)
