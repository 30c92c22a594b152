"""Events as an operator names them, tried on a state one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.api.answers.answer_models import WhatIfStep
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage

_OF_BROKERS: Final = ("brokers", "racks")
#: The lists that an event is about: at least one of them has something in it, and no other has.
_SUBJECTS: Final = {
    "stop": _OF_BROKERS,
    "crash": _OF_BROKERS,
    "start": _OF_BROKERS,
    "lose-directory": ("directories",),
    "reassign": ("topics",),
    "catch-up": (),
}
_LISTS: Final = (*_OF_BROKERS, "directories", "topics")


def rehearsed(
    image: MetadataImage,
    config: ControllerConfig,
    steps: Sequence[WhatIfStep],
    check: Callable[[], None] = lambda: None,
) -> Rehearsal:
    """The state after these events, and the elections on the way. ``check``: see ``Rehearsal``.

    Raises:
        ApiError: INVALID_REQUEST, there is no event, or one with lists that it is not about; what refuses an event,
            with its place. No answer is given then.
    """
    if not steps:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no event was named: say what is to happen")
    rehearsal = Rehearsal(image, config, check=check)
    for place, step in enumerate(steps, start=1):
        try:
            _check(step)
            _take(rehearsal, step)
        except ApiError as error:
            raise ApiError(error.code, f"step {place} ({step.event}): {error.message}", error.details) from None
    return rehearsal


def _check(step: WhatIfStep) -> None:
    subjects = _SUBJECTS[step.event]
    named = [name for name in _LISTS if getattr(step, name)]
    strange = [name for name in named if name not in subjects]
    if strange:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"it is not about {strange[0]}")
    if subjects and not named:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"it wants {' or '.join(subjects)}")


def _take(rehearsal: Rehearsal, step: WhatIfStep) -> None:
    match step.event:
        case "stop":
            for broker_id in _brokers(rehearsal, step):
                rehearsal.stop(broker_id)
        case "crash":
            rehearsal.crash(_brokers(rehearsal, step))
        case "start":
            for broker_id in _brokers(rehearsal, step):
                rehearsal.start(broker_id)
        case "lose-directory":
            for directory in step.directories:
                rehearsal.lose_directory(directory)
        case "reassign":
            rehearsal.reassign(step.topics)
        case "catch-up":
            rehearsal.catch_up()


def _brokers(rehearsal: Rehearsal, step: WhatIfStep) -> list[int]:
    """Those that are named, then those of the racks, each once."""
    chosen = list(step.brokers)
    brokers = rehearsal.image.cluster.brokers.values()
    for rack in step.racks:
        of_rack = sorted(broker.id for broker in brokers if broker.rack == rack)
        if not of_rack:
            known = ", ".join(sorted({broker.rack for broker in brokers if broker.rack})) or "none"
            raise ApiError(ErrorCode.INVALID_REQUEST, f"no broker is in rack {rack!r}: racks are {known}")
        chosen += of_rack
    return list(dict.fromkeys(chosen))
