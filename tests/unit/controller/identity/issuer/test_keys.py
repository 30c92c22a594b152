"""Keys of an issuer: fetched by TLS from whom is trusted, within bounds; what is wrong leaves the keys of before."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.controller.identity.issuer import keys as issuer_keys
from quorate.controller.identity.issuer.key_sets import JWKS_BYTES_MAX
from quorate.controller.identity.issuer.keys import KeysAddress, KeysFile
from quorate.controller.process.server import tell_of_keys
from quorate.metadata_log.invalid_settings import InvalidSettings
from tests.integration.made_certificates import authority, issued, server_context, written
from tests.unit.controller.identity.issuer.test_tokens import KEYS, OCT
from tests.waiting import eventually

KEPT_S = 600.0
RIGHT = json.dumps({"keys": KEYS}).encode()


def trouble(keys: KeysAddress) -> str:
    """The fault that they have; empty: none."""
    return keys.trouble or ""


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


async def test_keys_are_fetched_and_kept_when_the_issuer_goes_wrong_and_not_for_ever(tmp_path: Path) -> None:
    now_s = 0.0
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as session:
        keys = KeysAddress(url, ca_file, KEPT_S, lambda: now_s)
        assert (len(keys()), keys.generation) == (0, 0)
        await keys.ask(session)
        assert (len(keys()), keys.generation) == (3, 1)
        assert trouble(keys) == ""
        for wrong, status in ((b"", 200), (b" " * (JWKS_BYTES_MAX + 1), 200), (RIGHT, 302), (RIGHT, 500)):
            now_s += 60.0
            told.answer, told.status = wrong, status
            await keys.ask(session)
            assert (len(keys()), keys.generation) == (3, 1)
        assert keys.failures == 4
        assert trouble(keys).endswith("does not say them: it answers 500; those of before hold for 6 min more")
        now_s = KEPT_S
        assert (keys.generation, len(keys())) == (2, 0)
        assert "nobody is known" in trouble(keys)
        told.answer, told.status = RIGHT, 200
        await keys.ask(session)
        assert (len(keys()), keys.generation) == (3, 3)
        assert trouble(keys) == ""


@pytest.mark.parametrize("empty", [b'{"keys": []}', json.dumps({"keys": [OCT]}).encode()], ids=["empty", "useless"])
async def test_issuer_that_has_no_keys_any_more_has_none_here(tmp_path: Path, empty: bytes) -> None:
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as session:
        keys = KeysAddress(url, ca_file, KEPT_S)
        await keys.ask(session)
        told.answer = empty
        await keys.ask(session)
        assert (len(keys()), keys.generation, keys.failures) == (0, 2, 0)
        assert "no public key with a kid" in trouble(keys)


async def test_keys_that_are_said_again_are_the_same_and_hold_longer(tmp_path: Path) -> None:
    now_s = 0.0
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as session:
        keys = KeysAddress(url, ca_file, KEPT_S, lambda: now_s)
        for at_s in (0.0, KEPT_S - 1, 2 * KEPT_S - 2):
            now_s = at_s
            await keys.ask(session)
            assert (len(keys()), keys.generation) == (3, 1)
        told.answer = json.dumps({"keys": KEYS[:2]}).encode()
        await keys.ask(session)
        assert (len(keys()), keys.generation) == (2, 2)


async def test_issuer_who_is_not_trusted_gives_no_keys(tmp_path: Path) -> None:
    async with issuer(tmp_path) as (told, url, _), aiohttp.ClientSession() as session:
        for address in (url, "https://127.0.0.1:1/keys", "https://a..b/keys"):
            keys = KeysAddress(address, None, KEPT_S)
            await keys.ask(session)
            assert (len(keys()), keys.generation, keys.failures) == (0, 0, 1)
            assert "nobody is known" in trouble(keys)
        assert told.asked == 0


async def test_status_and_metrics_are_told_of_an_issuer_that_goes_wrong_and_of_its_recovery(tmp_path: Path) -> None:
    faults = ProcessFaults(Counters())
    async with issuer(tmp_path) as (told, url, ca_file), aiohttp.ClientSession() as session:
        keys = KeysAddress(url, ca_file, KEPT_S)
        seen = []
        for told.status in (500, 200):
            await keys.ask(session)
            tell_of_keys(keys, faults)
            seen.append((len(faults.sentences), faults.counters.issuer_keys, faults.counters.issuer_keys_refused))
        assert seen == [(1, 0, 1), (0, 3, 1)]


async def test_issuer_that_did_not_answer_is_asked_again_soon_and_each_time_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_ASK_S_MIN", 0.0)
    told_of: list[bool] = []
    async with issuer(tmp_path) as (told, url, ca_file), asyncio.TaskGroup() as tasks:
        told.status = 500
        keys = KeysAddress(url, ca_file, KEPT_S)

        def tell() -> None:
            told_of.append(keys.trouble is None)
            told.status = 200 if len(told_of) == 2 else told.status

        running = tasks.create_task(keys.run(tell))

        async def is_there() -> bool:
            return told_of == [False, False, True]

        await eventually(is_there, "the keys are there")
        running.cancel()


@pytest.mark.parametrize(("least_s", "asked"), [(0.0, 2), (1_000.0, 1)])
async def test_key_that_is_wanted_is_asked_for_and_not_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_s: float, asked: int
) -> None:
    monkeypatch.setattr(issuer_keys, "_ASK_S_MIN", least_s)
    async with issuer(tmp_path) as (told, url, ca_file), asyncio.TaskGroup() as tasks:
        keys = KeysAddress(url, ca_file, KEPT_S)
        answers: list[int] = []
        running = tasks.create_task(keys.run(lambda: answers.append(len(keys()))))

        async def is_asked() -> bool:
            return len(answers) >= asked

        async def is_first() -> bool:
            return answers == [3]

        await eventually(is_first, "the keys are there")
        keys.want("new")
        await eventually(is_asked, "the issuer was asked")
        for _ in range(50):
            await asyncio.sleep(0)
        assert told.asked == asked
        running.cancel()


@pytest.mark.parametrize(
    ("content", "says"), [(None, "cannot be read"), (b"x", "JSON of the form"), (b'{"keys": []}', "no public key")]
)
def test_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidSettings, match=f"jwks_file .*{says}"):
        KeysFile(file)
    file.write_bytes(RIGHT)
    assert len(KeysFile(file)()) == 3


@pytest.mark.timeout(60)  # whoever waits for a pipe's other end does so for ever
def test_pipe_is_no_key_set(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys")
    with pytest.raises(InvalidSettings, match=r"jwks_file .* cannot be read: is no regular file"):
        KeysFile(tmp_path / "keys")


def test_ca_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="jwks_ca_file"):
        KeysAddress("https://issuer/keys", tmp_path / "none", KEPT_S)
