"""A directory with a CA: what it issues is trusted and names its holder, and what is wrong changes nothing."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.identity import Identity, NodeIdentity
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.quorum_parts import own_certificate_check
from quorate.scripts.certificates.authority import CertificateAuthority, Validity
from quorate.scripts.certificates.certificate_directory import CertificateDirectory
from quorate.scripts.certificates.certificate_files import read_certificate_file
from quorate.scripts.certificates.holders import (
    CertificateError,
    broker_holder,
    client_holder,
    controller_holder,
    files_of,
)

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
YEAR = Validity.of(365)
HOSTS = ["127.0.0.1", "node.example", "::1"]


@pytest.fixture
def made(tmp_path: Path) -> CertificateDirectory:
    return CertificateDirectory.make(tmp_path / "certificates", CLUSTER, Validity.of(3650))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def shown(paths: TlsPaths) -> bytes:
    assert paths.cert_file is not None
    return ssl.PEM_cert_to_DER_cert(paths.cert_file.read_text())


def identity(paths: TlsPaths) -> Identity:
    return CertificateIdentities(CLUSTER, PrincipalMapping()).identity(shown(paths))


def require_served(*all_paths: TlsPaths) -> None:
    for paths in all_paths:
        served(paths)


def served(paths: TlsPaths) -> TlsFiles:
    """Looked at as a process does before it serves with them: key, CA, times."""
    return TlsFiles(paths, is_server=True)


def test_controller_is_who_its_certificate_says_and_serves_under_its_names(made: CertificateDirectory) -> None:
    paths = made.issue(controller_holder(CLUSTER, 1, HOSTS), YEAR)
    assert identity(paths).node == NodeIdentity("controller", frozenset({1}))
    own_certificate_check(CLUSTER, 1)(shown(paths))
    assert served(paths).expires_at == YEAR.ends.timestamp()
    names = x509.load_der_x509_certificate(shown(paths)).extensions
    alternative = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternative.get_values_for_type(x509.DNSName) == ["node.example"]
    assert [str(one) for one in alternative.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_brokers_of_one_process_are_all_in_its_certificate(made: CertificateDirectory) -> None:
    paths = made.issue(broker_holder(CLUSTER, [11, 12], HOSTS), YEAR)
    assert identity(paths).node == NodeIdentity("broker", frozenset({11, 12}))
    assert paths.cert_file == made.path / "broker-11.pem"


def test_client_is_a_user_and_serves_nobody(made: CertificateDirectory) -> None:
    paths = made.issue(client_holder("ana@example"), YEAR)
    assert identity(paths) == Identity("User:CN=ana@example", "certificate")
    with pytest.raises(ssl.SSLError):
        _shake_hands(TlsFiles(paths).as_client(), paths)


def _shake_hands(client: ssl.SSLContext, paths: TlsPaths) -> None:
    """As a server that shows the certificate; the client looks at what it is for."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert paths.cert_file is not None
    server.load_cert_chain(paths.cert_file, paths.key_file)
    client.check_hostname = False
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, asked = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for turn in (asking, asked, asking):
        try:
            turn.do_handshake()
        except ssl.SSLWantReadError:
            continue


def test_files_and_directory_are_for_their_owner_alone(made: CertificateDirectory) -> None:
    made.issue(client_holder("ana"), YEAR)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.path.iterdir()}
    assert modes == dict.fromkeys(("ca.pem", "ca.key", "client-ana.pem", "client-ana.key"), 0o600)


def test_nothing_is_written_over_but_by_a_renewal(made: CertificateDirectory) -> None:
    made.issue(client_holder("ana"), YEAR)
    before = contents(made.path)
    with pytest.raises(CertificateError, match=r"client-ana\.pem is there already: renew client-ana"):
        made.issue(client_holder("ana"), YEAR)
    with pytest.raises(CertificateError, match=r"ca\.pem is there already: renew ca"):
        CertificateDirectory.make(made.path, CLUSTER, YEAR)
    assert contents(made.path) == before


def test_renewed_certificate_has_the_same_names_and_another_key(made: CertificateDirectory) -> None:
    paths = made.issue(controller_holder(CLUSTER, 1, HOSTS), Validity.of(1))
    first, before = read_certificate_file(made.path / "controller-1.pem")[0], contents(made.path)
    made.renew("controller-1", YEAR)
    again = read_certificate_file(made.path / "controller-1.pem")[0]
    names = x509.SubjectAlternativeName
    assert again.extensions.get_extension_for_class(names) == first.extensions.get_extension_for_class(names)
    assert (again.subject, again.not_valid_after_utc) == (first.subject, YEAR.ends)
    assert again.public_key() != first.public_key()
    require_served(paths)
    assert {name for name, content in contents(made.path).items() if before[name] != content} == {
        "controller-1.pem",
        "controller-1.key",
    }


