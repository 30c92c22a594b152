"""Names are looked up on threads that no program waits for."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading

import pytest

from quorate.controller.client.connecting.name_threads import NameThreads
from quorate.scripts.terminal import exit_codes

#: A command whose name service says that it was asked, and answers nobody.
SILENT = """
import socket, sys, threading
def silent(*args, **kwargs):
    sys.stderr.write("asked\\n")
    sys.stderr.flush()
    threading.Event().wait()
socket.getaddrinfo = silent
from quorate.scripts.cli.__main__ import main
main()
"""


async def test_addresses_of_a_name_are_those_that_the_system_knows() -> None:
    [found] = await NameThreads().resolve("127.0.0.1", 80, socket.AF_INET)

    assert (found["hostname"], found["host"], found["port"], found["family"]) == (
        "127.0.0.1", "127.0.0.1", 80, socket.AF_INET,
    )  # fmt: skip
    assert found["flags"] == socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


async def test_addresses_that_mean_something_on_one_interface_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    address = ("fe80::1", 80, 0, 1)  # 1: loopback, everywhere
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    assert [one["host"] for one in await NameThreads().resolve("a", 80)] == ["fe80::1%lo"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "a..b"])
async def test_what_has_no_address_is_an_error_of_the_system_or_of_the_name(host: str) -> None:
    with pytest.raises((OSError, ValueError)):
        await NameThreads().resolve(host, 80)


async def test_answer_that_comes_when_nobody_waits_any_more_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer, asked = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> list[object]:
        asked.set()
        may_answer.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    resolving = asyncio.ensure_future(NameThreads().resolve("slow", 80))
    await asyncio.to_thread(asked.wait)
    resolving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resolving
    [thread] = [one for one in threading.enumerate() if one.name == "resolve-slow"]
    assert thread.daemon
    may_answer.set()
    await asyncio.to_thread(thread.join)


@pytest.mark.parametrize("command", [("status",), ("topics", "list")])
def test_ctrl_c_does_not_wait_for_a_name_service_that_does_not_answer(command: tuple[str, ...]) -> None:
    arguments = [*command, "--controllers", "somewhere.invalid:1"]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SILENT, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "asked\n"
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=20)
        finally:
            process.kill()
        said = process.stderr.read()

    assert (code, "Traceback" in said, "Exception" in said) == (exit_codes.INTERRUPTED, False, False)
