"""The words in which commands tell what is wrong with partitions, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quorate.controller.api.answers.explain_models import (
    ExplainedCause,
    ExplainedController,
    ExplainedReassignment,
    ExplainedRemedy,
    ExplainReply,
)
from quorate.scripts.terminal.output import ago, counted, format_time

_WHY: Final = {
    "BROKER_DOWN": "is down",
    "BROKER_LEAVING": "is being shut down",
    "BROKER_UNKNOWN": "is not registered",
    "DIRECTORY_OFFLINE": "runs without their log directory",
    "NOT_CAUGHT_UP": "has not caught up",
}


#: Of one replica, where ``_WHY`` is of a broker.
_REPLICA: Final = _WHY | {"DIRECTORY_OFFLINE": "runs without its log directory", "NOT_CAUGHT_UP": "copies"}
_ROLE: Final = {
    "active": "the active one",
    "standby": "a voter and stands by",
    "non-voter": "without its vote",
    "unreachable": "unreachable",
    "unknown": "a voter of which nothing is known",
}


def explanation_lines(reply: ExplainReply) -> Iterator[str]:
    """Symptoms, each with its causes, and what to do."""
    if reply.controller is not None:
        yield from _controller_lines(reply.controller)
    elif not reply.symptoms:
        yield f"Nothing is wrong with {counted(reply.partitions, 'partition')}."
    if reply.reassignment is not None:
        yield from _reassignment_lines(reply.reassignment)
    for symptom in reply.symptoms:
        yield f"{symptom.message}  [{symptom.code}]"
        if not symptom.partitions:
            continue  # it is about a controller
        yield f"    {counted(symptom.topics, 'topic')}, {symptom.share:.1%} of {counted(reply.partitions, 'partition')}"
        yield from (f"    because {cause_words(cause)}" for cause in symptom.causes)
        names = [f"{topic.topic}-{number}" for topic in symptom.named for number in topic.partitions]
        more = symptom.partitions - len(names)
        if names:
            yield f"    {', '.join(names)}{f' and {more} more' if more else ''}"
    if reply.remedies:
        yield "What to do, in this order:"
    for place, remedy in enumerate(reply.remedies, start=1):
        yield f"{place:4}. {remedy.message}  [{remedy.code}, risk {remedy.risk}]"
        if remedy.replicas:
            yield f"      {counted(remedy.replicas, 'replica')} in sync again once caught up"
        if command := command_words(remedy):
            yield f"      {command}"


def command_words(remedy: ExplainedRemedy) -> str:
    """A remedy's command, or what starts the process that it names; empty where there is none.

    No controller knows how the processes of others are started.
    """
    if remedy.code == "START_BROKER":
        return start_words([f"broker-{remedy.broker}"])
    if remedy.code == "START_CONTROLLER" and remedy.controller is not None:
        return start_words([f"controller-{remedy.controller}"])
    return remedy.command


def start_words(names: Iterable[str]) -> str:
    """The command that starts processes, by their names in a local cluster, and what does it in others."""
    return f"quorate node start {' '.join(names)}  (a cluster of quorate up; elsewhere: its service, where it ran)"


def _reassignment_lines(moving: ExplainedReassignment) -> Iterator[str]:
    """From where to where, how far it is, and each replica that it is to have."""
    since = "" if moving.since_ms is None else f" since {format_time(moving.since_ms)}"
    yield f"the reassignment goes from {_ids(moving.before)} to {_ids(moving.target)}{since}  [{moving.progress}]"
    if moving.leader is None:
        yield "    it has no leader: there is nobody to copy from"
    for replica in moving.replicas:
        added = " (added)" if replica.is_added else ""
        how = "is in sync"
        if replica.cause is not None:
            since = "" if replica.since_ms is None else f" since {format_time(replica.since_ms)}"
            waits = ", and the reassignment waits for it" if replica.is_awaited else ""
            how = f"{_REPLICA[replica.cause]}{since}{waits}"
        yield f"    broker {replica.broker}{added} {how}"


def _controller_lines(found: ExplainedController) -> Iterator[str]:
    """Its state, and the quorum's without it."""
    voter, margin = found.voter, found.quorum
    if voter is None or margin is None:
        yield f"controller {found.node_id} is registered and does not belong to the quorum: nothing waits for it"
        return
    is_heard = voter.last_contact_ms is not None and voter.role != "active"
    heard = f", last contact {ago(voter.last_contact_ms)}" if is_heard else ""
    level = ""
    if voter.role == "unreachable" and voter.lag_records is None:
        level = ", how far its log goes is unknown"
    elif voter.lag_records:
        level = f", {counted(voter.lag_records, 'record')} behind"
        if voter.last_caught_up_ms is not None:
            level += f", level {ago(voter.last_caught_up_ms)}"
    yield f"controller {found.node_id} is {_ROLE[voter.role]}{heard}{level}"
    if found.if_lost:
        yield from (f"    without it: {reason.message}" for reason in found.if_lost)
    else:
        left = f"{counted(len(margin.left), 'voter')} of {margin.voters} would be left"
        spare = f"{margin.may_fail_then} more can fail before writes stop"
        yield f"    without it {left}, {margin.majority} are needed: {spare}"
    if margin.moves_leadership and len(margin.left) >= margin.majority:
        yield "    it is active: another one would be elected"


def _ids(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def cause_words(cause: ExplainedCause) -> str:
    """One broker, why its replicas are missing, and in how many partitions."""
    since = "" if cause.since_ms is None else f" since {format_time(cause.since_ms)}"
    return f"broker {cause.broker} {_WHY[cause.code]}{since}: {counted(cause.partitions, 'partition')}"
