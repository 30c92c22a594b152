"""Keys of an issuer: fetched by TLS from whom is trusted, within bounds; what is wrong leaves the keys of before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from quorate.controller.identity.issuer import keys as issuer_keys
from quorate.controller.identity.issuer.key_sets import JWKS_BYTES_MAX
from quorate.controller.identity.issuer.keys import KeysAddress, KeysFile
from quorate.metadata_log.invalid_settings import InvalidSettings
from tests.integration.made_certificates import authority, issued, server_context, written
from tests.unit.controller.identity.issuer.test_tokens import KEYS
from tests.waiting import eventually

RIGHT = json.dumps({"keys": KEYS}).encode()


class Issuer:
    """What is answered, and how often it was."""

    answer = RIGHT
    status = 200
    asked = 0


@asynccontextmanager
async def issuer(tmp_path: Path) -> AsyncIterator[tuple[Issuer, str, Path]]:
    """One that is trusted by the file; its address."""
    ours, told = authority(), Issuer()
    written(tmp_path, issued(ours, "127.0.0.1"), ours)

    async def answer(request: web.Request) -> web.StreamResponse:
        told.asked += 1
        status = told.status if request.path == "/keys" else 200
        return web.Response(status=status, body=told.answer, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context = server_context(issued(ours, "127.0.0.1"))
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield told, f"https://127.0.0.1:{runner.addresses[0][1]}/keys", tmp_path / "ca.pem"
    finally:
        await runner.cleanup()


async def test_keys_are_fetched_and_kept_when_the_issuer_goes_wrong(tmp_path: Path) -> None:
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as session:
        keys = KeysAddress(url, ca_file)
        assert (len(keys()), keys.generation) == (0, 0)
        await keys.ask(session)
        assert (len(keys()), keys.generation) == (3, 1)
        for wrong, status in ((b"", 200), (b" " * (JWKS_BYTES_MAX + 1), 200), (RIGHT, 302), (RIGHT, 500)):
            told.answer, told.status = wrong, status
            await keys.ask(session)
            assert (len(keys()), keys.generation) == (3, 1)


async def test_issuer_who_is_not_trusted_gives_no_keys(tmp_path: Path) -> None:
    async with issuer(tmp_path) as (told, url, _), aiohttp.ClientSession() as session:
        for keys in (KeysAddress(url), KeysAddress("https://127.0.0.1:1/keys"), KeysAddress("https://a..b/keys")):
            await keys.ask(session)
            assert (len(keys()), keys.generation) == (0, 0)
        assert told.asked == 0


@pytest.mark.parametrize(("least_s", "asked"), [(0.0, 2), (1_000.0, 1)])
async def test_key_that_is_wanted_is_asked_for_and_not_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_s: float, asked: int
) -> None:
    monkeypatch.setattr(issuer_keys, "_ASK_S_MIN", least_s)
    async with issuer(tmp_path) as (told, url, ca_file), asyncio.TaskGroup() as tasks:
        keys = KeysAddress(url, ca_file)
        running = tasks.create_task(keys.run())

        async def is_asked() -> bool:
            return keys.generation >= asked

        async def is_first() -> bool:
            return keys.generation == 1

        await eventually(is_first, "the keys are there")
        keys.want("new")
        await eventually(is_asked, "the issuer was asked")
        for _ in range(50):
            await asyncio.sleep(0)
        assert told.asked == asked
        running.cancel()


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read"), (b"x", "JSON of the form")])
def test_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidSettings, match=f"jwks_file .*{says}"):
        KeysFile(file)
    file.write_bytes(RIGHT)
    assert len(KeysFile(file)()) == 3


def test_ca_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="jwks_ca_file"):
        KeysAddress("https://issuer/keys", tmp_path / "none")
