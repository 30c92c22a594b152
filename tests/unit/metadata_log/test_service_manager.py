"""Word to whoever started the process as a service."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quorate.metadata_log.service_manager import SOCKET_VARIABLE, is_service, tell_service_manager


@pytest.mark.parametrize("is_abstract", [False, True])
def test_state_arrives_at_the_socket_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool
) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(5)
        listening.bind(f"\0{path}" if is_abstract else path)
        monkeypatch.setenv(SOCKET_VARIABLE, f"@{path}" if is_abstract else path)
        assert is_service()
        tell_service_manager("READY=1")
        tell_service_manager("STOPPING=1")
        assert [listening.recv(100), listening.recv(100)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.parametrize("named", [None, "", "vsock:2:1", "/nowhere/at/all", "/" + "x" * 200, "@" + "x" * 200])
def test_nobody_who_listens_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    monkeypatch.delenv(SOCKET_VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(SOCKET_VARIABLE, named)
    tell_service_manager("READY=1")
