"""A look at certificate files: what they say, how long they are good, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509

from quorate.scripts.certificates.authority import host_names, is_authority, uri_names, was_issued_by
from quorate.scripts.certificates.certificate_files import read_certificate_file, read_key_file
from quorate.scripts.certificates.holders import CA_NAME, CertificateError

_FILES_MAX: Final = 10_000
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class CertificateFinding:
    """One certificate."""

    file: str
    is_authority: bool
    #: Distinguished names, as RFC 4514 writes them.
    subject: str
    issuer: str
    uris: tuple[str, ...]
    hosts: tuple[str, ...]
    begins: datetime
    ends: datetime
    days_left: float
    #: Whether the file with its key lies beside it.
    has_key: bool
    #: A sentence on each thing that keeps it from being used, or soon will.
    problems: tuple[str, ...]


def look_at(path: Path, now: datetime, within_days: float) -> list[CertificateFinding]:
    """All certificates of a file, or of all files ``*.pem`` of a directory.

    Args:
        within_days: one that ends sooner has a problem.

    Raises:
        CertificateError: there are none, or too many, or a file cannot be understood.
    """
    files = sorted(path.glob("*.pem")) if path.is_dir() else [path]
    if not files:
        raise CertificateError(f"{path} holds no certificates: no file there is named *.pem")
    if len(files) > _FILES_MAX:
        raise CertificateError(f"{path} holds {len(files)} files: {_FILES_MAX} are looked at")
    return [finding for file in files for finding in _findings(file, now, within_days)]


def _findings(file: Path, now: datetime, within_days: float) -> Iterator[CertificateFinding]:
    beside = file.parent / CA_NAME
    certificates = read_certificate_file(file)
    trusted = read_certificate_file(beside) if beside.exists() else None
    has_key, key_problem = _key(file, certificates)
    for number, one in enumerate(certificates):
        left = (one.not_valid_after_utc - now).total_seconds() / _DAY_S
        problems = [*_times(one, now, left, within_days)]
        if number == 0:
            problems += [problem for problem in (key_problem, _origin(certificates, trusted)) if problem]
        yield CertificateFinding(
            str(file),
            is_authority(one),
            one.subject.rfc4514_string(),
            one.issuer.rfc4514_string(),
            uri_names(one),
            host_names(one),
            one.not_valid_before_utc,
            one.not_valid_after_utc,
            round(left, 1),
            has_key and number == 0,
            tuple(problems),
        )


def _times(one: x509.Certificate, now: datetime, left_days: float, within_days: float) -> Iterator[str]:
    if one.not_valid_before_utc > now:
        yield f"it is not valid before {one.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
    if left_days <= 0:
        yield "it has expired"
    elif left_days < within_days:
        yield f"it expires in {left_days:.1f} days"


def _key(file: Path, certificates: Sequence[x509.Certificate]) -> tuple[bool, str | None]:
    """Whether the key lies beside the certificate, and what is wrong with it."""
    path = file.with_suffix(".key")
    if not path.exists():
        return False, None
    try:
        matches = read_key_file(path).public_key() == certificates[0].public_key()
    except CertificateError as error:
        return True, str(error)
    return True, None if matches else f"{path} is the key of another certificate"


def _origin(certificates: Sequence[x509.Certificate], trusted: Sequence[x509.Certificate] | None) -> str | None:
    """The last one of the chain has to be of a CA that is trusted; where none lies beside it, nobody can tell."""
    last = certificates[-1]
    if trusted is None or is_authority(certificates[0]) or any(was_issued_by(last, ca) for ca in trusted):
        return None
    return f"it is of none of the CAs in {CA_NAME} beside it"
