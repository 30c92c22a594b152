"""`quorate recover`: a quorum whose majority is gone for good, rebuilt on the best directory that is left."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from quorate.scripts.cli.clusters.recover_rejoin import rejoin
from quorate.scripts.cli.clusters.recover_survey import SurveyedCluster, look, say, targets_of
from quorate.scripts.lost_majority.asking import ask_controllers
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.founding import apply_plan
from quorate.scripts.lost_majority.judgement import Judgement, judge
from quorate.scripts.lost_majority.plan import (
    RecoveryPlan,
    plan_from_backup,
    plan_from_survivors,
)
from quorate.scripts.lost_majority.verification import verify as verify_plan
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, Yes, confirm
from quorate.scripts.terminal.connecting import LocalDirectory, SecretFile
from quorate.scripts.terminal.output import format_time, reader_may_leave, show
from quorate.scripts.terminal.places.controllers import LOCAL_DIRECTORY, find_secret
from quorate.scripts.terminal.tables import columns

app = typer.Typer(
    help="Rebuild a quorum whose majority is lost for good: survey, plan, apply, verify. One controller: rejoin.",
    no_args_is_help=True,
)


Directories = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIRECTORY",
        help="Metadata directories of controllers, or copies of them. Default: those of the local cluster.",
        show_default=False,
    ),
]
OldControllers = Annotated[
    str | None,
    typer.Option(
        "--controllers",
        metavar="HOST:PORT,...",
        help="HTTP addresses of the controllers as they were. Default: those of the local cluster.",
        show_default=False,
    ),
]
Brokers = Annotated[
    str,
    typer.Option(metavar="HOST:PORT,...", help="HTTP addresses of brokers: how far they followed was committed."),
]
AsLeft = Annotated[
    str | None,
    typer.Option(
        "--as-left",
        metavar="ID,...",
        help="Controllers whose directories here are as they left them when they last ran, in place or copied since. "
        "Others are taken for copies from before: they count for what they hold, not for what their controllers may "
        "have acknowledged since. Default: those of the local cluster; of directories that are named, none.",
        show_default=False,
    ),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `quorate recover plan` wrote.")]


@app.command()
def survey(
    directories: Directories = None,
    local: LocalDirectory = LOCAL_DIRECTORY,
    controllers: OldControllers = None,
    brokers: Brokers = "",
    as_left: AsLeft = None,
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what every directory holds, which is the best, and what may be lost with it. Changes nothing.

    The best has the highest epoch at the end of its log, then the longest log. What is damaged is told; what is sound
    of it counts. A copy of a directory tells what it holds, and not what its controller has acknowledged since it was
    made: if the controller has not run since, say so (--as-left).

    Examples:

      quorate recover survey --dir var

      quorate recover survey /mnt/node-1 /mnt/copy-of-node-3 --as-left 1 --controllers 10.0.0.1:8080,10.0.0.2:8080
    """
    seen = look(directories, local, controllers, brokers, find_secret(secret_file))
    judgement = judge(seen.holdings, seen.answers, None, seen.as_left(as_left))
    with reader_may_leave():
        if as_json:
            sys.stdout.write(json.dumps(_survey_json(seen, judgement)) + "\n")
            return
        for line in _survey_lines(seen, judgement):
            typer.echo(line)


