"""Registers this process's controller with the active one, itself included, until the log has it.

A registration holds across failovers, for it is in the log; a new process has a new incarnation and registers anew.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from quorate.controller.brokers.controller_registration import is_wanting
from quorate.controller.client.client import ControllerClient
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.protocol.controllers import ControllerRegistrationRequest
from quorate.metadata_log.errors import QuorateError

log = structlog.get_logger()

#: After an attempt: as long as a committed registration has to arrive here, and a failed one to find a new leader.
_PAUSE_S: Final = 1.0


class Registrar:
    """``moved`` is to be called when the controller's stable state has moved; ``run`` works until it is cancelled."""

    def __init__(
        self, controller: QuorumController, own: ControllerRegistrationRequest, client: ControllerClient
    ) -> None:
        """``client`` knows all controllers, this one included; it is the caller's to close."""
        self._controller = controller
        self._own = own
        self._client = client
        self._wanting = asyncio.Event()

    def moved(self) -> None:
        """Look whether there is something to do. Cheap: it follows every commit."""
        if is_wanting(self._controller.stable, self._own):
            self._wanting.set()

    async def run(self) -> None:
        """Register whenever the log does not have it."""
        self.moved()
        while True:
            await self._wanting.wait()
            try:
                await self._client.register_controller(self._own)
                log.info("controller.registered", node_id=self._own.controller_id)
            except QuorateError as error:
                # Refused, not sent or not answered: another attempt does no harm.
                log.info("controller.not_registered", node_id=self._own.controller_id, error=str(error))
            await asyncio.sleep(_PAUSE_S)
            self._wanting.clear()
            self.moved()
