"""The contexts of TLS, as servers and clients are handed them: nothing that only servers need."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from quorate.metadata_log.errors import QuorateError

#: Gives the context of the moment: it changes with the certificates.
TlsContexts = Callable[[], ssl.SSLContext]


class CertificateEnded(QuorateError):
    """Nobody is asked by the context of the moment, for its certificate has ended: nothing was sent."""