@app.command()
def plan(
    directories: Directories = None,
    local: LocalDirectory = LOCAL_DIRECTORY,
    voters: Annotated[
        list[str] | None,
        typer.Option(
            "--voter",
            metavar="ID=DIRECTORY",
            help="A voter of the new quorum and its metadata directory; again for each. Default: those of the local "
            "cluster. On other machines: name a directory here, and take it there when it is made.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[Path | None, typer.Option(help="Found it on this directory, even if another is better.")] = None,
    backup: Annotated[
        Path | None, typer.Option(help="Take the state of this directory or checkpoint instead, however old.")
    ] = None,
    offset: Annotated[int | None, typer.Option("--at", min=0, help="With --backup: the state at this offset.")] = None,
    controllers: OldControllers = None,
    brokers: Brokers = "",
    as_left: AsLeft = None,
    out: Annotated[Path, typer.Option(help="File that the plan is written to.")] = Path("recovery.json"),
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Write down how the quorum is to be rebuilt. Changes nothing. Controllers that still run are stopped first.

    All voters begin with the seed's log, with the right to vote, under new directory ids, in an epoch 1,000 above the
    highest that anybody knew, as a new generation: whoever comes back with an old directory is refused. Where records
    may be lost, and with --backup, the state goes on at offsets above everything that was ever seen, and with epochs of
    partitions and producer ids that nobody can have been given: apply then needs --accept-loss.

    Example: quorate recover plan --dir var --out recovery.json
    """
    if offset is not None and backup is None:
        raise typer.BadParameter("--at says where in a backup: name it with --backup")
    if seed is not None and backup is not None:
        raise typer.BadParameter("--seed and --backup exclude each other")
    seen = look(directories, local, controllers, brokers, find_secret(secret_file))
    wanted_seed = None if seed is None else str(seed.resolve())
    judgement = judge(seen.holdings, seen.answers, wanted_seed, seen.as_left(as_left))
    targets = targets_of(voters, local, seen)
    if backup is not None:
        made = plan_from_backup(backup.resolve(), offset, judgement, seen.holdings, targets)
    else:
        made = plan_from_survivors(judgement, seen.holdings, targets)
    made.save(out)
    _show_plan(made, out, as_json=as_json)


@app.command()
def apply(
    path: PlanFile,
    yes: Yes = False,
    accept_loss: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="OFFSET",
            help="Accept that acknowledged records from this offset on are lost, or may be: as the plan says.",
            show_default=False,
        ),
    ] = None,
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Make the directories of the new quorum, and put them in place of the old ones, which are kept beside them.

    Refused while a majority of the old controllers answers, while a process runs on one of the directories, and when a
    directory has changed since the plan was made. Broken off, it can be started again and goes on. A plan by which
    acknowledged records are lost, or may be, is refused (exit code 1) without --accept-loss and the offset from which
    on; --yes is not enough.

    Examples:

      quorate recover apply recovery.json --yes

      quorate recover apply recovery.json --accept-loss 62
    """
    made = RecoveryPlan.load(path)
    _require_consent(made, accept_loss)
    _require_no_majority(made, find_secret(secret_file))
    if not yes:
        for line in _plan_lines(made):
            typer.echo(line, err=True)
    confirm("found the quorum anew", yes=yes)
    found = apply_plan(made, say)
    if as_json:
        rows = [{"node_id": one.node_id, "directory": one.directory, "kept": one.kept} for one in found]
        sys.stdout.write(json.dumps({"generation": made.generation, "voters": rows}) + "\n")
        return
    for one in found:
        was = "" if one.kept is None else f"; what was there is kept in {one.kept}"
        typer.echo(f"Node {one.node_id}: {one.directory}{was}")
    for line in _next_steps(made):
        typer.echo(line)
    typer.echo(f"Then: quorate recover verify {shlex.quote(str(path))}")


@app.command()
def verify(path: PlanFile, secret_file: SecretFile = None, as_json: AsJson = False) -> None:
    """Check that the new quorum is what the plan said: directories, state, and the running controllers.

    Exit code 0: all of it holds; 1: something does not; 3: no controller answers yet, or none is active.

    Example: quorate recover verify recovery.json
    """
    seen = verify_plan(RecoveryPlan.load(path), find_secret(secret_file))
    show(seen, columns([(one.verdict, one.what, one.detail) for one in seen.findings]), as_json=as_json)
    codes = {"holds": exit_codes.DONE, "fails": exit_codes.REFUSED, "unknown": exit_codes.UNREACHABLE}
    raise typer.Exit(codes[seen.verdict])


app.command()(rejoin)


def _require_consent(made: RecoveryPlan, accepted: int | None) -> None:
    """A person has to have seen from where on records may be lost.

    Raises:
        RecoveryError: it was not said, or another offset was.
    """
    if made.lost_from == accepted:
        return
    if made.lost_from is None:
        raise RecoveryError(f"no record is lost by this plan: leave out --accept-loss {accepted}; nothing was changed")
    raise RecoveryError(
        f"by this plan records from offset {made.lost_from} on, which were acknowledged, are lost or may be (see its"
        f" sentences): to accept that say --accept-loss {made.lost_from}; nothing was changed"
    )


def _require_no_majority(made: RecoveryPlan, secret: bytes | None) -> None:
    answering = ask_controllers(made.controllers, secret, made.local_cluster)
    if len(answering) > made.voter_count // 2:
        urls = ", ".join(answer.url for answer in answering)
        raise RecoveryError(
            f"{len(answering)} of {made.voter_count} controllers answer ({urls}): a majority needs no recovery, and two"
            " quorums of one cluster would be the end of it; nothing was changed"
        )


# --- showing -----------------------------------------------------------------------------------------


def _survey_lines(seen: SurveyedCluster, judgement: Judgement) -> list[str]:
    rows = [("NODE", "EPOCH", "LOG", "COMMITTED", "CHECKPOINT", "LAST-RECORD", "VOTES", "STATE", "DIRECTORY")]
    for one in seen.holdings:
        newest = one.checkpoints[-1] if one.checkpoints else None
        rows.append((
            "?" if one.node_id is None else str(one.node_id),
            str(one.end_epoch),
            f"{one.start_offset}..{one.end_offset}",
            "-" if one.commit is None else str(one.commit),
            "-" if newest is None else str(newest.end_offset),
            format_time(one.end_time_ms) if one.end_time_ms else "-",
            "no" if one.vote_epoch is None else f"epoch {one.vote_epoch}",
            "damaged" if one.damage else "whole",
            one.path + (" (seed)" if one is judgement.seed else ""),
        ))  # fmt: skip
    answers = [
        f"{one.url} answers: epoch {one.epoch}, committed up to {one.high_watermark}"
        + ("" if one.active_id is None else f", follows {one.active_id}")
        for one in seen.answers
    ]
    return [*columns(rows), *answers, f"Seed: {judgement.seed.name}", *(f"- {line}" for line in judgement.sentences)]


def _survey_json(seen: SurveyedCluster, judgement: Judgement) -> dict[str, object]:
    return {
        "directories": [one.model_dump() for one in seen.holdings],
        "answers": [one.model_dump() for one in seen.answers],
        "seed": judgement.seed.path,
        "voters": judgement.voters,
        "intact": judgement.intact,
        "highest_epoch": judgement.highest_epoch,
        "known_commit": judgement.known_commit,
        "is_complete": judgement.is_complete,
        "sentences": judgement.sentences,
    }


def _show_plan(plan: RecoveryPlan, out: Path, *, as_json: bool) -> None:
    with reader_may_leave():
        if as_json:
            sys.stdout.write(plan.model_dump_json() + "\n")
            return
        for line in _plan_lines(plan):
            typer.echo(line)
        typer.echo(f"Written: {out}. Read it, then: quorate recover apply {shlex.quote(str(out))}")


def _plan_lines(plan: RecoveryPlan) -> list[str]:
    return [
        f"Cluster {plan.cluster_id}: generation {plan.generation}, from {plan.source}",
        f"State at offset {plan.state_offset}, digest {plan.digest}",
        f"The log goes on at offset {plan.end_offset}, in epoch {plan.generation + 1} or above",
        *(f"Voter {one.node_id}: {one.directory}, directory id {one.directory_id}" for one in plan.voters),
        *(f"- {line}" for line in plan.sentences),
        *_consent_lines(plan),
    ]


def _consent_lines(plan: RecoveryPlan) -> list[str]:
    if plan.lost_from is None:
        return []
    return [f"Acknowledged records from offset {plan.lost_from} on are lost or may be: --accept-loss {plan.lost_from}"]


def _next_steps(plan: RecoveryPlan) -> list[str]:
    if plan.local_cluster is not None:
        return [f"Start it: quorate up --dir {plan.local_cluster}"]
    ids = "; ".join(f"voter {one.node_id}: directory_id = {one.directory_id}" for one in plan.voters)
    return [f"In the settings of every controller: {ids}", "Take each directory to its machine, and start them."]
