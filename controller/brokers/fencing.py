"""Brokers in the cluster: heartbeats, fencing, controlled shutdown (the second half of ``ClusterControlManager``).

Every function reads an image and soft state and returns records; the controller changes the soft state when the
records are on their way, by the ``apply_`` function that stands beside each decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.controller.brokers.heartbeats import NO_OFFSET, BrokerControlState, BrokerHeartbeats
from quorate.controller.brokers.session_order import Session
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import (
    CORDONED_DIRECTORIES_LEVEL,
    DIRECTORIES_LEVEL,
)
from quorate.controller.partitions.broker_epoch import check_broker_epoch
from quorate.controller.partitions.mass_changes import IsrChanges, Part, records_or_slices, rows_in_isr
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration

# Values of BrokerRegistrationChangeRecord.fenced, and the record version that each change was introduced with.
# Kafka writes the lowest version that can say it, whatever the metadata version.
_FENCE: Final = 1
_UNFENCE: Final = -1
_FENCING_VERSION: Final = 0
_SHUTDOWN_VERSION: Final = 1
_DIRECTORIES_VERSION: Final = 2
_CORDONED_VERSION: Final = 3


@dataclass(frozen=True, slots=True)
class HeartbeatDecision(Decision[BrokerHeartbeatResponse]):
    """The consequences of a heartbeat.

    Passes that take a broker out of partitions may be cut: the next leader finds what is left to do by the broker's
    flags and ISRs, which change last and first. A broker's return is atomic, if the log can say so: nobody would
    look again for the partitions that were to elect it.
    """

    next_state: BrokerControlState = BrokerControlState.FENCED
    #: It writes a change of the broker's registration.
    changes_registration: bool = False


def decide_broker_heartbeat(
    image: MetadataImage,
    config: ControllerConfig,
    heartbeats: BrokerHeartbeats,
    request: BrokerHeartbeatRequest,
    now_ms: float,
) -> HeartbeatDecision:
    """Move a broker between fenced, unfenced and controlled shutdown, and take in what it says of its directories.

    The controller has noted the contact before, whatever becomes of the request.

    Raises:
        ApiError: STALE_BROKER_EPOCH.
    """
    broker = _sender(image, request)
    state = heartbeats.state(broker.id)
    is_caught_up = request.current_metadata_offset >= heartbeats.registration_offset(broker.id)
    next_state = _next_state(image, heartbeats, request, state, is_caught_up)
    parts: list[Part] = []
    if next_state in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW) and next_state != state:
        parts += _fence_parts(image, broker)
    elif next_state == BrokerControlState.UNFENCED and next_state != state:
        parts += _unfence_parts(image, broker)
    elif next_state == BrokerControlState.CONTROLLED_SHUTDOWN and next_state != state:
        parts += _shutdown_parts(image, broker)
    if image.features.metadata_version >= DIRECTORIES_LEVEL:
        parts += _offline_directory_parts(image, broker, request.offline_log_dirs)
    parts += _cordon_parts(image, broker, request.cordoned_log_dirs)
    is_down = next_state in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)
    reply = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=is_down,
        in_controlled_shutdown=next_state == BrokerControlState.CONTROLLED_SHUTDOWN,
        should_shut_down=next_state == BrokerControlState.SHUTDOWN_NOW,
        session_ms=_promised_ms(heartbeats, request, state, next_state, now_ms),
    )
    records, slices = records_or_slices(image, config, parts)
    return HeartbeatDecision(
        records,
        reply,
        is_atomic=next_state == BrokerControlState.UNFENCED,
        is_internal=True,
        is_finding=False,
        slices=slices,
        changed_broker=broker.id,
        next_state=next_state,
        changes_registration=any(isinstance(part, VersionedRecord) for part in parts),
    )


def _sender(image: MetadataImage, request: BrokerHeartbeatRequest) -> BrokerRegistration:
    if request.broker_id not in image.cluster.brokers:
        message = f"Receive a heartbeat from broker {request.broker_id} before registration"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, message)
    return check_broker_epoch(image, request.broker_id, request.broker_epoch)


def _promised_ms(
    heartbeats: BrokerHeartbeats,
    request: BrokerHeartbeatRequest,
    state: BrokerControlState,
    next_state: BrokerControlState,
    now_ms: float,
) -> int:
    """Of its session. What unfences a broker is in no image that it could have applied."""
    alive = (BrokerControlState.UNFENCED, BrokerControlState.CONTROLLED_SHUTDOWN)
    is_alive = state in alive and next_state in alive
    return heartbeats.promised_ms(request.broker_id, request.current_metadata_offset, now_ms) if is_alive else 0


def apply_heartbeat(
    heartbeats: BrokerHeartbeats, request: BrokerHeartbeatRequest, decision: HeartbeatDecision, end_offset: int
) -> None:
    """Soft state after a heartbeat; ``end_offset`` exclusive, after the decision's records."""
    is_down = decision.next_state in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)
    offset = NO_OFFSET if decision.changes_registration else request.current_metadata_offset
    if heartbeats.state(request.broker_id) == BrokerControlState.FENCED and not is_down:
        heartbeats.unfenced(request.broker_id, end_offset - 1)
    heartbeats.touch(request.broker_id, is_down, offset)
    if decision.next_state == BrokerControlState.CONTROLLED_SHUTDOWN:
        heartbeats.start_shutdown(request.broker_id, end_offset - 1)


