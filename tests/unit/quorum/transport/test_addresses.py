"""The names of peers: asked for outside the loop, once at a time, and again after a failure."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quorate.quorum.transport.addresses import PeerHost
from tests.waiting import PATIENCE_S, eventually

HOST = "127.0.0.1"


async def test_name_that_resolves_slowly_is_asked_for_once_and_dialled_when_known() -> None:
    """Attempts end in between, the question goes on; and a later failure does not wait for the name service."""
    answer = asyncio.Event()
    loop = asyncio.get_running_loop()
    asked: list[str] = []

    def resolve(name: str) -> list[str]:
        asked.append(name)
        asyncio.run_coroutine_threadsafe(answer.wait(), loop).result(10)
        return ["203.0.113.1", HOST]

    addresses = PeerHost("controller-1.example", resolve)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await addresses.current()
        addresses.failed()
    assert asked == ["controller-1.example"]
    answer.set()
    async with asyncio.timeout(PATIENCE_S):
        first = await addresses.current()
    answer.clear()

    async def asked_twice() -> bool:
        return len(asked) == 2

    addresses.failed()
    second = await addresses.current()
    answer.set()

    assert {first, second} == {"203.0.113.1", HOST}
    await eventually(asked_twice, "after a failure the name is asked for again")


async def test_name_that_no_thread_can_ask_for_is_asked_for_at_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = PeerHost("controller-1.example", lambda name: [HOST])

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", start)
        with pytest.raises(OSError, match=r"controller-1\.example cannot be asked for: can't start new thread"):
            await addresses.current()
        addresses.failed()

    async with asyncio.timeout(PATIENCE_S):
        assert await addresses.current() == HOST


async def test_name_without_an_address_is_an_error_and_is_asked_for_again() -> None:
    found: list[list[str]] = [[], [HOST]]
    addresses = PeerHost("controller-1.example", lambda name: found.pop(0))

    with pytest.raises(OSError, match=r"controller-1\.example has no address"):
        await addresses.current()

    assert await addresses.current() == HOST
