"""Commands over TLS, with the certificates that their environment names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.scripts.cluster.found_controllers import ask_each
from quorate.scripts.lost_majority.asking import ask_controllers
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.integration.http_stage import stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context, written

HOST = "127.0.0.1"


@pytest.mark.parametrize("is_ours", [True, False])
async def test_command_asks_whom_it_trusts_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    ours = authority()
    paths = written(tmp_path, issued(ours), ours if is_ours else authority("foreign"))
    monkeypatch.setenv("QUORATE_CA_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("QUORATE_CERT_FILE", str(paths.cert_file))
    monkeypatch.setenv("QUORATE_KEY_FILE", str(paths.key_file))
    server, client = server_context(issued(ours, HOST)), client_context([ours])
    async with stage(1, tls=SpokenTls(lambda: server, lambda: client)) as on:
        ended = await alone("topics", "list", "--controllers", on.urls[0].removeprefix("https://"))
        counted = on.members[1].soft.counters().http_answers
        compared = await alone("image", "diff", *(f"{on.urls[0]}@1", f"{on.urls[0]}@1"))
    if is_ours:
        assert (ended.code, bool(counted)) == (exit_codes.DONE, True)
        assert (compared.code, "The states are the same." in compared.out) == (exit_codes.DONE, True)
    else:
        assert (ended.code, counted) == (exit_codes.UNREACHABLE, {})
        assert "its certificate is not to be trusted" in ended.said
        assert compared.code == exit_codes.UNREACHABLE


async def test_certificate_without_its_key_is_a_mistake_of_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORATE_CERT_FILE", "cert.pem")
    ended = await alone("topics", "list", "--controllers", f"{HOST}:1")
    assert ended.code == 2
    assert "QUORATE_CERT_FILE and QUORATE_KEY_FILE belong together" in ended.said


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_controller_that_cannot_be_asked_is_not_taken_for_silent(tmp_path: Path, scheme: str) -> None:
    """Nobody may conclude that a cluster does not run from not being trusted by it, or not trusting it."""
    server, foreign = server_context(issued(authority(), HOST)), client_context([authority("foreign")])
    async with stage(1, tls=SpokenTls(lambda: server, lambda: foreign)) as on:
        url = f"{scheme}://{on.urls[0].partition('://')[2]}"
        (found,) = await asyncio.to_thread(ask_each, [url], None, lambda: foreign, insecure=False)
        with pytest.raises(RecoveryError, match=r"does not say what it knows \(.*\), so a majority may be running"):
            await asyncio.to_thread(ask_controllers, [url], None, tmp_path)
    assert (found.quorum, found.is_silent) == (None, False)
    (gone,) = await asyncio.to_thread(ask_each, [url], None, lambda: foreign, insecure=False)
    assert gone.is_silent
    assert await asyncio.to_thread(ask_controllers, [url], None, tmp_path) == []
