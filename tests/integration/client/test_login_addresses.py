"""The address by which logins are counted: that of a connection, whatever a header says; this machine at the socket."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from quorate.controller.http.serving import HttpServer
from quorate.controller.identity.login_failures import FAILURES_MAX
from tests.integration.access.login_stage import login_servers


async def test_whoever_fails_at_the_socket_is_slowed_down_as_from_this_machine(tmp_path: Path) -> None:
    socket = tmp_path / "1.sock"
    async with login_servers(tmp_path) as s:
        wrong = (await s.begin("ana", "wrong"))[1]
        server = await HttpServer.start(s.stage.members[1].node, "127.0.0.1", 0, 1.0, local=socket)
        try:
            async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as local:
                said = {"Authorization": wrong.text}
                for _ in range(FAILURES_MAX):
                    async with local.get("http://localhost/v1/login", headers=said) as answer:
                        assert answer.status == 401
                async with local.get("http://localhost/v1/login", headers=said) as answer:
                    assert answer.status == 429
                    assert "logins from 127.0.0.1 failed" in (await answer.json())["message"]
            assert (await s.say(wrong.text)).status == 429
        finally:
            await server.close()


async def test_address_in_a_header_is_nobodys(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        wrong, url = (await s.begin("ana", "wrong"))[1], s.urls[0]
        for number in range(FAILURES_MAX + 1):
            address = f"10.0.0.{number}"
            said = {"X-Forwarded-For": address, "Forwarded": f"for={address}", "X-Quorate-Client": address}
            async with s.plain.get(f"{url}/v1/login", headers={"Authorization": wrong.text, **said}) as answer:
                assert answer.status == (401 if number < FAILURES_MAX else 429)
