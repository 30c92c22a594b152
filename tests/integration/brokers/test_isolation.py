"""Whoever floods a controller with changes keeps no broker waiting: counted on the server in decisions, not in time."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.api.content import decode_body
from quorate.controller.api.headers import TIMEOUT_MS
from quorate.controller.connections.body_turns import bytes_at_once
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.http import dispatch, express
from quorate.controller.http.express import ExpressConnection
from quorate.controller.identity.bearer_tokens import token_line
from tests.integration.access.test_permissions import access_of, bearer, token
from tests.integration.http.test_express import HEARTBEAT, TOPICS, Client, new_topics, request
from tests.integration.http_stage import Stage, stage
from tests.waiting import PATIENCE_S, eventually

BROKERS = (1, 2, 3, 4)
BEATS = 50
#: Connections on each of which the flood has one change under way, all the time.
FLOOD = 100


def beat_of(broker: int, epoch: int, **said: Any) -> bytes:
    return request(HEARTBEAT, {"broker_id": broker, "broker_epoch": epoch, "current_metadata_offset": 1, **said})


class Decisions:
    """The changes that a controller has decided, and how many of them while each heartbeat waited for its answer."""

    def __init__(self, on: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decided = 0
        self.waited: list[int] = []
        on.members[1].controller.on_decided = self._note
        read = ExpressConnection.data_received

        def data_received(connection: ExpressConnection, data: bytes) -> None:
            before = self.decided
            read(connection, data)
            if data.startswith(f"POST {HEARTBEAT}".encode()):
                if connection.task is None:
                    self.waited.append(self.decided - before)
                else:
                    connection.task.add_done_callback(lambda _: self.waited.append(self.decided - before))

        monkeypatch.setattr(ExpressConnection, "data_received", data_received)

    def _note(self, _: DecidedWrite) -> None:
        self.decided += 1


class Flood:
    """Changes by one principal, as many at once as it has connections."""

    def __init__(self) -> None:
        self.is_over = False
        self._names = count()

    async def run(self, on: Stage) -> None:
        client = await Client.open(on)
        while not self.is_over:
            topics = new_topics(f"t{next(self._names)}", validate_only=False)
            client._writer.write(request(TOPICS, topics, "X-Quorate-Principal: User:eve"))
            assert (await client.read())[0] == 200
        client.close()


async def beat(on: Stage, broker: int, epoch: int) -> None:
    client = await Client.open(on)
    for _ in range(BEATS):
        client._writer.write(beat_of(broker, epoch))
        status, _, answer = await client.read()
        assert (status, json.loads(answer)["is_fenced"]) == (200, False)
    client.close()


async def test_no_change_is_decided_between_a_heartbeat_and_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of brokers that stay what they are, whatever waits for its turn or its commit."""
    async with stage(1) as on:
        epochs = {broker: await on.register(1, broker) for broker in BROKERS}
        decisions, flood = Decisions(on, monkeypatch), Flood()

        async def has_risen() -> bool:
            return decisions.decided >= FLOOD

        async with asyncio.TaskGroup() as flooding:
            try:
                for _ in range(FLOOD):
                    flooding.create_task(flood.run(on))
                await eventually(has_risen, "the flood is there")
                begun = decisions.decided
                await asyncio.gather(*(beat(on, broker, epoch) for broker, epoch in epochs.items()))
                decided = decisions.decided - begun
            finally:
                flood.is_over = True
        image = on.members[1].controller.stable
        assert not any(broker.is_fenced for broker in image.cluster.brokers.values())
    assert len(decisions.waited) == len(BROKERS) * BEATS
    assert decided > FLOOD  # the flood went on meanwhile
    assert max(decisions.waited) == 0


@pytest.mark.parametrize("principal", [None, "User:eve", "nobody"])
async def test_large_bodies_are_decoded_one_in_a_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, principal: str | None
) -> None:
    """So the sockets are read, and heartbeats answered, between two of them, however many have come.

    Of principals they need not be so large: each thing in them is looked up in the ACLs.
    """
    turn, decoded = 0, []

    def noted(model: Any, data: bytes, media: str) -> Any:
        decoded.append(turn)
        return decode_body(model, data, media)

    def count_turn() -> None:
        nonlocal turn
        turn += 1
        if len(decoded) < len(clients):
            asyncio.get_running_loop().call_soon(count_turn)

    for module in (dispatch, express):
        monkeypatch.setattr(module, "decode_body", noted)
    lines = [f"{name}: {value}" for name, value in bearer(principal or "nobody").items()]
    async with _asked_by(principal, tmp_path) as on:
        body = b"[" + b" " * bytes_at_once(principal) + b"]"
        clients = [await Client.open(on) for _ in range(6)]
        for client in clients:
            await client.write(request(TOPICS, body, *lines)[:-1])
        count_turn()
        for client in clients:
            client._writer.write(b"]")
        for client in clients:
            assert (await client.read())[0] == 400
            client.close()
    assert len(decoded) == len(set(decoded)) == len(clients)


