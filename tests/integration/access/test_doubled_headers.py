"""A header that says who asks and is there twice: no process chooses between them, whichever of the two is good."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from multidict import CIMultiDict

from quorate.controller.api import headers
from tests.integration.access.test_permissions import bearer, guarded
from tests.integration.brokers.test_broker_access import ROOT, asked
from tests.integration.brokers.test_broker_access import token as broker_token

TOPICS = "/v1/topics"


async def refused(session: aiohttp.ClientSession, method: str, url: str, name: str, values: tuple[str, str]) -> bool:
    """Whether a request with this header twice is none."""
    sent = CIMultiDict((name, value) for value in values)
    body = {"topics": [{"name": "made"}]} if method == "POST" else None
    async with session.request(method, url, headers=sent, json=body) as answer:
        reply = await answer.json()
        said = f"header {name} was given more than once" in reply.get("message", "")
        return (answer.status, reply.get("error"), said) == (400, "INVALID_REQUEST", True)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_controller_takes_neither_of_two_headers_that_say_who_asks(tmp_path: Path, method: str) -> None:
    async with guarded(tmp_path) as g:
        url, root, ana = (
            g.stage.members[1].url + TOPICS,
            *(bearer(who)["Authorization"] for who in ("User:root", "User:ana")),
        )
        before = g.digests()
        for values in ((root, ana), (ana, root), (root, root)):
            assert await refused(g.plain, method, url, "Authorization", values)
        assert await refused(g.plain, method, url, headers.PRINCIPAL, ("User:root", "User:ana"))
        assert g.digests() == before


async def test_broker_takes_neither_of_two_headers_that_say_who_asks(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        url = f"http://{a.played.endpoint.host}:{a.played.endpoint.port}{TOPICS}"
        good, wrong = f"Bearer {broker_token(ROOT)}", "Bearer nobody's"
        for values in ((good, wrong), (wrong, good), (good, good)):
            assert await refused(a.played.session, "GET", url, "Authorization", values)
        assert await refused(a.played.session, "GET", url, headers.PRINCIPAL, (ROOT, "User:ana"))
