"""Addresses that are no controller's: what a command says of them, and how soon."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from quorate.controller.api.headers import HIGH_WATERMARK, NODE
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import OutcomeUnknown
from quorate.scripts.terminal import exit_codes
from tests.integration.broker_stage import playing
from tests.integration.commands import Ended, alone, end_of, start
from tests.integration.http_servers import server
from tests.integration.http_stage import stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context, written
from tests.waiting import within

#: Far below the 5 s for which a controller that restarts is waited for.
AT_ONCE_S = 2.0


async def list_topics(address: str) -> str:
    """What the command says, at once, of an address where nobody is."""
    ended = await refused_at_once(address)
    assert ended.out == ""
    return ended.said


async def refused_at_once(address: str) -> Ended:
    """How the command ends; a server of this process may log what it thinks of it on standard output."""
    with within(AT_ONCE_S, "it was waited for"):
        ended = await alone("topics", "list", "--controllers", address)
    assert ended.code == exit_codes.UNREACHABLE
    return ended


@asynccontextmanager
async def raw_server(answer: bytes) -> AsyncIterator[str]:
    """Says the same to everybody, and closes; yields host:port."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(say, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        await listener.wait_closed()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: web.Response(status=404, text="<html>", content_type="text/html"), "text/html, status 404"),
        (lambda: web.Response(text="<html>", content_type="text/html"), "text/html, status 200"),
        (lambda: web.Response(text="wrong\x1b[1m\ndoor", status=400), "text/plain, status 400: wrong?[1m"),
        (lambda: web.Response(text="x" * 10_000, status=400), f"text/plain, status 400: {'x' * 200}"),
        (lambda: web.json_response({"status": 404}, status=404), "an error of another form, status 404"),
        (lambda: web.Response(status=301, headers={"Location": "/", "Content-Type": "text/html"}), "status 301"),
    ],
)
async def test_web_server_is_no_controller(make: Callable[[], web.Response], said: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return make()

    async with server(answer) as url:
        address = url.removeprefix("http://")
        heard = await list_topics(address)
        assert f"{address} is no Quorate controller (it answered" in heard
        assert f"{said})" in heard
        assert "pydantic" not in heard


async def test_status_names_what_is_no_controller() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>", content_type="text/html")

    async with server(answer) as url:
        ended = await alone("status", "--controllers", url)
    assert ended.code == exit_codes.UNREACHABLE
    assert "is no Quorate controller (it answered text/html, status 200)" in ended.out


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x03\x00\x02\x02\x46"])
async def test_what_speaks_no_http_is_no_controller(answer: bytes) -> None:
    async with raw_server(answer) as address:
        assert f"{address} is no Quorate controller (it answered what is not HTTP)" in await list_topics(address)


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5_000, "-1", ""], ids=["a power", "long", "negative", "none"])
async def test_header_that_is_no_number_says_nothing(number: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": 404}, headers={NODE: number, HIGH_WATERMARK: number})

    async with server(answer) as url:
        ended = await alone("topics", "list", "--controllers", url)
    assert ended.code == exit_codes.REFUSED
    assert "the answer is no TopicsReply" in ended.said


async def test_write_that_a_proxy_may_have_passed_on_is_of_unknown_outcome() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=504, text="<html>", content_type="text/html")

    unknown = pytest.raises(
        OutcomeUnknown, match=r"\(it answered text/html, status 504\): the change may have been made"
    )
    async with server(answer) as url:
        async with ControllerClient([url]) as client:
            with unknown:
                await client.delete_topic("orders")
        ended = await alone("topics", "create", "orders", "--controllers", url)
    # A command looks for a sign of life first.
    assert ended.code == exit_codes.UNREACHABLE
    assert "(it answered text/html, status 504): nothing was sent to it" in ended.said


@pytest.mark.parametrize("command", [("topics", "create", "orders"), ("topics", "list")], ids=["change", "read"])
async def test_ctrl_c_says_that_a_change_is_out_which_nobody_has_answered(command: tuple[str, ...]) -> None:
    asked, end = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/livez":
            asked.set()
            await end.wait()
        return web.json_response({"status": "alive"}, headers={NODE: "1", HIGH_WATERMARK: "1"})

    async with server(answer) as url:
        process = await start(url, *command)
        await asked.wait()
        process.send_signal(signal.SIGINT)
        ended = await end_of(process)
        end.set()
    said = "quorate: ended before the answer: the change may have been made, or may yet be\n"
    assert (ended.code, ended.out, ended.err) == (exit_codes.INTERRUPTED, "", said if "create" in command else "")


async def test_name_that_does_not_resolve_is_called_so() -> None:
    ended = await alone("status", "--controllers", "nosuchhost.invalid:1")
    assert ended.code == exit_codes.UNREACHABLE
    assert "the name does not resolve" in " ".join(ended.out.split())


@pytest.mark.parametrize("address", ["127.0.0.1", "http://host", "host:port", ",", "127.0.0.1:1,host"])
@pytest.mark.parametrize("command", [("status",), ("topics", "list"), ("history", "topic", "orders")])
async def test_address_without_a_port_is_a_mistake_of_usage(command: tuple[str, ...], address: str) -> None:
    ended = await alone(*command, "--controllers", address)
    assert ended.code == exit_codes.USAGE
    assert "names no controller: it must be host:port or http://host:port" in ended.said


async def test_process_of_brokers_is_no_controller_whatever_is_asked() -> None:
    """Some of its paths are those of controllers, and have other parameters and answers."""
    async with playing([1], ["127.0.0.1:1"]) as played:
        address = f"127.0.0.1:{played.endpoint.port}"
        for command in (("topics", "list"), ("brokers", "list"), ("topics", "delete", "orders", "--yes")):
            with within(AT_ONCE_S, "they were waited for"):
                ended = await alone(*command, "--controllers", address)
            assert ended.code == exit_codes.UNREACHABLE
            assert f"{address} is no Quorate controller (it answered as a process of brokers: " in ended.said
        seen = await alone("status", "--controllers", address)
        assert "(it answered as a process of brokers: name its controllers)" in " ".join(seen.out.split())


async def test_service_whose_answers_are_json_does_not_look_like_a_controller() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "well"})

    async with server(answer) as url:
        ended = await alone("topics", "list", "--controllers", url)
        assert f"the answer is no TopicsReply: state_offset: Field required; {url} does not look like" in ended.said


async def test_tls_against_plain_http_and_certificates_of_others_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = authority()
    written(tmp_path, issued(ours), ours)
    monkeypatch.setenv("QUORATE_CA_FILE", str(tmp_path / "ca.pem"))
    async with stage(1) as on:
        address = on.urls[0].removeprefix("http://")
        assert f"https://{address} cannot be reached: it speaks no TLS: ask it with http://" in await list_topics(
            address
        )
    foreign = server_context(issued(authority("foreign"), "127.0.0.1"))
    client = client_context([ours])
    async with stage(1, tls=SpokenTls(lambda: foreign, lambda: client)) as on:
        assert "its certificate is not to be trusted" in (await refused_at_once(on.urls[0])).said
        plain = on.urls[0].replace("https", "http")
        assert "TLS is spoken on this port: ask it with https://, not http://" in (await refused_at_once(plain)).said
