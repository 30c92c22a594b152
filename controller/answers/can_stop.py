"""May these brokers be stopped? The answer is what would happen, and never an estimate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from quorate.controller.answers.hardship import Hardship
from quorate.controller.answers.naming import named_rows
from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.api.answers.answer_models import StopManner
from quorate.controller.api.answers.stop_models import CanStopReason, StopReasonCode
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.snapshots.image.image import MetadataImage

#: In the order of ``Hardship``, and of gravity.
_CODES: Final[tuple[StopReasonCode, ...]] = ("PARTITIONS_OFFLINE", "PARTITIONS_UNDER_MIN_ISR", "UNCLEAN_ELECTIONS")
_SENTENCES: Final = {
    "PARTITIONS_OFFLINE": "would have no leader: nobody could read or write them",
    "PARTITIONS_UNDER_MIN_ISR": "would have fewer in sync than min.insync.replicas: writes with acks=all are refused",
    "UNCLEAN_ELECTIONS": "would be led by a replica that was not in sync: acknowledged writes are lost",
}


class BrokerStop(NamedTuple):
    """The outcome of stopping brokers."""

    #: The state as it would be.
    after: MetadataImage
    #: Only what is not there yet: what is wrong already is no reason to let a broker run.
    hardship: Hardship

    @property
    def may_stop(self) -> bool:
        """Whether no client notices."""
        return self.hardship.is_none


def stop_brokers(
    image: MetadataImage,
    config: ControllerConfig,
    broker_ids: Sequence[int],
    manner: StopManner = "shutdown",
    check: Callable[[], None] = lambda: None,
) -> BrokerStop:
    """Stop these brokers and leave them stopped: one after the other, or all crashed at once.

    ``check``: see ``Rehearsal``.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED; nothing is answered then about the others.
    """
    rehearsal = Rehearsal(image, config, check=check)
    for broker_id in broker_ids:
        rehearsal.broker(broker_id)
    if manner == "crash":
        rehearsal.crash(broker_ids)
    else:
        for broker_id in broker_ids:
            rehearsal.stop(broker_id)
    after = rehearsal.image
    return BrokerStop(after, Hardship.of(after, config).beyond(Hardship.of(image, config)))


def reasons_against(stop: BrokerStop, limit: int) -> list[CanStopReason]:
    """All that clients would notice, with at most ``limit`` partitions each; none where they may be stopped."""
    return [
        CanStopReason(
            code=code,
            message=f"{len(rows):,} {'partition' if len(rows) == 1 else 'partitions'} {_SENTENCES[code]}",
            count=len(rows),
            topics=named_rows(stop.after, rows, limit),
        )
        for code, rows in zip(_CODES, stop.hardship, strict=True)
        if len(rows)
    ]
