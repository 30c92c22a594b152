"""Requests from controllers to the active one: registration (Kafka's API 70, ControllerRegistration)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.brokers import Listener, SupportedFeature
from quorate.controller.protocol.types import BrokerIdField, Message, UuidField

_LISTENERS_MAX = 100
_FEATURES_MAX = 100


class ControllerRegistrationRequest(Message):
    """A controller's process has started: where it is reached, and the feature levels it can lead at."""

    controller_id: BrokerIdField
    incarnation_id: UuidField
    zk_migration_ready: bool = False
    listeners: Annotated[list[Listener], Field(max_length=_LISTENERS_MAX)]
    features: Annotated[list[SupportedFeature], Field(max_length=_FEATURES_MAX)]


class ControllerRegistrationResponse(Message):
    """The registration is committed."""
