"""Requests from brokers to the controller: registration, heartbeat, unregistration (Kafka's APIs 62, 63, 64)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.deletions import UndeletedReplicas
from quorate.controller.protocol.types import BrokerIdField, Int16, Int64, Message, RecordText, UuidField

_LISTENERS_MAX = 100
_FEATURES_MAX = 100
_DIRECTORIES_MAX = 1_000


class Listener(Message):
    """An address of a broker."""

    name: RecordText
    host: RecordText
    port: Annotated[int, Field(ge=0, le=65_535)]
    security_protocol: Int16 = 0


class SupportedFeature(Message):
    """Levels of one feature that a broker supports, both ends included."""

    name: RecordText
    min_supported_version: Int16
    max_supported_version: Int16


class BrokerRegistrationRequest(Message):
    """A broker announces itself: a new incarnation, or the same one with something changed."""

    broker_id: BrokerIdField
    cluster_id: RecordText
    incarnation_id: UuidField
    listeners: Annotated[list[Listener], Field(max_length=_LISTENERS_MAX)] = Field(default_factory=list)
    features: Annotated[list[SupportedFeature], Field(max_length=_FEATURES_MAX)] = Field(default_factory=list)
    rack: RecordText | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: Annotated[list[UuidField], Field(max_length=_DIRECTORIES_MAX)] = Field(default_factory=list)
    #: Epoch of the incarnation before, if that shut down cleanly; -1 = it did not, or there is none.
    previous_broker_epoch: Int64 = -1
    cordoned_log_dirs: Annotated[list[UuidField], Field(max_length=_DIRECTORIES_MAX)] | None = None
    #: Version of the request: below 3 there is no previous broker epoch in it.
    api_version: Annotated[int, Field(ge=0, le=5)] = 5


class BrokerRegistrationResponse(Message):
    """The registration is committed."""

    broker_epoch: Int64


class BrokerHeartbeatRequest(Message):
    """A broker is alive, has applied the log so far, and wants this."""

    broker_id: BrokerIdField
    broker_epoch: Int64
    #: Last offset it has applied.
    current_metadata_offset: Int64
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Annotated[list[UuidField], Field(max_length=_DIRECTORIES_MAX)] = Field(default_factory=list)
    #: None = unchanged.
    cordoned_log_dirs: Annotated[list[UuidField], Field(max_length=_DIRECTORIES_MAX)] | None = None
    #: Replicas of deleted topics that it still has; None = it does not say. Kafka's request has no such field.
    undeleted: UndeletedReplicas | None = None


class BrokerHeartbeatResponse(Message):
    """The state of the broker as the controller sees it now."""

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool
    #: Milliseconds, from when the heartbeat was sent, for which no controller ends the broker's session, by this
    #: controller's clock; 0 = nothing is promised. Kafka's response has no such field.
    session_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 0


class UnregisterBrokerRequest(Message):
    """An operator removes a registration for good."""

    broker_id: BrokerIdField


class UnregisterBrokerResponse(Message):
    """The registration is gone."""
