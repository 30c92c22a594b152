"""Connections that want nothing, or never say it, are not kept, and there are never more than so many."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.default_parts import node_limits
from tests.integration.http.test_express import FRAMEWORK, NAMED, TOPICS, Client, new_topics, request
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

HEAD_MS = 400
#: Of a request that asks for nothing more than its answer.
WHOLE = b"GET /v1/features HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#: ... that anybody may ask for.
PROBE = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def cut(client: Client) -> None:
    """The connection is told why, and closed."""
    status, fields, body = await client.read()
    assert (status, fields["connection"]) == (408, "close")
    assert json.loads(body)["message"] == "the head of a request may take 0.4 s: line, headers and an empty line"
    assert await client.is_closed()
    client.close()


async def asked(client: Client, what: bytes = WHOLE) -> Client:
    await client.write(what)
    assert (await client.read())[0] == 200
    return client


@pytest.mark.parametrize("is_first", [True, False])
async def test_head_that_does_not_come_to_its_end_is_cut(is_first: bool) -> None:
    async with stage(1, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        client = await Client.open(on)
        if not is_first:
            await asked(client)
        await client.write(WHOLE[:-2])
        await cut(client)


async def test_head_that_drips_is_cut_all_the_same() -> None:
    async with stage(1, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        client = await asked(await Client.open(on))
        await client.write(WHOLE[:-2])
        dripped = 0

        async def is_cut() -> bool:
            nonlocal dripped
            try:
                await client.write(b"a: b\r\n")
            except ConnectionError:  # a drip that crossed the answer: what came of it may be lost
                return True
            dripped += 1
            return client._reader.at_eof() or bool(client._reader._buffer)  # type: ignore[attr-defined]

        await eventually(is_cut, "the connection is cut though something comes all the time")
        assert dripped > 1  # how many come in the time is the machine's affair
        with suppress(ConnectionError):
            assert (await client.read())[0] == 408
        client.close()


async def test_connection_on_which_nothing_ever_comes_is_closed_and_one_that_asked_is_not() -> None:
    async with stage(1, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        await on.register(1, 1)
        silent, lane, framework = [await Client.open(on) for _ in range(3)]
        for client, line in ((lane, NAMED), (framework, FRAMEWORK)):
            await client.write(request(TOPICS, new_topics("a"), line))
            assert (await client.read())[0] == 200
        assert await silent.is_closed()
        later = await Client.open(on)
        assert await later.is_closed()
        for client, line in ((lane, NAMED), (framework, FRAMEWORK)):
            await client.write(request(TOPICS, new_topics("a"), line))
            assert (await client.read())[0] == 200
        for client in (silent, lane, framework, later):
            client.close()


async def test_body_and_answer_may_take_longer_than_a_head() -> None:
    async with stage(1, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        await on.register(1, 1)
        whole = request(TOPICS, new_topics("b", validate_only=False), FRAMEWORK)
        slow, body, clock = await Client.open(on), await Client.open(on), await Client.open(on)
        on.quorum.is_held = True
        await slow.write(whole)
        answer = asyncio.create_task(slow.read())
        await body.write(whole[:-9], whole[-9:-5])
        # Both have had longer than a head by then.
        assert await clock.is_closed()
        assert not answer.done()
        on.quorum.is_held = False
        on.quorum.commit()
        assert (await answer)[0] == 200
        await body.write(whole[-5:])
        assert (await body.read())[0] == 409  # it is there by now
        for client in (slow, body, clock):
            client.close()


async def opened(on: Stage, count: int) -> list[Client]:
    return [await Client.open(on) for _ in range(count)]


async def test_connections_are_bounded_and_one_too_many_is_told_so() -> None:
    async with stage(1, limits=node_limits(connections_max=6)) as on:
        kept = [await asked(await Client.open(on)) for _ in range(6)]
        for beyond in await opened(on, 20):
            status, fields, body = await beyond.read()
            assert (status, fields["connection"], fields["x-quorate-node"]) == (429, "close", "1")
            assert fields["retry-after"] == "1"
            refusal = json.loads(body)
            assert refusal["message"] == "6 connections are open, and there may be no more: close some"
            assert (refusal["error"], refusal["retriable"]) == ("THROTTLING_QUOTA_EXCEEDED", "yes")
            assert await beyond.is_closed()
            beyond.close()
        # Whoever is there is served, and there is place for another when one has gone: in the lane, in the framework.
        for leaving in (kept[-1], kept[0]):
            for client in kept:
                await asked(client)
            kept.remove(leaving)
            leaving.close()

            async def is_place() -> bool:
                client = (await opened(on, 1))[0]
                await client.write(WHOLE)
                if (await client.read())[0] == 200:
                    kept.append(client)
                    return True
                client.close()
                return False

            await eventually(is_place, "the place of the one that went is free")
        for client in kept:
            client.close()


async def test_stranger_who_says_nothing_keeps_nobody_out_who_asks() -> None:
    """However many there are: they have a quarter of the places, and the longest silent one goes first."""
    async with stage(1, limits=node_limits(connections_max=8)) as on:
        kept = [await asked(await Client.open(on)) for _ in range(2)]
        silent = [await Client.open(on), await asked(await Client.open(on), PROBE)]
        for _ in range(20):
            late = await asked(await Client.open(on))
            status, fields, body = await silent[0].read()
            assert (status, fields["connection"]) == (429, "close")
            assert json.loads(body)["message"] == "nothing was asked here, and others want the place: ask at once"
            silent.pop(0).close()
            late.close()
            silent.append(await Client.open(on))
        for client in kept:
            await asked(client)
            client.close()
        for client in silent:
            client.close()


async def test_last_place_is_that_of_the_stranger_who_was_silent_for_longest() -> None:
    async with stage(1, limits=node_limits(connections_max=8)) as on:
        silent = await Client.open(on)
        kept = [await asked(await Client.open(on)) for _ in range(8)]
        assert (await silent.read())[0] == 429
        beyond = await Client.open(on)
        status, _, body = await beyond.read()
        assert (status, json.loads(body)["message"]) == (
            429,
            "8 connections are open, and there may be no more: close some",
        )
        for client in (*kept, silent, beyond):
            client.close()


async def test_stranger_has_his_place_for_a_short_time_though_he_asks_what_anybody_may() -> None:
    async with stage(1, limits=node_limits(head_timeout_ms=HEAD_MS)) as on:
        prober, known = await asked(await Client.open(on), PROBE), await asked(await Client.open(on))
        assert await prober.is_closed()
        later = await Client.open(on)
        assert await later.is_closed()
        await asked(known)
        for client in (prober, known, later):
            client.close()


async def test_connections_of_one_address_are_bounded() -> None:
    async with stage(1, limits=node_limits(connections_per_address_max=3)) as on:
        kept = [await asked(await Client.open(on)) for _ in range(3)]
        beyond = await Client.open(on)
        status, _, body = await beyond.read()
        assert (status, json.loads(body)["message"]) == (
            429,
            "3 connections from 127.0.0.0/8 are open, and there may be no more: close some",
        )
        for client in (*kept, beyond):
            client.close()


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "possible"), [(256, 4_096, 1_000, 1_000), (256, 1_024, 8_192, 512), (64, 256, 100, 1)]
)
def test_process_lets_itself_open_as_many_files_as_its_connections_take_if_it_may(
    soft: int, hard: int, wanted: int, possible: int
) -> None:
    program = f"from quorate.controller.connections.open_files import places; print(places({wanted}, 512))"
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))  # noqa: E731
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=limit)
    assert ended.stdout.splitlines()[-1] == str(possible)
    assert ("http.fewer_connections" in ended.stdout) == (possible < wanted)


async def test_who_has_many_addresses_of_this_machine_pushes_out_himself_alone() -> None:
    """And not those who come from one of them at the same time, as brokers do after a failover."""
    async with stage(1, limits=node_limits(connections_max=32)) as on:
        port = int(on.members[1].url.rpartition(":")[2])

        async def come(host: int) -> Client:
            opened = await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{host}", 0))
            client = Client(*opened)
            await client.write()
            return client

        flood = [await come(host) for host in range(2, 10)]
        honest = [await Client.open(on) for _ in range(3)]
        flood += [await come(host) for host in range(10, 14)]
        for client in honest:
            await asked(client, PROBE)
        for client in flood[:7]:
            assert (await client.read())[0] == 429
        for client in (*flood, *honest):
            client.close()
