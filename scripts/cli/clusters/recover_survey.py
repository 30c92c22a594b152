"""Looks at what is left of a quorum, for `quorate recover`: its directories, and whoever of it answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.lost_majority.asking import ask_brokers, ask_controllers
from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory, local_directories, survey_directory
from quorate.scripts.lost_majority.judgement import RunningController
from quorate.scripts.lost_majority.plan import Targets
from quorate.scripts.terminal.arguments import broker_ids
from quorate.scripts.terminal.places.controllers import full_urls

_DIRECTORIES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class SurveyedCluster:
    """The results of a survey, and the cluster of `quorate up` that they are about, if any."""

    holdings: list[SurveyedDirectory]
    answers: list[RunningController]
    controllers: tuple[str, ...]
    plan: ClusterPlan | None

    def as_left(self, text: str | None) -> set[int] | None:
        """Of which controllers somebody says that their directories are as they left them; None: of all."""
        if text is None:
            return set() if self.plan is None else None
        said, here = set(broker_ids(text, "--as-left")), {one.node_id for one in self.holdings}
        if not said <= here:
            raise typer.BadParameter(f"of controller {min(said - here)} no directory is here", param_hint="--as-left")
        return said


def look(
    directories: Sequence[Path] | None, local: Path, controllers: str | None, brokers: str, secret: bytes | None
) -> SurveyedCluster:
    """Read the directories, or those of the local cluster, and ask who is named, or belongs to it.

    Raises:
        typer.BadParameter: nothing to look at, or too much. RecoveryError: a broker that was named does not answer.
    """
    if directories and len(directories) > _DIRECTORIES_MAX:
        raise typer.BadParameter(f"{len(directories)} directories; {_DIRECTORIES_MAX} at most")
    cluster = None if directories else ClusterPlan.load(local)
    if cluster is None and not directories:
        raise typer.BadParameter(f"which directories? There is no local cluster in {local}: name some, or --dir")
    paths = list(directories or []) if cluster is None else local_directories(local, cluster)
    if controllers is not None:
        urls = full_urls([part for part in controllers.split(",") if part.strip()], local)
    else:
        urls = () if cluster is None else cluster.controller_urls
    holdings = []
    for number, path in enumerate(paths):
        say(number, len(paths), f"reading {path}")
        holdings.append(survey_directory(path.resolve()))
    followers = full_urls([part for part in brokers.split(",") if part.strip()], local)
    answers = ask_controllers(urls, secret, local) + ask_brokers(followers, secret, local)
    return SurveyedCluster(holdings, answers, urls, cluster)


def targets_of(voters: Sequence[str] | None, local: Path, seen: SurveyedCluster) -> Targets:
    """The voters of the new quorum: those that are named, or the local cluster's.

    Raises:
        typer.BadParameter: nobody says who is to vote, or of whose quorum.
    """
    if not seen.controllers:
        raise typer.BadParameter(
            "whose quorum is it? Name its controllers with --controllers: apply refuses while a majority answers"
        )
    if voters:
        found = sorted(_voter(text) for text in voters)
        if len({node for node, _ in found}) < len(found) or len({path for _, path in found}) < len(found):
            raise typer.BadParameter("--voter names an id or a directory twice")
        return Targets(voters=tuple(found), controllers=seen.controllers)
    if seen.plan is None:
        raise typer.BadParameter("who is to vote? Say --voter ID=DIRECTORY for each")
    paths = ((one.id, str(controller_directory(local, one).resolve())) for one in seen.plan.controllers)
    return Targets(voters=tuple(sorted(paths)), controllers=seen.controllers, local_cluster=str(local.resolve()))


def _voter(text: str) -> tuple[int, str]:
    node, separator, path = text.partition("=")
    if not separator or not path or not node.isascii() or not node.isdigit() or int(node) >= 1 << 31:
        raise typer.BadParameter(f"--voter {text!r}: say it as ID=DIRECTORY")
    return int(node), str(Path(path).resolve())


def say(done: int, of: int, what: str) -> None:
    """Tell a person how far it is."""
    if sys.stderr.isatty():
        sys.stderr.write(f"quorate: [{done}/{of}] {what}\n")
