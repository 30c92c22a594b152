"""A broker process's own HTTP API with an authorizer: who asks is known, and may do what the cluster's ACLs say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quorate.broker.access_settings import BrokerAccessSettings
from quorate.broker.http import http_api
from quorate.broker.http.permissions import PERMISSIONS
from quorate.broker.replicas.messages import FollowMessage, encode_message, no_rows
from quorate.broker.replicas.peers import FOLLOW_PATH, MSGPACK
from quorate.broker.settings import BrokerHttpSettings, BrokerTlsSettings
from quorate.controller.api.headers import HOPS, PRINCIPAL
from quorate.controller.client.client import ControllerClient
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.identity.login_failures import FAILURES_MAX
from quorate.controller.permissions.permission import ByItem, OnCluster
from quorate.controller.permissions.rights import Rights
from quorate.controller.permissions.topics import shown_topics
from quorate.controller.protocol.acls import AclOperation
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.lost_majority.asking import ask_brokers
from quorate.scripts.lost_majority.errors import RecoveryError
from tests.integration.broker_stage import Played, playing
from tests.integration.brokers.test_broker_host import create, reassign, sees
from tests.integration.http_stage import CLUSTER_ID, Stage, stage
from tests.integration.made_certificates import SpokenTls, authority, client_context, issued, server_context, written
from tests.waiting import eventually

ROOT, ANA, EVE, BROKER = "User:root", "User:ana", "User:eve", "Broker:2"
JSON = "application/json"


def token(principal: str) -> str:
    return f"the token of {principal}"


@dataclass
class Asked:
    """A broker process, and those who ask it."""

    on: Stage
    client: ControllerClient
    played: Played

    async def status(self, who: str | None, method: str, path: str, body: bytes = b"", form: str = JSON) -> int:
        """Of the answer to a principal's token; None: nothing is shown."""
        return (await self.answer(who, method, path, body, form))[0]

    async def answer(
        self, who: str | None, method: str, path: str, body: bytes = b"", form: str = JSON
    ) -> tuple[int, str]:
        url = f"http://{self.played.endpoint.host}:{self.played.endpoint.port}{path}"
        shown = {} if who is None else {"Authorization": f"Bearer {token(who)}"}
        sent = self.played.session.request(method, url, data=body, headers={"Content-Type": form, **shown})
        async with sent as answer:
            return answer.status, (await answer.read()).decode(errors="replace")

    async def allow(self, principal: str, operation: str, type_: str, name: str, verdict: str = "ALLOW") -> None:
        """Write an ACL, and wait until the process has read it."""
        creation = {"resource_type": type_, "resource_name": name, "principal": principal}
        said = {"creations": [creation | {"operation": operation, "permission_type": verdict}]}
        status, reply, _ = await self.on.ask(1, "POST", "/v1/acls", said)
        assert status == 200, reply
        await self._caught_up()

    async def _caught_up(self) -> None:
        end = self.on.quorum.committed

        async def has_read() -> bool:
            return self.played.host.loader.position.offset >= end

        await eventually(has_read, "the process has read what was written")


@asynccontextmanager
async def asked(tmp_path: Path, http: BrokerHttpSettings | None = None, **more: Any) -> AsyncIterator[Asked]:
    """Broker 1 with an authorizer, and topics a and b."""
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{token_line(token(one), one)}\n" for one in (ROOT, ANA, BROKER)))
    access = BrokerAccessSettings(authorizer="acl", super_users=(ROOT,), tokens_file=file, **more)
    async with (
        stage(1) as on,
        ControllerClient(on.urls) as client,
        playing([1], on.urls, access=access, http=http or BrokerHttpSettings(), log_directories=2) as played,
    ):
        await played.ready()
        await create(client, "a", [1])
        await create(client, "b", [1])
        yield Asked(on, client, played)


def following(broker_id: int) -> bytes:
    return encode_message(FollowMessage(CLUSTER_ID, "127.0.0.1:1", 1, 0, ((broker_id, 1),), -1, -1, no_rows()))


def called(path: str) -> str:
    return path.replace("{id}", "1").replace("{name}", "a")


