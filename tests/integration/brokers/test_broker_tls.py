"""Brokers over TLS: with the controllers, with each other, and with who asks them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from quorate.broker.settings import BrokerHttpSettings, BrokerTlsSettings
from quorate.broker.watcher import watch
from quorate.controller.api.tls_files import InvalidTlsFiles
from quorate.controller.client.client import ControllerClient
from tests.integration.broker_stage import playing
from tests.integration.brokers.test_broker_host import create, reassign, sees
from tests.integration.brokers.test_broker_process import broker_process
from tests.integration.http.test_express import Client
from tests.integration.http_stage import stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context, written
from tests.waiting import eventually

OURS, FOREIGN, HOST = authority(), authority("foreign"), "127.0.0.1"


def tls_settings(directory: Path) -> BrokerTlsSettings:
    paths = written(directory, issued(OURS, HOST), OURS)
    return BrokerTlsSettings(cert_file=paths.cert_file, key_file=paths.key_file, ca_files=tuple(paths.ca_files))


async def test_brokers_follow_the_log_and_each_other_over_tls(tmp_path: Path) -> None:
    server, client = server_context(issued(OURS, HOST)), client_context([OURS])
    secured = tls_settings(tmp_path).model_copy(update={"client_auth": "required"})
    async with stage(1, tls=SpokenTls(lambda: server, lambda: client)) as on:
        addresses = [on.urls[0].removeprefix("https://")]
        async with (
            playing([1], addresses, tls=secured) as one,
            playing([2], addresses, tls=secured) as other,
            watch(addresses, tls=lambda: client) as watcher,
            ControllerClient(addresses, tls=lambda: client) as asking,
        ):

            async def are_ready() -> bool:
                return one.host.is_ready and other.host.is_ready

            await eventually(are_ready, "both brokers are unfenced")
            await create(asking, "t", [1])
            await reassign(asking, "t", 0, [1, 2])
            await sees(on, "t", 0, "one has taken over from the other what it lacked", isr=(1, 2))
            await watcher.wait_for(lambda image: "t" in image.topics.by_name, 10_000)
            url = f"https://{one.endpoint.host}:{one.endpoint.port}/v1/process"
            async with one.session.get(url, ssl=client) as answer:
                assert (answer.status, "a client certificate is wanted" in await answer.text()) == (401, True)
                assert answer.headers["Connection"] == "close"
            known = client_context([OURS], issued(OURS, "somebody"))
            async with one.session.get(url, ssl=known) as answer:
                assert answer.status == 200
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await one.session.get(url, ssl=client_context([FOREIGN]))
            async with one.session.get(url.replace("/v1/process", "/metrics"), ssl=known) as answer:
                (left,) = re.findall(
                    r"^quorate_broker_certificate_expiry_seconds (\S+)$", await answer.text(), re.MULTILINE
                )
                assert 0 < float(left) < math.inf
            async with one.session.get(url.replace("https", "http")) as answer:
                assert (answer.status, "ask it with https://" in await answer.text()) == (400, True)


async def test_connection_to_a_broker_process_ends_when_the_ca_of_its_certificate_is_retired(tmp_path: Path) -> None:
    secured = tls_settings(tmp_path).model_copy(update={"client_auth": "required"})
    http = BrokerHttpSettings(head_timeout_ms=400)
    async with playing([1], ["127.0.0.1:1"], tls=secured, http=http) as played:
        client = await Client.open_port(played.endpoint.port, client_context([OURS], issued(OURS, "somebody")))
        await client.write(b"GET /v1/process HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await client.read())[0] == 200
        written(tmp_path, issued(FOREIGN, HOST), FOREIGN)
        assert await client.is_closed()
        client.close()


async def test_brokers_tell_nothing_to_controllers_that_they_do_not_trust(tmp_path: Path) -> None:
    server, client = server_context(issued(FOREIGN, HOST)), client_context([FOREIGN])
    async with stage(1, tls=SpokenTls(lambda: server, lambda: client)) as on:
        async with playing([1], [on.urls[0]], tls=tls_settings(tmp_path)) as played:

            async def trouble() -> str | None:
                return played.host.loader.trouble

            assert "not to be trusted" in str(await eventually(trouble, "it says why it does not follow"))
        assert not on.members[1].soft.counters().http_answers


def test_certificate_that_nobody_would_trust_is_refused_at_the_start(tmp_path: Path) -> None:
    paths = written(tmp_path, issued(OURS, HOST), FOREIGN)
    settings = BrokerTlsSettings(cert_file=paths.cert_file, key_file=paths.key_file, ca_files=tuple(paths.ca_files))
    with pytest.raises(InvalidTlsFiles, match="the certificate is not of one of the CAs"):
        settings.load()


async def test_process_warns_of_the_end_of_its_certificate(tmp_path: Path) -> None:
    ends = datetime.now(UTC) + timedelta(days=3)
    paths = written(tmp_path, issued(OURS, HOST, ends=ends), OURS)
    files = {"CERT_FILE": str(paths.cert_file), "KEY_FILE": str(paths.key_file), "CA_FILES": str(paths.ca_files[0])}
    settings = {f"QUORATE_BROKER_TLS__{name}": value for name, value in files.items()}
    async with broker_process("--ids", "1", "--controllers", f"{HOST}:1", **settings) as process:
        assert "renew it" in str((await process.said("certificate.ends"))["why"])
