"""`quorate recover rejoin`: a new directory for one controller that lost its own, without a vote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.settings import ControllerSettings
from controller.settings_source import load_settings
from metadata_log.ids import ZERO_UUID, uuid_from_text
from scripts.cli.connecting import LOCAL_DIRECTORY, LocalDirectory
from scripts.cluster.formatting import format_to_join
from scripts.cluster.making import controller_directory
from scripts.cluster.plan import ClusterPlan
from scripts.recovery.holdings import local_directories, survey_directory


def rejoin(
    node_id: Annotated[
        int | None, typer.Option(min=0, help="The controller of the local cluster whose directory is gone.")
    ] = None,
    local: LocalDirectory = LOCAL_DIRECTORY,
    config: Annotated[
        Path | None,
        typer.Option(help="Settings of a controller on a machine of its own, whose directory is gone: a TOML file."),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option(help="With --config that does not say it: as the others' meta.properties do.")
    ] = None,
    generation: Annotated[
        int, typer.Option(min=0, help="With --config: of the quorum, as the others' meta.properties say.")
    ] = 0,
) -> None:
    """Make a directory for one controller that lost its own, while a majority of the others works.

    It has no vote: started on it, the controller catches up with the others first, from a checkpoint if it must. It is
    another directory, with an id of its own, that names the one of the settings as the one it replaces: no settings
    are to be changed. Keep the old one off, should it turn up again.

    Examples:

      quorate recover rejoin --dir var --node-id 2

      quorate recover rejoin --config /etc/quorate/controller-2.toml
    """
    if config is not None:
        if node_id is not None:
            raise typer.BadParameter("--config says which controller it is: leave out --node-id")
        settings = load_settings(ControllerSettings, config)
        directory, cluster_id, node_id = settings.directory, settings.cluster_id or cluster_id, settings.node_id
        replaces = settings.voter.directory_id
        if cluster_id is None:
            raise typer.BadParameter("of which cluster? The settings do not say", param_hint="--cluster-id")
    else:
        cluster = ClusterPlan.load(local)
        planned = next((one for one in cluster.controllers if one.id == node_id), None) if cluster else None
        if cluster is None or planned is None:
            named = "controller" if node_id is None else f"controller {node_id}"
            raise typer.BadParameter(f"which {named}? Say --node-id of the local cluster in {local}, or --config")
        directory, cluster_id, node_id = controller_directory(local, planned), cluster.cluster_id, planned.id
        replaces = planned.directory_id
        generation = max(
            (survey_directory(path).generation for path in local_directories(local, cluster)), default=generation
        )
    replaced = ZERO_UUID if replaces is None else uuid_from_text(replaces)
    made = format_to_join(directory, cluster_id, node_id, replaced, generation)
    typer.echo(
        f"{directory} is ready, as directory {made}: start controller {node_id}. It votes when it has caught up."
    )
