"""Connections to a broker process: whoever wants nothing is not kept, and takes no place from who asks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quorate.broker.settings import BrokerHttpSettings
from quorate.controller.identity.login_failures import FAILURES_MAX
from tests.integration.broker_stage import Played, playing, stage_with_short_sessions
from tests.integration.brokers.test_broker_access import ANA, ROOT, token
from tests.integration.brokers.test_broker_access import asked as guarded
from tests.integration.brokers.test_broker_process import bounded_broker_process, ready
from tests.integration.brokers.test_broker_tls import OURS, tls_settings
from tests.integration.http.test_express import Client
from tests.integration.http_stage import Stage
from tests.integration.made_certificates import client_context
from tests.waiting import eventually

HEAD_MS = 400
#: The fewest that the settings let be; strangers have four of them.
PLACES = 16
READ = b"GET /v1/process HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SECRET = b"s" * 32
SHOWN = b"GET /v1/process HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %b\r\n\r\n" % SECRET
CHANGE = (
    b"PUT /v1/rehearsal HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %b\r\n"
    b'Content-Type: application/json\r\nContent-Length: 23\r\n\r\n{"copy_bytes_per_s": 1}'
)
NOWHERE = ["127.0.0.1:1"]
FILES = 256


async def opened(played: Played) -> Client:
    return await Client.open_port(played.endpoint.port)


async def asked(client: Client, what: bytes = READ) -> Client:
    await client.write(what)
    assert (await client.read())[0] == 200
    return client


async def refusal(client: Client) -> tuple[int, str, str]:
    """Status, form of the connection, and the sentence, of what a connection is told that is closed."""
    status, fields, body = await client.read()
    assert await client.is_closed()
    client.close()
    return status, fields["connection"], json.loads(body)["message"]


async def test_head_that_does_not_come_to_its_end_is_cut_and_who_is_silent_loses_the_connection() -> None:
    http = BrokerHttpSettings(head_timeout_ms=HEAD_MS)
    async with playing([1], NOWHERE, http=http) as played:
        first, later, silent = [await opened(played) for _ in range(3)]
        await asked(later)
        for client in (first, later):
            await client.write(READ[:-2])
            said = "the head of a request may take 0.4 s: line, headers and an empty line"
            assert await refusal(client) == (408, "close", said)
        assert await silent.is_closed()
        silent.close()


async def test_head_with_too_long_a_line_is_refused_in_the_form_of_all_errors() -> None:
    async with playing([1], NOWHERE) as played:
        client = await opened(played)
        await client.write(READ[:-2] + b"X-Long: " + b"a" * 9_000 + b"\r\n\r\n")
        assert await refusal(client) == (431, "close", "a line of a request's head has at most 8190 bytes")


async def test_connections_that_asked_are_bounded_and_one_more_is_told_so() -> None:
    async with playing([1], NOWHERE, http=BrokerHttpSettings(connections_max=PLACES)) as played:
        kept = [await asked(await opened(played)) for _ in range(PLACES)]
        said = f"{PLACES} connections are open, and there may be no more: close some"
        assert await refusal(await opened(played)) == (429, "close", said)
        for client in kept:
            await asked(client)
        await kept[0].write(READ.replace(b"/v1/process", b"/metrics"))
        assert b"quorate_broker_http_connections_refused_total 1.0" in (await kept[0].read())[2]
        for client in kept:
            client.close()


@pytest.mark.parametrize("what", [READ, SHOWN], ids=["reads without the secret", "shows the secret"])
async def test_however_many_are_silent_who_asks_is_heard(what: bytes) -> None:
    """The secret makes known who shows it: his connections are not among those that give up their places."""
    http = BrokerHttpSettings(connections_max=PLACES)
    async with playing([1], NOWHERE, http=http, own_secret=SECRET) as played:
        known = [await asked(await opened(played), SHOWN) for _ in range(PLACES // 2)]
        silent = [await opened(played) for _ in range(2 * PLACES)]
        known.append(await asked(await opened(played), what))
        for client in known:
            await asked(client, what)
        said = "nothing was asked here, and others want the place: ask at once"
        assert await refusal(silent[0]) == (429, "close", said)
        for client in (*known, *silent):
            client.close()


async def test_who_reads_without_the_secret_keeps_no_place_from_who_shows_it() -> None:
    http = BrokerHttpSettings(connections_max=PLACES)
    async with playing([1], NOWHERE, http=http, own_secret=SECRET) as played:
        readers = [await asked(await opened(played)) for _ in range(PLACES)]
        known = await asked(await opened(played), SHOWN)
        for client in (*readers, known):
            client.close()


async def test_principal_gives_up_his_own_places_and_super_users_none(tmp_path: Path) -> None:
    """A quarter of them is one principal's, but for super users."""
    async with guarded(tmp_path, BrokerHttpSettings(connections_max=PLACES)) as a:
        await a.allow(ANA, "DESCRIBE", "CLUSTER", "kafka-cluster")

        async def connected(who: str) -> Client:
            shown = READ[:-2] + f"Authorization: Bearer {token(who)}\r\n\r\n".encode()
            return await asked(await opened(a.played), shown)

        roots = [await connected(ROOT) for _ in range(PLACES // 4 + 1)]
        first, *later = [await connected(ANA) for _ in range(PLACES // 4 + 1)]
        said = f"{PLACES // 4 + 1} of {PLACES} connections are {ANA}'s, and others want the place: open fewer"
        assert await refusal(first) == (429, "close", said)
        for client in (*roots, *later):
            await client.write(READ)
            assert (await client.read())[0] == 403, "it stands, and asks as nobody now"
            client.close()


async def test_who_shows_a_secret_that_is_none_keeps_no_connection() -> None:
    async with playing([1], NOWHERE, own_secret=SECRET) as played:
        statuses = []
        for _ in range(FAILURES_MAX + 2):
            client = await opened(played)
            await client.write(CHANGE % (b"x" * 32))
            status, form, _ = await refusal(client)
            assert form == "close"
            statuses.append(status)
        assert statuses[:FAILURES_MAX] == [401] * FAILURES_MAX
        assert statuses[-1] == 429
        known = await opened(played)
        for _ in range(2):
            await asked(known, CHANGE % SECRET)
        known.close()


async def test_who_begins_to_speak_tls_has_a_place_and_gives_it_up(tmp_path: Path) -> None:
    http = BrokerHttpSettings(connections_max=PLACES, head_timeout_ms=600_000)
    async with playing([1], NOWHERE, http=http, tls=tls_settings(tmp_path)) as played:
        silent = [await opened(played) for _ in range(PLACES // 4)]
        url = f"https://{played.endpoint.host}:{played.endpoint.port}/v1/process"
        async with played.session.get(url, ssl=client_context([OURS])) as answer:
            assert answer.status == 200
        assert await silent[0].is_closed()
        for client in silent:
            client.close()


def heartbeats(on: Stage) -> int:
    answers = on.members[1].soft.counters().http_answers
    return sum(count for (route, status), count in answers.items() if "heartbeat" in route and status == 200)


async def test_strangers_do_not_keep_a_process_that_may_open_few_files_from_its_controllers() -> None:
    """They hold all that they can when its connections break: it makes new ones, and its broker is not fenced."""
    async with (
        stage_with_short_sessions() as on,
        bounded_broker_process(FILES, "--ids", "1", "--controllers", on.urls[0]) as process,
    ):
        await ready(on, 1)
        port = (await process.said("http.listening"))["port"]
        assert isinstance(port, int)
        epoch = on.members[1].controller.stable.cluster.brokers[1].epoch
        strangers = [await Client.open_port(port) for _ in range(FILES)]
        open_files = Path(f"/proc/{process.process.pid}/fd")

        async def have_what_they_can() -> bool:
            are_told = any(client._reader._buffer for client in strangers)  # type: ignore[attr-defined]
            return are_told or len(os.listdir(open_files)) >= FILES - 1

        await eventually(have_what_they_can, "strangers hold all that they can")
        assert len(os.listdir(open_files)) < FILES / 2
        server = on.members[1]._server
        assert server is not None
        for transport in [one.transport for one in server._lane.connections | server._lane.gate.handed_over]:
            transport.close()
        before = heartbeats(on)

        async def goes_on() -> bool:
            return heartbeats(on) > before + 20

        await eventually(goes_on, "it goes on by new connections")
        broker = on.members[1].controller.stable.cluster.brokers[1]
        assert (broker.epoch, broker.is_fenced) == (epoch, False)
        for client in strangers:
            client.close()