async def test_each_route_asks_for_what_its_row_says(tmp_path: Path) -> None:
    """Whoever shows nothing, or a token of nobody, is refused; so is one without the right, whatever else he has."""
    async with asked(tmp_path) as a:
        guarded = {key: row for key, row in PERMISSIONS.items() if isinstance(row, OnCluster)}
        assert len(guarded) == 10
        for method, path in guarded:
            assert await a.status(None, method, called(path)) == 403, path
            assert await a.status(EVE, method, called(path)) == 401, path
            assert await a.status(ANA, method, called(path)) == 403, path
        await a.allow(ANA, "DESCRIBE", "CLUSTER", "kafka-cluster")
        seen = {key: await a.status(ANA, key[0], called(key[1])) for key in guarded}
        reads = {key for key, row in guarded.items() if row.operation == "DESCRIBE"}
        assert {key for key, status in seen.items() if status != 403} == reads
        assert {seen[key] for key in reads} == {200}
        for probe in ("/livez", "/readyz"):
            assert await a.status(None, "GET", probe) == 200


async def test_right_is_taken_away_under_way_and_only_super_users_need_none(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        pace = b'{"copy_bytes_per_s": 1}'
        assert await a.status(ROOT, "PUT", "/v1/rehearsal", pace) == 200
        await a.allow(ANA, "ALTER", "CLUSTER", "kafka-cluster")
        assert await a.status(ANA, "PUT", "/v1/rehearsal", pace) == 200
        await a.allow(ANA, "ALTER", "CLUSTER", "kafka-cluster", "DENY")
        assert await a.status(ANA, "PUT", "/v1/rehearsal", b'{"copy_bytes_per_s": 9}') == 403
        assert '"copy_bytes_per_s":1,' in (await a.answer(ROOT, "GET", "/v1/rehearsal"))[1]


async def test_digest_that_waited_is_refused_where_the_right_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path) as a:
        await a.allow(ANA, "DESCRIBE", "CLUSTER", "kafka-cluster")
        digests, waits = a.played.host.digests, asyncio.Event()
        digest_at = digests.at

        async def noted(offset: int | None, wait_ms: float) -> tuple[int, str]:
            waits.set()
            return await digest_at(offset, wait_ms)

        monkeypatch.setattr(digests, "at", noted)
        path = f"/v1/image/digest?offset={a.on.quorum.committed + 1}&wait_ms=60000"
        answer = asyncio.create_task(a.status(ANA, "GET", path))
        await waits.wait()
        await a.allow(ANA, "DESCRIBE", "CLUSTER", "kafka-cluster", "DENY")
        assert await answer == 403


