"""The words in which commands tell what is wrong with partitions, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.controller.api.answers.explain_models import ExplainedCause, ExplainReply
from quorate.scripts.terminal.output import counted, format_time

_WHY: Final = {
    "BROKER_DOWN": "is down",
    "BROKER_LEAVING": "is being shut down",
    "BROKER_UNKNOWN": "is not registered",
    "DIRECTORY_OFFLINE": "runs without their log directory",
    "NOT_CAUGHT_UP": "has not caught up",
}


def explanation_lines(reply: ExplainReply) -> Iterator[str]:
    """Symptoms, each with its causes, and what to do."""
    if not reply.symptoms:
        yield f"Nothing is wrong with {counted(reply.partitions, 'partition')}."
    for symptom in reply.symptoms:
        yield f"{symptom.message}  [{symptom.code}]"
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
        if remedy.command:
            yield f"      {remedy.command}"


def cause_words(cause: ExplainedCause) -> str:
    """One broker, why its replicas are missing, and in how many partitions."""
    since = "" if cause.since_ms is None else f" since {format_time(cause.since_ms)}"
    return f"broker {cause.broker} {_WHY[cause.code]}{since}: {counted(cause.partitions, 'partition')}"
