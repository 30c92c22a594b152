"""`quorate quorum`: the controllers' agreement, as Kafka's kafka-metadata-quorum shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from quorate.controller.api.resources import ControllerReply, QuorumReply, VoterReply
from quorate.controller.decisions.metadata_version import METADATA_VERSION_FEATURE
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import ago, counted, or_dash, show
from quorate.scripts.terminal.tables import Wide, columns, table

app = typer.Typer(help="Who leads the controllers, in which epoch, and how far each voter is.", no_args_is_help=True)


@app.command()
def describe(
    replication: Annotated[bool, typer.Option("--replication", help="Voter by voter, in a table.")] = False,
    wide: Wide = False,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show leader, epoch, high watermark, and how far the voters are behind.

    What the voters have is known to the active controller; where none answers, it is left open. With --at or --from
    leader, epoch and voters are those of the log; how far each voter was no log says.

    Example: quorate quorum describe --replication
    """
    reply = ask(controllers, secret_file, lambda client: client.describe_quorum(), path=from_path, at=at)
    lines = _replication(reply, wide=wide) if replication else columns(list(_status(reply)))
    show(reply, lines, as_json=as_json)


def _status(quorum: QuorumReply) -> Iterator[tuple[str, str]]:
    yield "active controller", or_dash(quorum.active_id)
    yield "epoch", str(quorum.epoch)
    if quorum.is_past:
        yield "state", f"at offset {quorum.applied_offset}"
        yield "voters", ",".join(str(voter.node_id) for voter in quorum.voters) or "-"
        return
    yield "high watermark", str(quorum.high_watermark)
    yield "log", f"{quorum.log_start_offset} to {quorum.log_end_offset}"
    followers = [voter for voter in quorum.voters if voter.node_id != quorum.active_id]
    lags = [voter.lag_records for voter in followers if voter.lag_records is not None]
    yield "max follower lag", "-" if not lags else counted(max(lags), "record")
    ages = [voter.last_caught_up_ms for voter in followers if voter.last_caught_up_ms is not None]
    yield "max follower lag time", ago(max(ages, default=None))
    yield "voters", ",".join(str(voter.node_id) for voter in quorum.voters)
    for voter in quorum.voters:
        if voter.role == "non-voter":
            yield "no vote", f"controller {voter.node_id}: {_why_no_vote(voter)}"
    yield "as seen by", f"controller {quorum.observed_by}"


def _why_no_vote(voter: VoterReply) -> str:
    """See docs/architecture.md: a forgotten vote may still be counted by whoever has not answered since."""
    waits_for = voter.vote_waits_for
    if not waits_for:
        return "its memory was lost; it is catching up"
    others = f"controller {waits_for[0]} has" if len(waits_for) == 1 else f"controllers {_ids(waits_for)} have"
    return f"its memory was lost; waits until {others} answered the active one"


def _ids(node_ids: list[int]) -> str:
    return ", ".join(map(str, node_ids))


#: What the active controller alone knows.
_OF_NOW: Final = ("LOG-END(OFFSET)", "LAG(RECORDS)", "LAST-CONTACT", "LAST-CAUGHT-UP", "HTTP")


def _replication(quorum: QuorumReply, *, wide: bool) -> list[str]:
    return table(("NODE", "DIRECTORY", "STATUS", *_OF_NOW), map(_voter, quorum.voters), wide=wide, may_hide=_OF_NOW)


def _voter(voter: VoterReply) -> tuple[str, ...]:
    return (
        str(voter.node_id),
        "-" if voter.directory_id is None else uuid_text(voter.directory_id),
        voter.role,
        or_dash(voter.log_end_offset),
        or_dash(voter.lag_records),
        ago(voter.last_contact_ms),
        ago(voter.last_caught_up_ms),
        voter.http,
    )


@app.command(name="controllers")
def list_controllers(
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show what the controllers have registered: process, listeners, and the metadata versions they can lead at.

    While a controller of the quorum is not registered no feature level is raised.

    Example: quorate quorum controllers
    """
    reply = ask(controllers, secret_file, lambda client: client.describe_controllers(), path=from_path, at=at)
    rows = [("NODE", "VOTER", "INCARNATION", "METADATA.VERSION", "LISTENERS"), *map(_controller, reply.controllers)]
    show(reply, columns(rows), as_json=as_json)


def _controller(controller: ControllerReply) -> tuple[str, ...]:
    levels = [one for one in controller.features if one.name == METADATA_VERSION_FEATURE]
    return (
        str(controller.id),
        "yes" if controller.is_voter else "no",
        "not registered" if controller.incarnation_id is None else uuid_text(controller.incarnation_id),
        ",".join(f"{one.min_supported_version}-{one.max_supported_version}" for one in levels) or "-",
        ", ".join(f"{at.name}://{at.host}:{at.port}" for at in controller.listeners) or "-",
    )
