"""A look, now and then, at how long this node's certificate is still good, and whether changed files can be used.

Those with secrets and tokens, too: a mistake in one is told to whoever made it, and before the old content is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from quorate.controller.api.kept_files import KeptFile
from quorate.controller.api.tls_files import EXPIRY_LOOK_S, TlsFiles, expiry_sentence
from quorate.controller.engine.counters import Counters
from quorate.controller.process.served_cluster import NodeFaults

_ENDS, _UNUSED = "certificate", "changed certificate files"


class CertificateWatch:
    """Of one controller."""

    def __init__(
        self,
        files: TlsFiles | None,
        faults: NodeFaults,
        counters: Counters,
        kept: Mapping[str, KeptFile[Any] | None] | None = None,
    ) -> None:
        """``files``: None where no TLS is spoken. ``kept``: other files, by the settings that may name them."""
        self._files = files
        self._kept = {setting: file for setting, file in (kept or {}).items() if file is not None}
        self._faults = faults
        self._counters = counters

    async def run(self) -> None:
        """Look until it is cancelled."""
        while self._files is not None or self._kept:
            self.look(datetime.now(UTC).timestamp())
            await asyncio.sleep(EXPIRY_LOOK_S)

    def look(self, now_s: float) -> None:
        """Look once; ``now_s``: seconds since 1970."""
        for setting, file in self._kept.items():
            file()
            self._faults.alarm(f"changed {setting}", file.trouble)
        if self._files is not None:
            self._look_at_certificate(self._files, now_s)

    def _look_at_certificate(self, files: TlsFiles, now_s: float) -> None:
        expires_at = files.expires_at
        assert expires_at is not None, "they are a server's"
        self._counters.certificate_expiry_seconds = expires_at - now_s
        self._faults.alarm(_UNUSED, files.trouble)
        self._faults.alarm(_ENDS, expiry_sentence(expires_at, now_s))
