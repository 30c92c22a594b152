"""Certificates from files: whole or not at all, and anew when they have changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quorate.controller.api.tls_contexts import CertificateEnded
from quorate.controller.api.tls_files import InvalidTlsFiles, TlsFiles, TlsPaths
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair
from tests.integration.made_certificates import authority, issued, written

OURS, FOREIGN = authority(), authority("foreign")
HOST = "127.0.0.1"


#: Whoever waits for a pipe's other end does so for ever.
pytestmark = pytest.mark.timeout(60)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def load(paths: TlsPaths, clock: Clock | None = None) -> TlsFiles:
    return TlsFiles(paths, is_server=True, clock=clock or Clock())


def test_end_of_the_certificate_is_known(tmp_path: Path) -> None:
    ends = datetime.now(UTC) + timedelta(days=3)
    files = load(written(tmp_path, issued(OURS, HOST, ends=ends), OURS))
    assert files.expires_at == int(ends.timestamp())


def _becomes_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("certificate", "damage", "says"),
    [
        (issued(OURS, HOST, is_expired=True), lambda at: None, "certificate has expired"),
        (issued(FOREIGN, HOST), lambda at: None, "unable to get local issuer certificate"),
        (
            issued(OURS, HOST),
            lambda at: (at / "key.pem").chmod(0o640),
            "key.pem has mode 0640: it must be for its",
        ),
        (issued(OURS, HOST), lambda at: (at / "key.pem").unlink(), "key.pem cannot be read: No such file or directory"),
        (issued(OURS, HOST), lambda at: (at / "ca.pem").write_text("x" * 1_048_577), "ca.pem has 1048577 bytes"),
        (issued(OURS, HOST), lambda at: (at / "ca.pem").write_text("no PEM"), "ca.pem"),
        (
            issued(OURS, HOST),
            lambda at: _becomes_a_pipe(at / "ca.pem"),
            "ca.pem is no regular file",
        ),
        (issued(OURS, HOST), lambda at: (at / "cert.pem").write_text("no PEM"), "cert.pem"),
        (
            issued(OURS, HOST),
            lambda at: (at / "key.pem").write_bytes(issued(OURS, HOST).key),
            "the key is not that of the certificate",
        ),
    ],
    ids=["expired", "another CA", "open key", "no key", "huge", "no CA", "a pipe", "no certificate", "another key"],
)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, certificate: KeyPair, damage: Callable[[Path], object], says: str
) -> None:
    paths = written(tmp_path, certificate, OURS)
    damage(tmp_path)
    with pytest.raises(InvalidTlsFiles) as error:
        load(paths)
    assert says in str(error.value)


def test_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    paths = written(tmp_path, issued(OURS, HOST), OURS)
    key = load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (tmp_path / "key.pem").write_bytes(locked)
    with pytest.raises(InvalidTlsFiles, match="the key has a password"):
        load(paths)


def test_changed_files_are_used_and_those_that_cannot_be_are_not(tmp_path: Path) -> None:
    clock = Clock()
    files = load(written(tmp_path, issued(OURS, HOST), OURS), clock)
    first = files.as_server()
    clock.now += 10
    assert files.as_server() is first

    written(tmp_path, issued(FOREIGN, HOST), OURS)
    clock.now += 10
    assert files.as_server() is first
    assert "unable to get local issuer certificate" in str(files.trouble)

    written(tmp_path, issued(OURS, HOST), OURS)
    clock.now += 0.5
    assert files.as_server() is first, "the files were looked at a moment ago"
    clock.now += 1
    assert files.as_server() is not first
    assert files.trouble is None


def test_node_whose_certificate_has_ended_asks_nobody_until_it_is_renewed(tmp_path: Path) -> None:
    clock, wall, ends = Clock(), Clock(), datetime.now(UTC) + timedelta(days=3)
    paths = written(tmp_path, issued(OURS, HOST, ends=ends), OURS)
    files = TlsFiles(paths, is_server=True, clock=clock, wall_s=wall)
    wall.now = int(ends.timestamp()) - 1
    assert files.as_node() is files.as_client()
    wall.now += 1
    with pytest.raises(CertificateEnded, match="renew it"):
        files.as_node()
    written(tmp_path, issued(OURS, HOST, ends=ends + timedelta(days=1)), OURS)
    clock.now = 10
    assert files.as_node() is files.as_client()


@pytest.mark.parametrize("issuer", [OURS, FOREIGN], ids=["ours", "another that is not known here"])
def test_client_is_told_that_its_certificate_has_ended(tmp_path: Path, issuer: CertificateAuthority) -> None:
    """And a running one goes on with what it has."""
    clock = Clock()
    files = TlsFiles(written(tmp_path, issued(issuer), OURS), clock=clock)
    written(tmp_path, issued(issuer, is_expired=True), OURS)
    clock.now += 10

    files.as_client()

    assert "the certificate has expired, by the clock of this machine" in str(files.trouble)
    with pytest.raises(InvalidTlsFiles, match=r"cert\.pem.*the certificate has expired"):
        TlsFiles(written(tmp_path, issued(issuer, is_expired=True), OURS))