async def test_body_of_who_has_gone_takes_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else whoever sends and goes has the loop work for him long after."""
    decoded: list[bytes] = []
    monkeypatch.setattr(dispatch, "decode_body", lambda model, data, media: decoded.append(data))
    line = f"Authorization: {bearer('User:eve')['Authorization']}"
    async with _asked_by("User:eve", tmp_path) as on:
        server, client = on.members[1]._server, await Client.open(on)
        assert server is not None
        turns = server._runner.app[dispatch.TURNS_KEY]
        async with turns.turn("User:ben"):
            await client.write(request(TOPICS, b" " * (bytes_at_once("User:eve") + 1), line))

            async def waits() -> bool:
                return "User:eve" in turns._lines

            await eventually(waits, "the body waits for its turn")
            client._writer.transport.abort()

            async def is_gone() -> bool:
                return not server._lane.gate.handed_over

            await eventually(is_gone, "the connection is lost")

        async def is_over() -> bool:
            return not turns._lines

        await eventually(is_over, "nothing waits any more")
    assert not decoded


async def test_time_of_a_request_goes_on_while_its_body_waits_for_its_turn() -> None:
    async with stage(1) as on:
        await on.register(1, 1)
        server, client = on.members[1]._server, await Client.open(on)
        assert server is not None
        turns, before = server._runner.app[dispatch.TURNS_KEY], on.quorum.log_end_offset
        body = json.dumps(new_topics("late", validate_only=False)).encode() + b" " * bytes_at_once(None)
        async with turns.turn("User:ben"):
            await client.write(request(TOPICS, body, f"{TIMEOUT_MS}: 50"))
            status, _, refusal = await asyncio.wait_for(client.read(), PATIENCE_S)
        assert (status, json.loads(refusal)["error"]) == (503, "REQUEST_TIMED_OUT")
        assert (on.quorum.log_end_offset, len(turns._lines)) == (before, 0)
        await client.write(request(TOPICS, body, f"{TIMEOUT_MS}: 30000"))
        assert (await client.read())[0] == 200
        assert before < on.quorum.log_end_offset
        client.close()


def _asked_by(principal: str | None, tmp_path: Path) -> AbstractAsyncContextManager[Stage]:
    """A controller that is asked by a principal; None: by whoever may do everything."""
    if principal is None:
        return stage(1)
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("" if principal == "nobody" else f"{token_line(token(principal), principal)}\n")
    return stage(1, access=lambda node_id: access_of(file, node_id))


async def test_heartbeat_that_changes_something_comes_before_the_changes_that_wait() -> None:
    async with stage(1) as on:
        epoch, _ = [await on.register(1, broker) for broker in (1, 2)]
        decided: list[str] = []
        on.members[1].controller.on_decided = lambda one: decided.append(one.name)
        clients = [await Client.open(on) for _ in range(41)]
        for number, client in enumerate(clients[:-1]):
            client._writer.write(request(TOPICS, new_topics(f"t{number}", validate_only=False)))
        clients[-1]._writer.write(beat_of(1, epoch, want_fence=True))
        for client in clients:
            assert (await client.read())[0] == 200
            client.close()
    assert len(decided) == len(clients)
    # What was read in the same turn of the loop, and so wanted its turn at the same time, was decided after it.
    assert decided.index("broker_heartbeat") < len(decided) - 1


async def test_heartbeat_waits_for_the_commit_of_what_is_said_of_its_broker_and_of_nothing_else() -> None:
    async with stage(1) as on:
        epochs = {broker: await on.register(1, broker) for broker in (1, 2)}
        creator, steady, fencing, fenced = [await Client.open(on) for _ in range(4)]
        on.quorum.is_held = True
        await creator.write(request(TOPICS, new_topics("a", validate_only=False)))
        created = asyncio.create_task(creator.read())
        await fencing.write(beat_of(2, epochs[2], want_fence=True))
        asked = asyncio.create_task(fencing.read())
        await fenced.write(beat_of(2, epochs[2], want_fence=True))
        asked_again = asyncio.create_task(fenced.read())
        for _ in range(3):
            await steady.write(beat_of(1, epochs[1]))
            status, _, answer = await steady.read()
            assert (status, json.loads(answer)["is_fenced"]) == (200, False)
        assert not any(task.done() for task in (created, asked, asked_again))
        on.quorum.is_held = False
        on.quorum.commit()
        assert (await created)[0] == 200
        for task in (asked, asked_again):
            assert json.loads((await task)[2])["is_fenced"] is True
        for client in (creator, steady, fencing, fenced):
            client.close()
