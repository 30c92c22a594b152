"""`quorate recover rejoin`: a new directory for one controller that lost its own, without a vote."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.ids import ZERO_UUID, uuid_from_text
from quorate.scripts.cluster.formatting import format_to_join
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.own_machines import ask_generation
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.lost_majority.directory_survey import local_directories, survey_directory
from quorate.scripts.terminal.connecting import LocalDirectory
from quorate.scripts.terminal.places.controllers import LOCAL_DIRECTORY


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
        int | None,
        typer.Option(
            min=0,
            help="With --config: of the quorum, as the others' meta.properties say. Default: the others are asked.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a directory for one controller that lost its own, while a majority of the others works.

    It has no vote: started on it, the controller catches up with the others first, from a checkpoint if it must. It is
    another directory, with an id of its own, that names the one of the settings as the one it replaces: no settings
    are to be changed. With --config the others are asked whether the quorum was rebuilt (`quorate recover apply`).
    Keep the old directory off, should it turn up again.

    Examples:

      quorate recover rejoin --dir var --node-id 2

      quorate recover rejoin --config /etc/quorate/controller-2.toml
    """
    if config is not None:
        if node_id is not None:
            raise typer.BadParameter("--config says which controller it is: leave out --node-id")
        lost = _of_settings(config, cluster_id, generation)
    else:
        lost = _of_local_cluster(local, node_id)
    replaces = ZERO_UUID if lost.directory_id is None else uuid_from_text(lost.directory_id)
    made = format_to_join(lost.directory, lost.cluster_id, lost.node_id, replaces, lost.generation)
    typer.echo(f"{lost.directory} is ready, as directory {made}.")
    typer.echo(f"Start controller {lost.node_id}: it votes when it has caught up.")


class _Lost(NamedTuple):
    """The facts known about a directory that is gone."""

    directory: Path
    cluster_id: str
    node_id: int
    #: As the settings name it; None with static voters.
    directory_id: str | None
    generation: int


def _of_settings(config: Path, cluster_id: str | None, generation: int | None) -> _Lost:
    settings = load_settings(ControllerSettings, config)
    known = settings.cluster_id or cluster_id
    if known is None:
        raise typer.BadParameter("of which cluster? The settings do not say", param_hint="--cluster-id")
    of = ask_generation(settings, known) if generation is None else generation
    if of is None:
        sys.stderr.write(
            "quorate: no other controller answers: this is for a quorum that was never rebuilt; if it was, remove"
            " the directory and say --generation, as the others' meta.properties do\n"
        )
    return _Lost(settings.directory, known, settings.node_id, settings.voter.directory_id, of or 0)


def _of_local_cluster(local: Path, node_id: int | None) -> _Lost:
    cluster = ClusterPlan.load(local)
    planned = next((one for one in cluster.controllers if one.id == node_id), None) if cluster else None
    if cluster is not None and planned is None and node_id is not None:
        there = ", ".join(str(one.id) for one in cluster.controllers)
        raise typer.BadParameter(f"the local cluster in {local} has controllers {there}", param_hint="--node-id")
    if cluster is None or planned is None:
        named = "which controller" if cluster is not None else f"{local} holds no local cluster: which controller"
        raise typer.BadParameter(f"{named}? Say --node-id of a local cluster, with --dir, or --config")
    generation = max((survey_directory(path).generation for path in local_directories(local, cluster)), default=0)
    return _Lost(controller_directory(local, planned), cluster.cluster_id, planned.id, planned.directory_id, generation)
