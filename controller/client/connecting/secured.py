"""TLS as a client meets it: the context of each request, and refusals in words that say what to do.

Names and certificates are looked at in the handshake, so before anything of a request is sent.
"""

from __future__ import annotations

import ssl
from typing import Final, TypedDict

import aiohttp

from quorate.controller.api.tls_contexts import TlsContexts

#: What an end without TLS looks like.
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
#: OpenSSL's codes where a chain ends at no CA that is trusted: DEPTH_ZERO_SELF_SIGNED_CERT, SELF_SIGNED_CERT_IN_CHAIN,
#: UNABLE_TO_GET_ISSUER_CERT_LOCALLY, UNABLE_TO_VERIFY_LEAF_SIGNATURE.
_OF_ANOTHER_CA: Final = frozenset({18, 19, 20, 21})
_TRUSTED: Final = "trusted are the CAs that QUORATE_CA_FILE names for commands, tls.ca_files for nodes"
#: In the reasons that the other end gave. It does so in the handshake, before it has read any request.
_ALERT: Final = "_ALERT_"


class TlsOptions(TypedDict, total=False):
    """Of ``aiohttp.ClientSession.request``."""

    ssl: ssl.SSLContext


def tls_options(contexts: TlsContexts | None) -> TlsOptions:
    """The option of a request; none where nothing but the system's trust was given.

    Connections are kept by context: one that has changed is used for new connections only.
    """
    return {} if contexts is None else {"ssl": contexts()}


def refusal_by_tls(error: BaseException) -> str | None:
    """The reason why one end did not trust the other, in a few words; None: it was something else.

    No request was read then.
    """
    found = _tls_error(error)
    if found is None:
        return None
    if isinstance(found, ssl.SSLCertVerificationError):
        cause = f"its certificate is not to be trusted: {found.verify_message}"
        return f"{cause}; {_TRUSTED}" if found.verify_code in _OF_ANOTHER_CA else cause
    reason = found.reason or ""
    if reason in _NO_TLS:
        return "it speaks no TLS: ask it with http://"
    if _ALERT in reason:
        said = reason.partition(_ALERT)[2].lower().replace("_", " ")
        return f"it refuses this client in the handshake: {said}"
    return None


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """The error of TLS that another one stands for."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError) and not isinstance(seen, aiohttp.ClientError):
            return seen
        seen = seen.os_error if isinstance(seen, aiohttp.ClientConnectorError) else seen.__cause__
    return None
