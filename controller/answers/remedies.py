"""Things to do about what is wrong, each with what it would bring: tried on a copy of the state, one after another."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from quorate.controller.answers.election_costs import RISKS, elections_of, how_led, risk_of
from quorate.controller.answers.naming import named_rows
from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.api.answers.explain_models import ExplainedCause, ExplainedRemedy, RemedyCode
from quorate.controller.api.resources import ElectionsReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.engine.head_counters import Elected
from quorate.metadata_log.errors import ApiError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows

#: Brokers that are down and tried at most, those first that explain most: each is tried after each.
_TRIED_MAX: Final = 6
#: Partitions that one types; more go into a file.
_TYPED_MAX: Final = 10


class _Tried(NamedTuple):
    """A broker's return, rehearsed."""

    broker: int
    after: Rehearsal
    #: Of the rows that were asked about, those that have a leader by that.
    led_again: Rows


def remedies_for(
    image: MetadataImage,
    config: ControllerConfig,
    offline: Rows,
    leaders: Sequence[ExplainedCause],
    replicas: Sequence[ExplainedCause],
    check: Callable[[], None] = lambda: None,
) -> list[ExplainedRemedy]:
    """Things to do, in the order in which they bring most.

    Args:
        offline: rows without a leader that were asked about, ascending.
        leaders: who is missed in these.
        replicas: who is missed as a replica, in all rows that were asked about.
        check: see ``Rehearsal``.
    """
    remedies, rest = _starts(Rehearsal(image, config, check=check), offline, leaders, replicas)
    remedies += [_by_hand(cause) for cause in replicas if cause.code != "BROKER_DOWN"]
    if len(rest.offline):
        remedies += _unclean(rest)
    return remedies


class _Rest(NamedTuple):
    """All that no start brings back."""

    rehearsal: Rehearsal
    offline: Rows


def _starts(
    rehearsal: Rehearsal, offline: Rows, leaders: Sequence[ExplainedCause], replicas: Sequence[ExplainedCause]
) -> tuple[list[ExplainedRemedy], _Rest]:
    """Start all that are down: each time the one that costs least, and of these the one that brings most."""
    missed = {cause.broker: cause.partitions for cause in replicas if cause.code == "BROKER_DOWN"}
    of_leaders = dict.fromkeys(cause.broker for cause in leaders if cause.code == "BROKER_DOWN")
    waiting = list(of_leaders | dict.fromkeys(missed))
    remedies = []
    for _ in range(_TRIED_MAX):
        if not len(offline):
            break
        tried = [one for broker in waiting[:_TRIED_MAX] if (one := _try(rehearsal, broker, offline)) is not None]
        if not tried:
            break
        best = max(tried, key=_value)
        rehearsal = best.after
        offline = np.setdiff1d(offline, best.led_again, assume_unique=True)
        waiting.remove(best.broker)
        remedies.append(_start(best.broker, len(best.led_again), missed.get(best.broker, 0), rehearsal.elected))
    remedies += [_start(broker, 0, missed.get(broker, 0), Elected()) for broker in waiting]
    return remedies, _Rest(rehearsal, offline)


def _value(tried: _Tried) -> tuple[bool, int, int]:
    """One that brings nothing by itself comes last: what it loses may still be what the next one waits for."""
    gain = len(tried.led_again)
    return gain > 0, -RISKS.index(risk_of(tried.after.elected)), gain


def _start(broker: int, led_again: int, replicas: int, elected: Elected) -> ExplainedRemedy:
    brings = f"{_count(led_again)} led again{how_led(elected)}" if led_again else "it is down"
    return ExplainedRemedy(
        code="START_BROKER",
        message=f"start broker {broker}: {brings}",
        command="",
        broker=broker,
        led_again=led_again,
        replicas=replicas,
        elections=elections_of(elected),
        risk=risk_of(elected),
    )


def _try(rehearsal: Rehearsal, broker: int, offline: Rows) -> _Tried | None:
    after = rehearsal.again(offline)
    try:
        after.start(broker)
    except ApiError:  # its registration would be refused as it is: nobody can say how it comes back
        return None
    return _Tried(broker, after, np.setdiff1d(offline, after.image.partitions.rows_without_leader()))


def _unclean(rest: _Rest) -> list[ExplainedRemedy]:
    after = rest.rehearsal.again(rest.offline)
    after.elect_uncleanly(rest.offline)
    led_again = np.setdiff1d(rest.offline, after.image.partitions.rows_without_leader())
    if not len(led_again):
        return []
    return [
        ExplainedRemedy(
            code="ELECT_UNCLEANLY",
            message=f"if nobody of these comes back: {_count(len(led_again))} led again{how_led(after.elected)}",
            command=_election(rest.rehearsal.image, led_again),
            broker=None,
            led_again=len(led_again),
            replicas=0,
            elections=elections_of(after.elected),
            risk="UNCLEAN",
        )
    ]


def _election(image: MetadataImage, rows: Rows) -> str:
    """The command for these partitions and no others: what could come back cleanly is not to be elected uncleanly."""
    named = named_rows(image, rows, _TYPED_MAX + 1)
    if len(named) > 1 or len(rows) > _TYPED_MAX:
        return "quorate elect --type unclean --path FILE"
    partitions = " ".join(f"--partition {number}" for number in named[0].partitions)
    return f"quorate elect --type unclean --topic {shlex.quote(named[0].topic)} {partitions}"


def _by_hand(cause: ExplainedCause) -> ExplainedRemedy:
    broker = cause.broker
    match cause.code:
        case "BROKER_UNKNOWN":
            message = f"broker {broker} is not registered: start it, or move its replicas to others"
            return _remedy("REASSIGN", message, cause, f"quorate brokers drain {broker}")
        case "DIRECTORY_OFFLINE":
            message = f"broker {broker} runs without the log directory of these replicas: replace it, and restart it"
            return _remedy("RESTORE_DIRECTORY", message, cause)
        case "BROKER_LEAVING":
            return _remedy("WAIT", f"broker {broker} is being shut down: start it once it has stopped", cause)
        case _:
            return _remedy("WAIT", f"broker {broker} runs and has not caught up yet", cause)


def _remedy(code: RemedyCode, message: str, cause: ExplainedCause, command: str = "") -> ExplainedRemedy:
    return ExplainedRemedy(
        code=code,
        message=message,
        command=command,
        broker=cause.broker,
        led_again=0,
        replicas=cause.partitions,
        elections=ElectionsReply(),
        risk="NONE",
    )


def _count(number: int) -> str:
    return "1 partition is" if number == 1 else f"{number:,} partitions are"
