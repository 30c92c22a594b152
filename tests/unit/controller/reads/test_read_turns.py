"""Reads that take long on threads: whoever asks for many waits behind himself, and others are heard."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from quorate.controller.reads.read_turns import ReadTurns
from tests.waiting import eventually


class Work:
    """Reads that do not end before they may."""

    def __init__(self) -> None:
        self.turns = ReadTurns()
        self.begun: list[str | None] = []
        self.under_way: list[str | None] = []
        self.most_under_way = 0
        self.may_end = threading.Event()

    def ask(self, principal: str | None) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.turns.run(principal, partial(self._read, principal)))

    async def has_begun(self, *principals: str | None) -> None:
        async def have_begun() -> bool:
            return sorted(map(str, self.begun)) == sorted(map(str, principals))

        await eventually(have_begun, f"the reads of {principals} are under way")

    def _read(self, principal: str | None) -> None:
        self.begun.append(principal)
        self.under_way.append(principal)
        self.most_under_way = max(self.most_under_way, len(self.under_way))
        self.may_end.wait(10)
        self.under_way.remove(principal)


async def test_who_asks_for_many_has_one_under_way_and_who_needs_no_turn_waits_for_nobody() -> None:
    work = Work()
    eve = [work.ask("eve") for _ in range(20)]
    await work.has_begun("eve")
    ben, cid = work.ask("ben"), work.ask("cid")
    await work.has_begun("eve", "ben")
    own = [work.ask(None) for _ in range(2)]
    await work.has_begun("eve", "ben", None, None)
    work.may_end.set()
    await asyncio.gather(*eve, ben, cid, *own)
    # Of those that waited the first of the one who had none before came before most of the others.
    assert work.begun.index("cid") < 8
    assert not work.turns._lines


async def test_who_gives_up_waiting_takes_no_turn() -> None:
    work = Work()
    first, second, third = (work.ask("eve") for _ in range(3))
    await work.has_begun("eve")
    second.cancel()
    work.may_end.set()
    await asyncio.wait((first, second, third))
    assert (work.begun, third.exception(), second.cancelled()) == (["eve"] * 2, None, True)


async def test_who_gives_up_has_his_turn_for_as_long_as_his_thread_goes_on() -> None:
    work = Work()
    first = work.ask("eve")
    await work.has_begun("eve")
    first.cancel()
    await asyncio.wait([first])
    second, ben = work.ask("eve"), work.ask("ben")
    await work.has_begun("eve", "ben")
    given_up = work.ask("cid")
    await asyncio.sleep(0)
    given_up.cancel()
    asked = [second, ben, work.ask("cid")]
    work.may_end.set()
    await asyncio.gather(*asked)
    assert (sorted(map(str, work.begun)), work.most_under_way) == (["ben", "cid", "eve", "eve"], 2)
