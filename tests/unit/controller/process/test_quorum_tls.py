"""A controller's own certificate: one that no other voter would take for its is not served with."""

from __future__ import annotations

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
