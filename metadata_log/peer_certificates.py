"""The certificate that the other end of a TLS connection has shown, and whether it would still be taken.

A handshake looks at it once, and the connection may stand for months: meanwhile it ends, or its CA is retired.
"""

from __future__ import annotations

import asyncio
import ssl
import sys


class PeerCertificate:
    """Of one connection, from the end of its handshake on."""

    def __init__(self, secured: ssl.SSLObject, ends_at: float) -> None:
        """See ``of``."""
        #: In seconds since 1970.
        self.ends_at = ends_at
        self._anchor = _anchor(secured)
        #: By which it was found good last; its handshake was the first time.
        self._context = secured.context

    @classmethod
    def of(cls, secured: ssl.SSLObject) -> PeerCertificate | None:
        """None: the other end has shown none, or this end has not asked for one that is to be trusted."""
        shown = secured.getpeercert()
        return cls(secured, float(ssl.cert_time_to_seconds(str(shown["notAfter"])))) if shown else None

    @classmethod
    def at(cls, transport: asyncio.BaseTransport) -> PeerCertificate | None:
        """The same of a connection of asyncio's, on which TLS may be spoken or not."""
        secured = transport.get_extra_info("ssl_object")
        return None if secured is None else cls.of(secured)

    def fault(self, context: ssl.SSLContext, now_s: float) -> str | None:
        """The reason for which the other end would be refused by it now; None: it would not be.

        Args:
            context: with the CAs of the moment. While it is the same object, a look costs next to nothing.
            now_s: seconds since 1970.
        """
        if now_s >= self.ends_at:
            return "its certificate has expired since"
        if context is not self._context:
            if self._anchor not in context.get_ca_certs(binary_form=True):
                return "its certificate is of a CA that is trusted no more"
            self._context = context
        return None


def _anchor(secured: ssl.SSLObject) -> bytes:
    """The trusted certificate (DER) at the end of the chain by which the other end's was found good."""
    if sys.version_info >= (3, 13):
        return secured.get_verified_chain()[-1]
    # The same method, before it had a public name.
    chain = secured._sslobj.get_verified_chain()  # type: ignore[attr-defined]
    return ssl.PEM_cert_to_DER_cert(chain[-1].public_bytes())
