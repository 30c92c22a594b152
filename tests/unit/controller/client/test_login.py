"""Requests of one client that wait for one login."""

from __future__ import annotations

import asyncio

import pytest

from quorate.controller.api.login_models import LoginReply
from quorate.controller.client.connection import NotSent
from quorate.controller.client.login import LoginSession, PasswordLogin
from quorate.controller.client.pending_session import PendingSession


async def test_login_of_another_request_is_waited_for_no_longer_than_the_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_begun = asyncio.Event()

    async def silent(session: LoginSession, url: str, timeout_ms: float) -> LoginReply:
        has_begun.set()
        return await asyncio.Future()

    monkeypatch.setattr(LoginSession, "log_in", silent)
    login = LoginSession(PasswordLogin("ana", "pencil"), PendingSession(None, None), None)
    other = asyncio.create_task(login.authorization("http://127.0.0.1:1", 60_000.0))
    await has_begun.wait()
    async with asyncio.timeout(30):
        with pytest.raises(NotSent, match="in time"):
            await login.authorization("http://127.0.0.1:2", 10.0)
    assert not other.done()
    other.cancel()
