"""Makes the certificates of a local cluster, and renews them before they end: nobody else looks after them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from quorate.scripts.certificates.authority import Validity
from quorate.scripts.certificates.certificate_directory import CertificateDirectory
from quorate.scripts.certificates.certificate_files import read_certificate_file, write_whole
from quorate.scripts.certificates.holders import broker_holder, client_holder, controller_holder
from quorate.scripts.certificates.local_files import ADMIN_NAME, CERTIFICATES_NAME, SECRET_NAME

_CA_DAYS: Final = 3_650
_DAYS: Final = 365
#: Before controllers call themselves degraded for it, and long enough for a cluster that runs on meanwhile.
_RENEWED_BEFORE: Final = timedelta(days=60)
_HOSTS: Final = ("127.0.0.1", "localhost")
_SECRET_BYTES: Final = 32


def make_local(directory: Path, cluster_id: str, controllers: Iterable[int], brokers: Iterable[Sequence[int]]) -> None:
    """A CA, a certificate for each process and one for its administrator, and the controllers' secret.

    Args:
        brokers: those of each process.

    Raises:
        CertificateError: there is something already. OSError: the disk failed.
    """
    made = CertificateDirectory.make(directory / CERTIFICATES_NAME, cluster_id, Validity.of(_CA_DAYS))
    validity = Validity.of(_DAYS)
    for id_ in controllers:
        made.issue(controller_holder(cluster_id, id_, _HOSTS), validity)
    for ids in brokers:
        made.issue(broker_holder(cluster_id, ids, _HOSTS), validity)
    made.issue(client_holder(ADMIN_NAME), validity)
    write_whole(directory, {SECRET_NAME: f"{secrets.token_urlsafe(_SECRET_BYTES)}\n".encode()})


def renew_local(directory: Path) -> list[str]:
    """Renew what ends within two months; the names of those that were.

    Raises:
        CertificateError: the CA cannot be used, or has expired. OSError: the disk failed.
    """
    path = directory / CERTIFICATES_NAME
    soon = datetime.now(UTC) + _RENEWED_BEFORE
    names = [
        one.stem for one in sorted(path.glob("*-*.pem")) if read_certificate_file(one)[0].not_valid_after_utc < soon
    ]
    if names:
        issuing = CertificateDirectory(path)
        for name in names:
            issuing.renew(name, Validity.of(_DAYS))
    return names
