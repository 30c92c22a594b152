"""The secrets of a local cluster: where its certificates lie in its directory, and who its administrator is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.scripts.certificates.holders import client_principal, files_of

CERTIFICATES_NAME: Final = "certificates"
#: The controllers' own secret.
SECRET_NAME: Final = "secret"
ADMIN_NAME: Final = "admin"
#: Whom controllers take the administrator's certificate for.
ADMIN_PRINCIPAL: Final = client_principal(ADMIN_NAME)


def node_paths(directory: Path, name: str) -> TlsPaths:
    """The files of a process of the cluster in a directory; ``name`` as ``controller-1``, ``broker-11``."""
    return files_of((directory / CERTIFICATES_NAME).resolve(), name)


def admin_paths(directory: Path) -> TlsPaths:
    """The files of its administrator."""
    return node_paths(directory, f"client-{ADMIN_NAME}")


def admin_tls(directory: Path) -> TlsContexts:
    """With which its administrator asks.

    Raises:
        InvalidTlsFiles: the certificates are gone, or others may read the key.
    """
    return TlsFiles(admin_paths(directory)).as_client


def local_tls(directory: Path) -> TlsContexts:
    """With which whoever proves by something else who he is asks its processes: no certificate of his is shown.

    Raises:
        InvalidTlsFiles: the CA's certificate is gone.
    """
    return TlsFiles(TlsPaths(None, None, admin_paths(directory).ca_files)).as_client
