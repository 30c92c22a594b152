"""Certificates as clients show them: nobody here looks at signatures."""

from __future__ import annotations

import ssl

from tests.integration.made_certificates import authority, issued


def certificate(common_name: str, *uris: str) -> bytes:
    """The DER of a certificate with a subject, and perhaps URIs behind a host name."""
    hosts = ["node.example"] if uris else []
    return ssl.PEM_cert_to_DER_cert(
        issued(authority(), *hosts, uris=uris, common_name=common_name).certificate.decode()
    )
