"""A broker's requests to the active controller. Any controller takes a request and passes it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.broker.controllers.isr_proposals import IsrProposals
from quorate.broker.directories.directory_choice import Replica
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import Uuid


class ControllerRpc(Protocol):
    """The broker RPCs. Each call has a deadline of its own, and may be cancelled.

    All raise ``ApiError`` for what the controller answers (``OutcomeUnknown`` where it does not know itself), and
    another ``QuorateError`` where no controller could be reached.
    """

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        """Register, or amend a registration."""

    async def broker_heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        """Keep the session alive, and ask for what the broker wants."""

    async def alter_partition(self, broker_epoch: int, proposals: IsrProposals) -> NDArray[np.int16]:
        """Ask for other ISRs as their leader; int16[n], one of Kafka's error codes for each partition, in order."""

    async def assign_replicas_to_dirs(
        self, broker_id: int, broker_epoch: int, directories: Mapping[Replica, Uuid]
    ) -> Mapping[Replica, ErrorCode]:
        """Say in which directories replicas of a broker lie; what became of each."""
