"""A controller's own certificate: one that no other voter would take for its is not served with."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from quorate.controller.api.tls_files import InvalidTlsFiles, TlsFiles
from quorate.controller.process.quorum_parts import own_certificate_check
from tests.integration.made_certificates import authority, issued, written

OURS = authority()


@pytest.mark.parametrize(
    ("uris", "says"),
    [
        ([], "it is of no node, and has no URI quorate://c/controller/ID"),
        (["quorate://c/broker/1"], "it is of broker/1, and has no URI quorate://c/controller/ID"),
        (["quorate://c/controller/2"], "it is that of another controller, and not quorate://c/controller/1"),
        (["quorate://d/controller/1"], "no node of cluster c"),
    ],
)
def test_certificate_of_somebody_else_keeps_a_controller_from_starting(
    tmp_path: Path, uris: list[str], says: str
) -> None:
    paths = written(tmp_path, issued(OURS, "127.0.0.1", uris=uris), OURS)
    with pytest.raises(InvalidTlsFiles, match=says):
        TlsFiles(paths, is_server=True, check=own_certificate_check("c", 1))


def test_changed_certificate_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    now = 0.0
    paths = written(tmp_path, issued(OURS, "127.0.0.1", uris=["quorate://c/controller/1"]), OURS)
    files = TlsFiles(paths, is_server=True, check=own_certificate_check("c", 1), clock=lambda: now)
    used = files.as_peer_server()
    written(tmp_path, issued(OURS, "127.0.0.1", uris=["quorate://c/controller/2"]), OURS)
    now = 10.0

    assert files.as_peer_server() is used
    assert files.trouble is not None
    assert "it is that of another controller" in files.trouble


def test_voters_speak_no_tls_to_each_other_that_is_older_than_1_3(tmp_path: Path) -> None:
    files = TlsFiles(written(tmp_path, issued(OURS, "127.0.0.1"), OURS), is_server=True)
    for older in (files.as_server(), files.as_client()):
        older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2

    assert _shake_hands(files.as_server(), files.as_client()) == "TLSv1.2"
    assert _shake_hands(files.as_peer_server(), files.as_peer_client()) == "TLSv1.3"
    for asked, asking in ((files.as_peer_server(), files.as_client()), (files.as_server(), files.as_peer_client())):
        with pytest.raises(ssl.SSLError):
            _shake_hands(asked, asking)


def _shake_hands(asked: ssl.SSLContext, asking: ssl.SSLContext) -> str | None:
    """The version that two ends have come to."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = asked.wrap_bio(to_server, to_client, server_side=True)
    client = asking.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for turn in (client, server) * 3:
        try:
            turn.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.version()