def test_ca_is_changed_while_all_that_is_there_is_trusted_at_every_step(made: CertificateDirectory) -> None:
    one = made.issue(controller_holder(CLUSTER, 1, HOSTS), YEAR)
    two = made.issue(controller_holder(CLUSTER, 2, HOSTS), YEAR)
    old = (made.path / "ca.pem").read_bytes()
    made.renew_authority(Validity.of(3650))
    require_served(one, two)
    made.renew("controller-1", YEAR)
    require_served(one, two)
    before = contents(made.path)
    with pytest.raises(CertificateError, match="controller-2 has its certificate of a CA before this one"):
        made.retire()
    assert contents(made.path) == before
    made.renew("controller-2", YEAR)
    assert made.retire() == 1
    require_served(one, two)
    assert old not in (made.path / "ca.pem").read_bytes()
    assert CertificateDirectory(made.path).cluster_id == CLUSTER


def test_certificate_does_not_outlive_its_ca(tmp_path: Path) -> None:
    made = CertificateDirectory.make(tmp_path / "short", CLUSTER, Validity.of(2))
    made.issue(client_holder("ana"), YEAR)
    (leaf,), (ca,) = (read_certificate_file(made.path / f"{name}.pem") for name in ("client-ana", "ca"))
    assert leaf.not_valid_after_utc == ca.not_valid_after_utc < datetime.now(UTC) + timedelta(days=3)


def _expired() -> tuple[bytes, bytes]:
    pair = CertificateAuthority.make(CLUSTER, Validity.of(-0.01)).pair
    return pair.certificate, pair.key


def _replaced(directory: Path, certificate: bytes, key: bytes) -> None:
    (directory / "ca.pem").write_bytes(certificate)
    (directory / "ca.key").write_bytes(key)


def _a_leaf_for_a_ca(directory: Path) -> None:
    issued = CertificateAuthority.make(CLUSTER, YEAR).issue(client_holder("ana"), YEAR)
    _replaced(directory, issued.certificate, issued.key)


def _another_kind_of_key(directory: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    (directory / "ca.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / "ca.pem").unlink(), "ca.pem cannot be read: No such file or directory"),
        (lambda at: (at / "ca.key").unlink(), "ca.key cannot be read: No such file or directory"),
        (lambda at: (at / "ca.key").chmod(0o640), "ca.key: has mode 0640: it must be for its owner alone"),
        (lambda at: (at / "ca.pem").write_text("no PEM"), "ca.pem: it holds no certificate in PEM"),
        (lambda at: (at / "ca.key").write_text("no PEM"), "ca.key: it holds no key in PEM"),
        (lambda at: (at / "ca.pem").write_bytes(bytes(1_048_577)), "ca.pem: it has more than 1048576 bytes"),
        (lambda at: (at / "ca.key").write_bytes(_expired()[1]), "ca.key: the key is that of none of the CAs"),
        (lambda at: _replaced(at, *_expired()), "the CA has expired at"),
        (_a_leaf_for_a_ca, "the certificate is not that of a CA"),
        (_another_kind_of_key, "ca.key: it holds a key of another kind than ECDSA"),
    ],
)
def test_ca_that_cannot_be_used_is_refused_by_name_and_nothing_is_written(
    made: CertificateDirectory, damage: Callable[[Path], object], says: str
) -> None:
    damage(made.path)
    before = contents(made.path)
    with pytest.raises(CertificateError, match=says):
        CertificateDirectory(made.path).issue(client_holder("ana"), YEAR)
    assert contents(made.path) == before


@pytest.mark.parametrize("host", ["", "a b", "-a", "*.example", "0.0.0.0", "256.1.1.1", "a/b", "x" * 64, "[::1]", "é"])
def test_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(CertificateError, match="neither a host name nor an IP address"):
        controller_holder(CLUSTER, 1, [host])


@pytest.mark.parametrize("hosts", [[], [f"10.0.0.{n}" for n in range(65)]])
def test_hosts_are_bounded(hosts: list[str]) -> None:
    with pytest.raises(CertificateError, match="between 1 and 64"):
        controller_holder(CLUSTER, 1, hosts)


@pytest.mark.parametrize("name", ["", "../ca", "-a", "a,b", "x" * 65, "a\n"])
def test_name_of_a_client_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(CertificateError, match="is no name for a client"):
        client_holder(name)


@pytest.mark.parametrize("cluster_id", ["", "a/b", "x" * 65])
def test_cluster_that_is_none_has_no_ca(tmp_path: Path, cluster_id: str) -> None:
    with pytest.raises(CertificateError, match="is no cluster id"):
        CertificateDirectory.make(tmp_path / "certificates", cluster_id, YEAR)
    assert not (tmp_path / "certificates").exists()


def test_write_that_fails_leaves_what_was_there(made: CertificateDirectory) -> None:
    paths = made.issue(client_holder("ana"), YEAR)
    before = contents(made.path)
    # A directory in the way: the second of two files cannot be begun.
    (made.path / ".client-ana.pem.part").mkdir()
    with pytest.raises(OSError, match=r"client-ana.pem.part"):
        made.renew("client-ana", YEAR)
    (made.path / ".client-ana.pem.part").rmdir()
    assert contents(made.path) == before
    assert paths == files_of(made.path, "client-ana")
