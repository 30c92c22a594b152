"""The contexts of TLS, as servers and clients are handed them: nothing that only servers need."""

from __future__ import annotations

import ssl
from collections.abc import Callable

#: Gives the context of the moment: it changes with the certificates.
TlsContexts = Callable[[], ssl.SSLContext]