async def test_topics_are_shown_to_who_may_describe_them_and_else_not_told_from_none(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        await a.allow(ANA, "READ", "TOPIC", "a")
        assert [row for row in PERMISSIONS.values() if isinstance(row, ByItem)]
        assert '"a"' in (listed := (await a.answer(ANA, "GET", "/v1/topics"))[1])
        assert '"b"' not in listed
        assert await a.status(ANA, "GET", "/v1/topics/a") == 200
        hidden, absent = [await a.answer(ANA, "GET", f"/v1/topics/{name}") for name in "bc"]
        assert (hidden[0], hidden[1].partition("request_id")[0]) == (403, absent[1].partition("request_id")[0])
        assert await a.status(ROOT, "GET", "/v1/topics/c") == 404


async def test_loop_goes_on_while_names_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may see none of the topics has all of them asked about: heartbeats do not wait for that."""
    async with asked(tmp_path) as a:
        loop, has_turned = asyncio.get_running_loop(), threading.Event()
        turned: list[tuple[str, bool]] = []

        def shown_after_a_turn(rights: Rights, operation: AclOperation) -> Callable[[str], bool]:
            is_shown = shown_topics(rights, operation)
            assert is_shown is not None

            def ask(name: str) -> bool:
                has_turned.clear()
                loop.call_soon_threadsafe(has_turned.set)
                turned.append((name, has_turned.wait(10.0)))
                return is_shown(name)

            return ask

        monkeypatch.setattr(http_api, "shown_topics", shown_after_a_turn)
        status, listed = await a.answer(ANA, "GET", "/v1/topics")
        assert (status, '"topics":[]' in listed) == (200, True)
        assert turned == [("a", True), ("b", True)]


async def test_principal_who_asks_for_many_topics_at_once_waits_behind_himself_and_the_cluster_behind_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On threads, of which there are few: he has one of them at most."""
    may_end, under_way, most = threading.Event(), 0, 0

    def held(work: Callable[..., Any], *given: object) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        may_end.wait(10.0)
        under_way -= 1
        return work(*given)

    async with asked(tmp_path) as a:
        for right in (("READ", "TOPIC", "a"), ("DESCRIBE", "CLUSTER", "kafka-cluster")):
            await a.allow(ANA, *right)
        for name in ("topics_reply", "topic_reply", "image_reply"):
            monkeypatch.setattr(http_api, name, partial(held, getattr(http_api, name)))
        paths = ("/v1/topics", "/v1/topics/a", "/v1/image") * 3
        asking = [asyncio.create_task(a.status(ANA, "GET", path)) for path in paths]

        async def is_under_way() -> bool:
            return under_way == 1

        await eventually(is_under_way, "one is under way")
        own = [asyncio.create_task(a.status(ROOT, "GET", "/v1/topics")) for _ in range(2)]

        async def has_begun() -> bool:
            return under_way == 3

        await eventually(has_begun, "an administrator waits for no turn")
        assert most == 3
        may_end.set()
        assert set(await asyncio.gather(*asking, *own)) == {200}
        assert most == 3


async def test_broker_follows_in_its_own_name_and_does_nothing_else(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        for who, broker_id, status in (
            (BROKER, 2, 200),
            (BROKER, 3, 403),
            (ROOT, 3, 200),
            (ANA, 2, 403),
            (None, 2, 403),
        ):
            assert await a.status(who, "POST", FOLLOW_PATH, following(broker_id), MSGPACK) == status, (who, broker_id)
        await a.allow(ANA, "CLUSTER_ACTION", "CLUSTER", "kafka-cluster")
        assert await a.status(ANA, "POST", FOLLOW_PATH, following(2), MSGPACK) == 403, "no ACL makes a broker"
        assert await a.status(BROKER, "PUT", "/v1/rehearsal", b"{}") == 403
        assert await a.status(BROKER, "GET", "/v1/process") == 403
        assert await a.status(BROKER, "GET", "/v1/image/digest") == 200


async def test_survey_of_a_lost_quorum_shows_the_broker_who_asks(tmp_path: Path) -> None:
    """It was named to be heard: a refusal is told, and not taken for silence."""
    async with asked(tmp_path) as a:
        await a.allow(ANA, "DESCRIBE", "CLUSTER", "kafka-cluster")
        url = f"http://{a.played.endpoint.host}:{a.played.endpoint.port}"
        (heard,) = await asyncio.to_thread(ask_brokers, [url], token(ANA).encode(), tmp_path)
        assert (heard.url, heard.node_id) == (url, 1)
        assert heard.high_watermark == a.played.host.loader.position.offset
        with pytest.raises(RecoveryError, match=r"does not say how far it is \(.*User:ANONYMOUS needs DESCRIBE"):
            await asyncio.to_thread(ask_brokers, [url], None, tmp_path)
        with pytest.raises(RecoveryError, match=r"no broker answers there"):
            await asyncio.to_thread(ask_brokers, a.on.urls, token(ANA).encode(), tmp_path)


async def test_proxy_asks_in_the_name_of_others_and_nobody_else_does(tmp_path: Path) -> None:
    async with asked(tmp_path, proxies=(BROKER, ROOT)) as a:
        url = f"http://{a.played.endpoint.host}:{a.played.endpoint.port}/v1/process"
        for who, in_name_of, status in ((ROOT, ROOT, 200), (ROOT, ANA, 403), (ANA, ROOT, 403), (BROKER, ROOT, 200)):
            named = {"Authorization": f"Bearer {token(who)}", PRINCIPAL: in_name_of}
            async with a.played.session.get(url, headers=named) as answer:
                assert answer.status == status, (who, in_name_of)


async def test_request_that_was_passed_on_is_refused(tmp_path: Path) -> None:
    """Controllers pass requests on to each other, in their clients' names: a broker would believe such a name."""
    async with asked(tmp_path) as a:
        url = f"http://{a.played.endpoint.host}:{a.played.endpoint.port}/v1/process"
        shown = {"Authorization": f"Bearer {token(ROOT)}"}
        for more, status in (({}, 200), ({HOPS: "1"}, 400)):
            async with a.played.session.get(url, headers={**shown, **more}) as answer:
                assert answer.status == status, await answer.text()


async def test_probe_tells_of_brokers_to_who_may_see_them(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        told = {who: "broker_id" in (await a.answer(who, "GET", "/readyz"))[1] for who in (None, EVE, ANA, ROOT)}
        assert told == {None: False, EVE: False, ANA: False, ROOT: True}


async def test_wrong_tokens_again_and_again_are_told_to_wait_and_a_right_one_is_let_in(tmp_path: Path) -> None:
    async with asked(tmp_path) as a:
        url, sent = (
            f"http://{a.played.endpoint.host}:{a.played.endpoint.port}/v1/process",
            {"Authorization": "Bearer x"},
        )
        seen: list[tuple[int, str | None]] = []
        for _ in range(2 * FAILURES_MAX):
            async with a.played.session.get(url, headers=sent) as answer:
                seen.append((answer.status, answer.headers.get("Retry-After")))
        assert set(seen[:FAILURES_MAX]) == {(401, None)}
        assert (429, "3") in seen[FAILURES_MAX:]
        assert await a.status(ROOT, "GET", "/v1/process") == 200


async def test_brokers_know_each_other_by_their_certificates(tmp_path: Path) -> None:
    """They exchange what they hold, and a certificate of another cluster's broker is nobody's here."""
    ours = authority()
    server, client = server_context(issued(ours, "127.0.0.1")), client_context([ours])

    def secured(broker_id: int, cluster_id: str = CLUSTER_ID) -> BrokerTlsSettings:
        uri = f"quorate://{cluster_id}/broker/{broker_id}"
        at = tmp_path / f"{cluster_id}-{broker_id}"
        at.mkdir()
        paths = written(at, issued(ours, "127.0.0.1", uris=[uri]), ours)
        return BrokerTlsSettings(cert_file=paths.cert_file, key_file=paths.key_file, ca_files=tuple(paths.ca_files))

    access = BrokerAccessSettings(authorizer="acl", super_users=(ROOT,))
    async with (
        stage(1, tls=SpokenTls(lambda: server, lambda: client)) as on,
        ControllerClient(on.urls, tls=lambda: client) as asking,
        playing([1], on.urls, tls=secured(1), access=access) as one,
        playing([2], on.urls, tls=secured(2), access=access) as two,
    ):
        await one.ready()
        await two.ready()
        await create(asking, "t", [1])
        await reassign(asking, "t", 0, [1, 2])
        await sees(on, "t", 0, "the leader has taken the follower's word", isr=(1, 2))
        url = f"https://{one.endpoint.host}:{one.endpoint.port}/v1/image/digest"
        for cluster_id, status in ((CLUSTER_ID, 200), ("another", 403)):
            uri = f"quorate://{cluster_id}/broker/7"
            shown = client_context([ours], issued(ours, "127.0.0.1", uris=[uri]))
            async with one.session.get(url, ssl=shown) as answer:
                assert answer.status == status


async def test_nobody_is_let_in_by_missing_acls_before_the_first_image(tmp_path: Path) -> None:
    """A resource without ACLs may be everybody's, once it is known that there are none."""
    access = BrokerAccessSettings(authorizer="acl", allow_everyone_if_no_acl_found=True)
    async with stage(1, active=None) as on, playing([1], on.urls, access=access) as played:
        assert (await played.get("/v1/process"))[0] == 403
        await on.elect(1)
        await played.ready()
        assert (await played.get("/v1/process"))[0] == 200


def test_access_that_nobody_asks_for_or_that_is_wrong_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="tokens_file: nobody asks for them while authorizer is none"):
        BrokerAccessSettings(tokens_file=Path("nowhere"))
    with pytest.raises(InvalidSettings, match="a principal is Type:name"):
        BrokerAccessSettings(authorizer="acl", super_users=("root",))
