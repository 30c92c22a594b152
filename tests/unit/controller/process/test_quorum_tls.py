"""A controller's own certificate: one that no other voter would take for its is not served with."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.controller.api.tls_files import InvalidTlsFiles, TlsFiles
from quorate.controller.process.quorum_parts import own_certificate_check
from tests.integration.made_certificates import authority
from tests.integration.node_certificates import node_files

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
    paths = node_files(tmp_path, OURS, *uris, trusts=(OURS,))
    with pytest.raises(InvalidTlsFiles, match=says):
        TlsFiles(paths, is_server=True, check=own_certificate_check("c", 1))


def test_changed_certificate_of_somebody_else_is_not_taken(tmp_path: Path) -> None:
    now = 0.0
    paths = node_files(tmp_path, OURS, "quorate://c/controller/1", trusts=(OURS,))
    files = TlsFiles(paths, is_server=True, check=own_certificate_check("c", 1), clock=lambda: now)
    used = files.as_peer_server()
    node_files(tmp_path, OURS, "quorate://c/controller/2", trusts=(OURS,))
    now = 10.0

    assert files.as_peer_server() is used
    assert files.trouble is not None
    assert "it is that of another controller" in files.trouble