def _next_state(
    image: MetadataImage,
    heartbeats: BrokerHeartbeats,
    request: BrokerHeartbeatRequest,
    state: BrokerControlState,
    is_caught_up: bool,
) -> BrokerControlState:
    """Kafka's ``calculateNextBrokerState``."""
    if state == BrokerControlState.FENCED:
        if request.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        return BrokerControlState.UNFENCED if is_caught_up and not request.want_fence else BrokerControlState.FENCED
    if state == BrokerControlState.UNFENCED:
        if request.want_fence:
            return BrokerControlState.SHUTDOWN_NOW if request.want_shut_down else BrokerControlState.FENCED
        if not request.want_shut_down:
            return BrokerControlState.UNFENCED
        leads = heartbeats.leads_any(image, request.broker_id)
        return BrokerControlState.CONTROLLED_SHUTDOWN if leads else BrokerControlState.SHUTDOWN_NOW
    if heartbeats.leads_any(image, request.broker_id):
        return BrokerControlState.CONTROLLED_SHUTDOWN
    may_leave = heartbeats.may_shut_down(request.broker_id)
    return BrokerControlState.SHUTDOWN_NOW if may_leave else BrokerControlState.CONTROLLED_SHUTDOWN


def _fence_parts(image: MetadataImage, broker: BrokerRegistration) -> list[Part]:
    """Fence a broker: first its partitions change, then it does."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)
    changes = IsrChanges(rows_in_isr(image.partitions, broker.id), broker_to_remove=broker.id)
    return [changes, VersionedRecord(change, _FENCING_VERSION)]


def _unfence_parts(image: MetadataImage, broker: BrokerRegistration) -> list[Part]:
    """Unfence a broker; then partitions without a leader elect, with it among the candidates."""
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE)
    changes = IsrChanges(image.partitions.rows_without_leader(), broker_to_add=broker.id)
    return [VersionedRecord(change, _FENCING_VERSION), changes]


def _shutdown_parts(image: MetadataImage, broker: BrokerRegistration) -> list[Part]:
    """Begin a controlled shutdown: the broker's flag, unless set already; then it leaves its ISRs."""
    parts: list[Part] = []
    if not broker.in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
        )
        parts.append(VersionedRecord(change, _SHUTDOWN_VERSION))
    return [*parts, IsrChanges(rows_in_isr(image.partitions, broker.id), broker_to_remove=broker.id)]


def _offline_directory_parts(image: MetadataImage, broker: BrokerRegistration, offline: list[Uuid]) -> list[Part]:
    """Directories that failed: the broker leaves the ISRs of what lies in them, then its registration changes.

    Also replicas that were not in sync are looked at: a reassignment may end, or somebody lead, where that was due.
    """
    lost = [directory for directory in broker.directories if directory in set(offline)]
    if not lost:
        return []
    codes = [image.partitions.directories.code(directory) for directory in lost]
    rows = image.partitions.rows_with_replica(broker.id)
    columns = image.partitions.gather(rows)
    mine = columns.slots == broker.id
    in_lost = (mine & np.isin(columns.directories, [code for code in codes if code is not None])).any(axis=1)
    changes = IsrChanges(rows[in_lost], broker_to_remove=broker.id)
    remaining = tuple(directory for directory in broker.directories if directory not in lost)
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining)
    return [changes, VersionedRecord(change, _DIRECTORIES_VERSION)]


def _cordon_parts(image: MetadataImage, broker: BrokerRegistration, cordoned: list[Uuid] | None) -> list[Part]:
    """Directories that take no new partitions from now on (KIP-1066)."""
    if cordoned is None or image.features.metadata_version < CORDONED_DIRECTORIES_LEVEL:
        return []
    if set(cordoned) == set(broker.cordoned_directories):
        return []
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=tuple(cordoned)
    )
    return [VersionedRecord(change, _CORDONED_VERSION)]


def decide_fence_stale_broker(
    image: MetadataImage, config: ControllerConfig, heartbeats: BrokerHeartbeats, now_ms: float
) -> Decision[Session | None]:
    """Deal with one session that has ended; the reply is that session, None if all are valid.

    It has ended when no heartbeat has come for ``brokers.session_timeout_ms``; ``heartbeats`` has the times.
    Its broker is fenced (again, if it was already). One at a time, so that the first broker hears of it soon; the
    caller repeats it until the reply is None. A session of an earlier registration, or of none, is just dropped.
    """
    session = heartbeats.stale_session_or_none(now_ms)
    broker = None if session is None else image.cluster.brokers.get(session.broker_id)
    if session is None or broker is None or broker.epoch != session.broker_epoch:
        return Decision((), session, is_atomic=False, is_internal=True)
    records, slices = records_or_slices(image, config, _fence_parts(image, broker))
    return Decision(records, session, is_atomic=False, is_internal=True, slices=slices, changed_broker=broker.id)


def apply_fencing(heartbeats: BrokerHeartbeats, decision: Decision[Session | None]) -> None:
    """Soft state after ``decide_fence_stale_broker``."""
    session = decision.reply
    if session is not None:
        heartbeats.drop_session(session)
        if decision.has_records:
            heartbeats.fence(session.broker_id)
