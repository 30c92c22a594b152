"""Bodies that take long wait for turns of the loop: one in each, and nobody waits for all that another has sent."""

from __future__ import annotations

import asyncio

from quorate.controller.connections.body_turns import BodyTurns, bytes_at_once


async def test_each_turn_of_the_loop_has_one_and_each_principals_first_comes_before_anybodys_second() -> None:
    turns, turn, taken = BodyTurns(), 0, []

    async def take(owner: str | None) -> None:
        async with turns.turn(owner):
            taken.append((owner, turn))

    owners = ["eve"] * 50 + ["ben"] * 2 + [None]
    waiting = [asyncio.ensure_future(take(owner)) for owner in owners]
    while not all(one.done() for one in waiting):
        await asyncio.sleep(0)
        turn += 1
    assert len({at for _, at in taken}) == len(owners)
    assert {owner for owner, _ in taken[:3]} == {"eve", "ben", None}
    assert [owner for owner, _ in taken].index("ben", 2) < 6


async def test_who_gives_up_waiting_keeps_nobody_waiting() -> None:
    turns, taken = BodyTurns(), []

    async def take(owner: str) -> None:
        async with turns.turn(owner):
            taken.append(owner)

    waiting = [asyncio.ensure_future(take(owner)) for owner in ("eve", "eve", "ben")]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert sorted(taken) == ["ben", "eve"]
    waiting.clear()
    assert not turns._lines


def test_principals_have_less_at_once_than_the_clusters_own() -> None:
    assert bytes_at_once("User:eve") < bytes_at_once(None)
