"""`quorate features`: the levels of a cluster's features."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.protocol.features import FeatureUpdate, UpdateFeaturesRequest
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo, whole_number
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Show, raise and lower the levels of a cluster's features.", no_args_is_help=True)

UpgradeType = Literal["UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]
_LEVEL_MAX = 2**15 - 1

Levels = Annotated[
    list[str], typer.Argument(metavar="FEATURE=LEVEL...", help="As metadata.version=30.", show_default=False)
]


@app.command()
def describe(
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show the levels that hold, and those that the controllers can lead at.

    Example: quorate features describe
    """
    described = ask(
        controllers, secret_file, lambda client: client.describe_features(is_linearizable=True), path=from_path, at=at
    )
    rows = [("FEATURE", "LEVEL", "SUPPORTED")]
    for one in described.features:
        supported = f"{one.min_supported_version}-{one.max_supported_version}"
        rows.append((one.feature, str(one.finalized_version_level), supported))
    show(described, columns(rows), as_json=as_json)


@app.command()
def upgrade(
    levels: Levels,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Raise levels, all of them or none.

    Example: quorate features upgrade metadata.version=30
    """
    _update(levels, "UPGRADE", controllers, secret_file, is_dry_run=dry_run, plan=plan)


@app.command()
def downgrade(
    levels: Levels,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Also where metadata might be lost.")] = False,
    dry_run: DryRun = False,
    plan: PlanTo = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Lower levels, all of them or none, and say what is lost with them. Level 0 turns a feature off.

    Example: quorate features downgrade eligible.leader.replicas.version=0 --dry-run
    """
    kind: UpgradeType = "UNSAFE_DOWNGRADE" if unsafe else "SAFE_DOWNGRADE"
    _update(levels, kind, controllers, secret_file, is_dry_run=dry_run, plan=plan)


def _update(
    levels: list[str],
    kind: UpgradeType,
    controllers: Controllers,
    secret_file: SecretFile,
    *,
    is_dry_run: bool,
    plan: Path | None,
) -> None:
    updates = [
        FeatureUpdate(feature=name, max_version_level=level, upgrade_type=kind) for name, level in _pairs(levels)
    ]
    is_dry_run = is_dry_run or plan is not None
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=is_dry_run)
    try:
        response = ask(controllers, secret_file, lambda client: client.update_features(request))
    except ApiError as refused:
        sys.stdout.writelines(_losses(refused.details.get("losses", ()), "would be lost"))
        raise
    for result in response.results:
        verb = "can go" if is_dry_run else "went"
        sys.stdout.write(f"{result.feature} {verb} from {result.level_before} to {result.level_after}.\n")
        losses = [loss.model_dump() for loss in result.losses]
        sys.stdout.writelines(_losses(losses, "would be lost" if is_dry_run else "lost"))
    if plan is not None:
        change = PlannedChange(update_features=UpdateFeaturesRequest(feature_updates=updates))
        made_by = "features upgrade" if kind == "UPGRADE" else "features downgrade"
        write_plan(plan, made_by, [change], controllers, secret_file)


def _losses(losses: Any, verb: str) -> Iterator[str]:
    for loss in losses:
        if isinstance(loss, Mapping):
            yield f"  {verb} from level {loss.get('level')} down: {loss.get('count')} {loss.get('what')}\n"


def _pairs(levels: list[str]) -> Iterator[tuple[str, int]]:
    for text in levels:
        name, _, digits = text.rpartition("=")
        level = whole_number(digits, _LEVEL_MAX)
        if not name or level is None:
            raise typer.BadParameter(f"{text[:300]!r} is not FEATURE=LEVEL", param_hint="FEATURE=LEVEL")
        yield name, level
