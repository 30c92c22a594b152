"""The certificate that a process of brokers shows, and how long it is still good: a metric, and warnings in its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from quorate.controller.api.tls_files import EXPIRY_LOOK_S, TlsFiles, expiry_sentence

log = structlog.get_logger(__name__)

#: What stays so is said again after so many seconds.
_AGAIN_S: Final = 86_400.0


class OwnCertificate:
    """Of one process."""

    def __init__(self, files: TlsFiles, now_s: Callable[[], float]) -> None:
        """``files``: a server's; ``now_s``: seconds since 1970."""
        self._files = files
        self._now_s = now_s
        #: When each thing was said last.
        self._said: dict[str, float] = {}

    @property
    def left_s(self) -> float:
        """Seconds until it ends; negative when it has."""
        expires_at = self._files.expires_at
        assert expires_at is not None, "they are a server's"
        return expires_at - self._now_s()

    async def run(self) -> None:
        """Look until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EXPIRY_LOOK_S)

    def look(self) -> None:
        """Look once: warn of what is wrong, once a day."""
        now_s = self._now_s()
        self._tell("certificate.ends", expiry_sentence(now_s + self.left_s, now_s), now_s)
        self._tell("certificate.unused", self._files.trouble, now_s)

    def _tell(self, event: str, sentence: str | None, now_s: float) -> None:
        if sentence is None:
            self._said.pop(event, None)
        elif now_s - self._said.get(event, -_AGAIN_S) >= _AGAIN_S:
            self._said[event] = now_s
            log.warning(event, why=sentence)
