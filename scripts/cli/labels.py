"""`quorate labels`: small values of your own, on the cluster, topics, partitions, brokers, and by themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.labels import (
    AlterLabelsRequest,
    AlterLabelsResponse,
    DescribedLabel,
    LabelEntry,
    LabelKind,
)
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal.arguments import LIMIT_DEFAULT, AsJson, DryRun, Limit, PlanTo
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import reader_may_leave
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.requesting import make
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Show, set and remove labels: small values of your own.", no_args_is_help=True)

Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="cluster, topic:NAME, partition:TOPIC-NUMBER, broker:ID, or record:NAME, any name, which is there as soon "
        "as it has a label.",
        show_default=False,
    ),
]
If = Annotated[
    list[str] | None,
    typer.Option(
        "--if", metavar="KEY=VALUE", help="Only if this label of RESOURCE has this value. May be repeated.",
        show_default=False,
    ),
]  # fmt: skip
IfAbsent = Annotated[
    list[str] | None,
    typer.Option(
        "--if-absent", metavar="KEY", help="Only if RESOURCE has no such label. May be repeated.", show_default=False
    ),
]


class FoundLabels(BaseModel):
    """The labels that were found, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    labels: list[DescribedLabel]


@app.command(name="list")
def list_(
    resource: Annotated[
        str | None,
        typer.Argument(metavar="RESOURCE", help="Only those of topic:NAME, say; see `set`.", show_default=False),
    ] = None,
    kind: Annotated[LabelKind | None, typer.Option("--kind", help="Only those of such resources.")] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="Only those of a topic and of its partitions.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", metavar="NAMESPACE", help="Only keys that begin with it and a slash.")
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show labels.

    Example: quorate labels list --topic orders --namespace acme
    """

    async def found(client: ControllerClient) -> tuple[list[DescribedLabel], bool]:
        labels: list[DescribedLabel] = []
        wanted = client.labels.all(resource=resource, kind=kind, topic=topic, namespace=namespace)
        async for label in wanted:
            if len(labels) == limit:
                return labels, True
            labels.append(label)
        return labels, False

    labels, are_more = ask(controllers, secret_file, found, path=from_path, at=at)
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(FoundLabels(labels=labels)) + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in _lines(labels))
    if are_more:
        sys.stderr.write(f"quorate: there are more than these {limit} labels: see --limit\n")


def _lines(labels: list[DescribedLabel]) -> list[str]:
    if not labels:
        return ["There are no labels."]
    # A value on one line, whatever is in it.
    rows = ((label.resource, label.key, json.dumps(label.value, ensure_ascii=False)) for label in labels)
    return columns([("RESOURCE", "KEY", "VALUE"), *rows])


@app.command(name="set")
def set_(
    resource: Resource,
    label: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", help="KEY is NAMESPACE/NAME, as acme/schema.", show_default=False),
    ],
    if_: If = None,
    if_absent: IfAbsent = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Set labels of one resource, all of them or none.

    With --if and --if-absent they are set only if the resource's labels are as somebody has read them.

    Example: quorate labels set topic:orders acme/schema=8 --if acme/schema=7
    """
    changes = [_entry(resource, text, "KEY=VALUE") for text in label]
    conditions = _conditions(resource, if_, if_absent)
    _alter(resource, changes, conditions, controllers, secret_file, is_dry_run=dry_run, plan=plan, as_json=as_json)


@app.command()
def remove(
    resource: Resource,
    key: Annotated[list[str], typer.Argument(metavar="KEY...", help="NAMESPACE/NAME.", show_default=False)],
    if_: If = None,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Remove labels of one resource, all of them or none.

    Example: quorate labels remove record:lease acme/owner --if acme/owner=me
    """
    changes = [_made(resource, one, None) for one in key]
    conditions = _conditions(resource, if_, None)
    _alter(resource, changes, conditions, controllers, secret_file, is_dry_run=dry_run, plan=plan, as_json=as_json)


def _alter(
    resource: str,
    changes: list[LabelEntry],
    conditions: list[LabelEntry],
    controllers: str | None,
    secret_file: Path | None,
    *,
    is_dry_run: bool,
    plan: Path | None,
    as_json: bool,
) -> None:
    is_tried = is_dry_run or plan is not None
    request = make(AlterLabelsRequest, changes=changes, conditions=conditions, validate_only=is_tried)
    response: AlterLabelsResponse = ask(controllers, secret_file, lambda client: client.labels.alter(request))
    if plan is not None:
        wanted = AlterLabelsRequest(changes=changes, conditions=conditions)
        write_plan(plan, "labels", [PlannedChange(alter_labels=wanted)], controllers, secret_file)
        return
    if as_json:
        sys.stdout.write(as_document(response) + "\n")
    elif response.changed:
        would = "would be " if is_dry_run else ""
        sys.stdout.write(f"Labels of {resource}: {response.changed} {would}changed.\n")
    else:
        sys.stdout.write(f"Labels of {resource}: they are so already.\n")


def _conditions(resource: str, if_: list[str] | None, if_absent: list[str] | None) -> list[LabelEntry]:
    present = [_entry(resource, text, "--if") for text in if_ or ()]
    return present + [_made(resource, key, None) for key in if_absent or ()]


def _entry(resource: str, text: str, where: str) -> LabelEntry:
    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text[:100]!r} is not KEY=VALUE", param_hint=where)
    return _made(resource, key, value)


def _made(resource: str, key: str, value: str | None) -> LabelEntry:
    return make(LabelEntry, resource=resource, key=key, value=value)
