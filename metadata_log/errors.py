"""Every error that crosses a package border, by whose turn it is to act.

``StorageError``: a disk, a file or a format version; never "continue empty".
``ApiError``: the caller's turn; carries one of Kafka's error codes, which are API and never renamed.
``InvariantViolation``: our bug; the process stops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final


class QuorateError(Exception):
    """Base of all errors that Quorate raises on purpose."""


class InvalidId(QuorateError, ValueError):
    """A text that should name a uuid does not."""


class InvalidArgument(QuorateError, TypeError, ValueError):
    """A call of the library was given what cannot be; the sentence names argument and rule. Nothing was done."""


class InvariantViolation(QuorateError):
    """Something that cannot happen did: a bug of ours. The process that meets it stops."""


# --- storage -----------------------------------------------------------------------------------------


class StorageError(QuorateError):
    """A file, a disk or a format that cannot be used as it is."""


class NoRoom(StorageError):
    """The disk is full. What was begun is taken back, and may be begun again when there is room."""


class MalformedData(StorageError):
    """Bytes that do not follow the format; raised by decoders, which do not know file or offset."""


class UnsupportedRecord(MalformedData):
    """A record type or version that this program does not know. Says both numbers."""

    def __init__(self, type_id: int, version: int) -> None:
        super().__init__(f"record type {type_id} version {version} is not supported")
        self.type_id = type_id
        self.version = version


class CorruptBatch(StorageError):
    """A batch that fails a check, at a known place.

    Attributes:
        path: the file. position: byte position of the batch in it. offset: log offset it should start at.
    """

    def __init__(self, path: str, position: int, offset: int | None, reason: str) -> None:
        at = "" if offset is None else f", offset {offset}"
        super().__init__(f"{path}: damaged at byte {position}{at}: {reason}")
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason


class CorruptCheckpoint(StorageError):
    """A checkpoint file that is incomplete or fails a check.

    Attributes:
        position: byte position of what is wrong; None where it is not at one place.
    """

    def __init__(self, path: str, reason: str, position: int | None = None) -> None:
        at = "" if position is None else f"byte {position}: "
        super().__init__(f"{path}: not a usable checkpoint: {at}{reason}")
        self.path = path
        self.position = position
        self.reason = reason


class CorruptState(StorageError):
    """A small state file (election state, mark, meta.properties, manifest) that cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: unreadable: {reason}")
        self.path = path
        self.reason = reason


# --- API ---------------------------------------------------------------------------------------------


class ErrorCode(IntEnum):
    """Kafka's error numbers (``org.apache.kafka.common.protocol.Errors``) that Quorate uses."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OPERATION_NOT_ATTEMPTED = 55
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    THROTTLING_QUOTA_EXCEEDED = 89
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INVALID_UPDATE_VERSION = 95
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    INVALID_REGISTRATION = 119
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127


class ApiError(QuorateError):
    """A refusal that the caller can understand and act on. Nothing was changed."""

    def __init__(self, code: ErrorCode, message: str, details: Mapping[str, Any] | None = None) -> None:
        """``details``: facts for programs, beside the sentence for people."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, Any] = details or {}


class NotController(ApiError):
    """No active controller here. ``leader_id`` says who may be, None when nobody is known."""

    def __init__(self, leader_id: int | None, message: str | None = None) -> None:
        hint = "no active controller is known" if leader_id is None else f"the active controller is {leader_id}"
        super().__init__(ErrorCode.NOT_CONTROLLER, message or f"this node is not the active controller: {hint}")
        self.leader_id = leader_id


class OutcomeUnknown(ApiError):
    """The change may or may not have been made: read again before repeating it."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> None:
        super().__init__(code, message)


class LimitExceeded(ApiError):
    """A request over one of the named limits."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(code, message)


#: In the details of ``Overloaded``: in what time (ms) there is room again, as far as that is known.
RETRY_AFTER_MS: Final = "retry_after_ms"


class Overloaded(ApiError):
    """Refused before anything was decided because too much is waiting already; a retry is safe."""

    def __init__(self, message: str, limit: str = "", retry_after_ms: float = 0.0) -> None:
        """``limit``: the name by which refusals are counted; "" only where an answer says this, and not why.

        ``retry_after_ms``: in what time there is room again; 0: nobody knows, before long.
        """
        details = {RETRY_AFTER_MS: math.ceil(retry_after_ms)} if retry_after_ms > 0 else None
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message, details)
        self.limit = limit
