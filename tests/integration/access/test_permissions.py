"""Who may ask for what, over HTTP and by real ACLs: what is refused changes nothing, whichever controller is asked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
import pytest

from quorate.controller.api.headers import CLIENT, HOPS, IDENTITY, PRINCIPAL, PROXY, REQUEST_ID
from quorate.controller.api.headers import CLUSTER as CLUSTER_HEADER
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.client.client import ControllerClient
from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_parts import AccessParts
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.cli.moves.layouts import HiddenPartitions, MoveRules, read_layout
from quorate.scripts.terminal.survey import survey
from quorate.snapshots.image_digest import digest_image
from quorate.watch import WatchRefused, watch
from tests.integration.http_stage import CLUSTER_ID, Stage, stage
from tests.waiting import eventually

SECRET = b"the secret of the quorum, 32 characters"
PRINCIPALS = ("User:root", "User:ana", "User:ben", "User:gateway", "Broker:11", "Broker:12")
SUPER_USERS = frozenset({"User:root"})
VOTERS = frozenset({1, 2, 3})
CERTIFICATES = CertificateIdentities(CLUSTER_ID, PrincipalMapping())
EMPTY: Mapping[str, str] = MappingProxyType({})


def bearer(principal: str) -> dict[str, str]:
    """The header with a principal's token."""
    return {} if principal == "nobody" else {"Authorization": f"Bearer {token(principal)}"}


def token(principal: str) -> str:
    return hashlib.sha256(principal.encode()).hexdigest()


def access_of(file: Path, node_id: int) -> AccessParts:
    """The access control of a controller with this file of tokens."""
    seals = Seals(lambda: (SECRET,), node_id, VOTERS, lambda: 0.0)
    authentication = IdentityAuthentication(TokensFile(file), CERTIFICATES, seals, frozenset({"User:gateway"}))
    return AccessParts(authentication, Authorizer(super_users=SUPER_USERS), SUPER_USERS, seals)


class Guarded:
    """The controllers, and whoever asks them."""

    def __init__(self, on: Stage, plain: aiohttp.ClientSession) -> None:
        """``plain``: sends nothing that it is not told to."""
        self.stage = on
        self.plain = plain

    async def ask(
        self, who: str, method: str, path: str, body: Any = None, asked: int = 1, more: Mapping[str, str] = EMPTY
    ) -> tuple[int, Any]:
        """Status and body of an answer to a principal, or to nobody, with these headers besides."""
        url = self.stage.members[asked].url + path
        async with self.plain.request(method, url, json=body, headers={**bearer(who), **more}) as answer:
            return answer.status, await answer.json()

    async def allow(self, principal: str, operation: str, type_: str, name: str, verdict: str = "ALLOW") -> None:
        """Write an ACL."""
        creation = {
            "resource_type": type_,
            "resource_name": name,
            "principal": principal,
            "operation": operation,
            "permission_type": verdict,
        }
        status, reply = await self.ask("User:root", "POST", "/v1/acls", {"creations": [creation]})
        assert status == 200, reply

    def digests(self) -> list[bytes]:
        """The states of all controllers."""
        return [digest_image(member.controller.stable).value for member in self.stage.members.values()]


@asynccontextmanager
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    """Three controllers with an authorizer, broker 11, topics a and b, and what ana may do: all of it to topic a."""
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text("".join(f"{token_line(token(one), one)}\n" for one in PRINCIPALS))
    async with stage(3, access=lambda node_id: access_of(file, node_id)) as s, aiohttp.ClientSession() as plain:
        s.session.headers.update(bearer("User:root"))
        await s.register(1, 11)
        g = Guarded(s, plain)
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in "ab"]
        assert (await g.ask("User:root", "POST", "/v1/topics", {"topics": topics}))[0] == 200
        await g.allow("User:ana", "ALL", "TOPIC", "a")
        yield g


class Refused(NamedTuple):
    """A request that is refused."""

    who: str
    method: str
    path: str
    body: Any
    error: str


CLUSTER, TOPIC = "CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"
HEARTBEAT = {"broker_id": 11, "broker_epoch": 1, "current_metadata_offset": 0, "want_fence": True}
CONFIG = [{"name": "retention.ms", "value": "1"}]
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "b",
    "principal": "User:ben",
    "operation": "ALL",
    "permission_type": "ALLOW",
}
ELECTION = {"election_type": "PREFERRED", "topic_partitions": None}
SCRAM = {"upsertions": [], "deletions": [{"name": "root", "mechanism": "SCRAM-SHA-256"}]}

REFUSED = [
    Refused("nobody", "POST", "/v1/topics", {"topics": [{"name": "c"}]}, TOPIC),
    Refused("User:ben", "POST", "/v1/topics", {"topics": [{"name": "c"}]}, TOPIC),
    Refused("User:ana", "POST", "/v1/topics", {"topics": [{"name": "c"}]}, TOPIC),
    Refused("Broker:11", "POST", "/v1/topics", {"topics": [{"name": "c"}]}, TOPIC),
    Refused("User:ana", "DELETE", "/v1/topics/b", None, TOPIC),
    Refused("User:ana", "DELETE", "/v1/topics/none", None, TOPIC),
    Refused("User:ben", "DELETE", "/v1/topics/a", None, TOPIC),
    Refused("User:ana", "POST", "/v1/topics/partitions", {"topics": [{"name": "b", "count": 2}]}, TOPIC),
    Refused("User:ana", "POST", "/v1/partition-reassignments", {"topics": []}, CLUSTER),
    Refused("User:ana", "POST", "/v1/leader-elections", ELECTION, CLUSTER),
    Refused("User:ana", "POST", "/v1/configs/replace",
            {"resources": [{"resource_type": "TOPIC", "resource_name": "b", "configs": CONFIG}]}, TOPIC),
    Refused("User:ana", "POST", "/v1/configs",
            {"resources": [{"resource_type": "BROKER", "resource_name": "", "configs": CONFIG}]}, CLUSTER),
    Refused("User:ana", "POST", "/v1/configs",
            {"resources": [{"resource_type": "GROUP", "resource_name": "g", "configs": CONFIG}]},
            "GROUP_AUTHORIZATION_FAILED"),
    Refused("User:ana", "POST", "/v1/acls", {"creations": [ACL]}, CLUSTER),
    Refused("User:ana", "POST", "/v1/acls/delete", {"filters": [{}]}, CLUSTER),
    Refused("User:ana", "POST", "/v1/client-quotas", {"entries": []}, CLUSTER),
    Refused("User:ana", "POST", "/v1/users", SCRAM, CLUSTER),
    Refused("User:ana", "POST", "/v1/features", {"feature_updates": []}, CLUSTER),
    Refused("User:ana", "POST", "/v1/labels", {"changes": []}, CLUSTER),
    Refused("User:ana", "DELETE", "/v1/brokers/11", None, CLUSTER),
    Refused("User:ana", "POST", "/v1/checkpoints", None, CLUSTER),
    Refused("User:ana", "POST", "/v1/broker-rpc/heartbeat", HEARTBEAT, CLUSTER),
    Refused("Broker:12", "POST", "/v1/broker-rpc/heartbeat", HEARTBEAT, CLUSTER),
    Refused("nobody", "POST", "/v1/broker-rpc/heartbeat", HEARTBEAT, CLUSTER),
    Refused("Broker:12", "POST", "/v1/broker-rpc/allocate-producer-ids", {"broker_id": 11, "broker_epoch": 1}, CLUSTER),
    Refused("Broker:11", "GET", "/v1/acls", None, CLUSTER),
    Refused("Broker:11", "GET", "/v1/topics/a", None, TOPIC),
    Refused("User:ana", "GET", "/v1/status", None, CLUSTER),
    Refused("User:ana", "GET", "/v1/users", None, CLUSTER),
    Refused("User:ana", "GET", "/v1/audit", None, CLUSTER),
    Refused("User:ana", "GET", "/metrics", None, CLUSTER),
    Refused("User:ana", "GET", "/v1/metadata/batches?offset=0&epoch=0", None, CLUSTER),
    Refused("User:ana", "GET", "/v1/metadata/checkpoint", None, CLUSTER),
    Refused("Broker:12", "GET", "/v1/metadata/batches?offset=0&epoch=0&broker_id=11", None, CLUSTER),
    Refused("User:ana", "GET", "/v1/topics/b", None, TOPIC),
    Refused("User:ana", "GET", "/v1/topics/none", None, TOPIC),
    Refused("User:ana", "GET", "/v1/configs?resource_type=TOPIC&resource_name=b", None, TOPIC),
    Refused("User:ana", "GET", "/v1/configs?resource_type=TOPIC&resource_name=none", None, TOPIC),
    Refused("User:ana", "GET", "/v1/configs?resource_type=BROKER&resource_name=11", None, CLUSTER),
    Refused("User:ana", "POST", "/v1/delegation-tokens",
            {"owner_principal_type": "User", "owner_principal_name": "root"}, "DELEGATION_TOKEN_AUTHORIZATION_FAILED"),
]  # fmt: skip


async def test_refused_request_changes_nothing_whichever_controller_is_asked(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        before, end = g.digests(), g.stage.quorum.log_end_offset
        for asked in (1, 2):
            for refused in REFUSED:
                status, reply = await g.ask(refused.who, refused.method, refused.path, refused.body, asked)
                assert (status, reply["error"]) == (403, refused.error), (asked, refused, reply)
                who = "User:ANONYMOUS" if refused.who == "nobody" else refused.who
                assert re.search(rf"{who} (needs [A-Z_]+ on |is not )", reply["message"]), (refused, reply)
        assert (g.digests(), g.stage.quorum.log_end_offset) == (before, end)


@pytest.mark.parametrize("asked", [1, 2])
async def test_items_are_refused_one_by_one_and_the_others_go_on(tmp_path: Path, asked: int) -> None:
    """Kafka's codes: what may not be known is not told apart from what is not there."""
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "CREATE", "TOPIC", "mine")
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("c", "mine", "d", "d")]
        status, reply = await g.ask("User:ana", "POST", "/v1/topics", {"topics": topics}, asked)
        assert status == 207
        made = reply["topics"][1]
        assert [one["error_code"] for one in reply["topics"]] == [29, 0, 42, 42]
        hidden = (made["topic_config_error_code"], made["num_partitions"], made["replication_factor"], made["configs"])
        assert hidden == (29, -1, -1, [])
        image = g.stage.members[1].controller.stable
        ids = {"topic_ids": [*(uuid_text(image.topics.by_name[name].id) for name in "ab"), "A" * 21 + "Q"]}
        status, reply = await g.ask("User:ana", "POST", "/v1/topics/delete", ids, asked)
        assert [(one["error_code"], one["name"]) for one in reply["responses"]] == [(0, "a"), (29, None), (100, None)]
        assert reply["responses"][1]["error_message"] == "Topic authorization failed."
        names = g.stage.members[1].controller.stable.topics.by_name
        assert sorted(names) == ["b", "mine"]


async def test_refusal_names_the_right_that_is_missing_and_is_the_same_for_what_is_not_there(tmp_path: Path) -> None:
    """The first words are Kafka's."""
    needs = "User:ben needs {} on the topic."
    async with guarded(tmp_path) as g:
        for name in ("a", "none"):
            _, reply = await g.ask("User:ben", "GET", f"/v1/topics/{name}")
            assert reply["message"] == f"Topic authorization failed. {needs.format('DESCRIBE')}"
            _, reply = await g.ask("User:ben", "POST", "/v1/topics", {"topics": [{"name": name}]})
            on = "on the cluster (kafka-cluster) or on the topic"
            assert reply["message"] == f"Authorization failed. User:ben needs CREATE {on}."
            _, reply = await g.ask(
                "User:ben", "POST", "/v1/topics/partitions", {"topics": [{"name": name, "count": 2}]}
            )
            assert reply["message"] == f"Topic authorization failed. {needs.format('ALTER')}"
        await g.allow("User:ben", "DESCRIBE", "TOPIC", "a")
        _, reply = await g.ask("User:ben", "DELETE", "/v1/topics/a")
        assert reply["message"] == f"Topic authorization failed. {needs.format('DELETE')}"


async def test_watcher_that_may_not_read_is_told_at_once_what_is_missing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ben", "DESCRIBE", "CLUSTER", "kafka-cluster")
        for shown, why in ((token("User:ben"), "User:ben needs CLUSTER_ACTION"), ("x" * 43, "nobody has this token")):
            with pytest.raises(WatchRefused, match=why):
                async with asyncio.timeout(60), watch(g.stage.urls, shared_secret=shown.encode(), catch_up_ms=600_000):
                    pytest.fail("it began")
        async with watch(g.stage.urls, shared_secret=token("Broker:11").encode()) as watcher:
            assert "a" in watcher.image.topics.by_name


async def test_status_says_of_controllers_that_they_answer_and_refuse_and_what_is_missing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g, ControllerClient(g.stage.urls, shared_secret=token("User:ben").encode()) as ben:
        seen = await survey(ben, g.stage.urls)
        assert (seen.verdict, seen.reachable_count, seen.status) == ("refused", 3, None)
        assert [one.is_refused for one in seen.controllers] == [True] * 3
        assert "User:ben needs DESCRIBE on the cluster" in seen.reasons[0].message
        await g.allow("User:ben", "DESCRIBE", "CLUSTER", "kafka-cluster")
        assert (await survey(ben, g.stage.urls)).verdict == "healthy"


async def test_plan_of_moves_is_refused_to_who_is_not_shown_all_partitions(tmp_path: Path) -> None:
    """It would leave replicas where nobody looked."""
    async with guarded(tmp_path) as g, ControllerClient(g.stage.urls, shared_secret=token("User:ana").encode()) as ana:
        await g.allow("User:ana", "DESCRIBE", "CLUSTER", "kafka-cluster")
        with pytest.raises(HiddenPartitions, match=r"of \d+ are hidden from you"):
            await read_layout(ana, None, MoveRules())
        await g.allow("User:ana", "DESCRIBE", "TOPIC", "b")
        assert {topic for topic, _ in (await read_layout(ana, None, MoveRules())).names} == {"a", "b"}


async def test_lists_show_what_may_be_described_and_count_no_more(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        for path in ("/v1/topics", "/v1/partitions"):
            for who, names in (("User:root", ["a", "b"]), ("User:ana", ["a"]), ("User:ben", []), ("Broker:11", [])):
                status, reply = await g.ask(who, "GET", path)
                found = [one["name"] for one in reply["topics"]]
                assert (status, found, reply["matching"]) == (200, names, len(names)), (who, path)


async def test_configs_are_left_out_for_who_may_see_the_topic_and_not_them(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        config = {"resource_type": "TOPIC", "resource_name": "a", "configs": CONFIG}
        assert (await g.ask("User:root", "POST", "/v1/configs", {"resources": [config]}))[0] == 200
        assert (await g.ask("User:ana", "GET", "/v1/topics/a"))[1]["configs"] != []
        await g.allow("User:ana", "DESCRIBE_CONFIGS", "TOPIC", "a", "DENY")
        assert (await g.ask("User:ana", "GET", "/v1/topics/a"))[1]["configs"] == []
        assert (await g.ask("User:ana", "GET", "/v1/topics"))[1]["topics"][0]["configs"] == []
        assert (await g.ask("User:ana", "GET", "/v1/topics?with_overrides=true"))[1]["topics"] == []


@pytest.mark.parametrize("asked", [1, 2])
async def test_change_is_said_to_be_of_who_made_it(tmp_path: Path, asked: int) -> None:
    async with guarded(tmp_path) as g:
        told: list[DecidedWrite] = []
        g.stage.members[1].controller.on_decided = told.append
        for count, (who, more) in enumerate((("User:ana", {}), ("User:gateway", {PRINCIPAL: "User:ana"})), start=2):
            grown = {"topics": [{"name": "a", "count": count}]}
            sent = {REQUEST_ID: "mine", **more}
            status, _ = await g.ask(who, "POST", "/v1/topics/partitions", grown, asked, sent)
            origin = told[-1].origin
            assert status == 200
            assert origin is not None
            proxy = "" if who == "User:ana" else who
            expected = Origin("User:ana", "127.0.0.1", "mine", proof="token", proxy=proxy)
            assert origin._replace(grounds=None) == expected


@pytest.mark.parametrize("asked", [1, 2])
async def test_header_makes_nobody_another_and_the_quorums_secret_is_no_token(tmp_path: Path, asked: int) -> None:
    async with guarded(tmp_path) as g:
        before, grown = g.digests(), {"topics": [{"name": "a", "count": 2}]}
        for forged in (
            {PRINCIPAL: "User:root"},
            {HOPS: "1"},
            {CLIENT: "10.1.1.1"},
            {IDENTITY: "token broker/11"},
            {PROXY: "User:root"},
        ):
            for who in ("User:ana", "Broker:12", "nobody"):
                status, reply = await g.ask(who, "POST", "/v1/topics/partitions", grown, asked, forged)
                assert (status, reply["error"]) == (403, CLUSTER), (who, forged, reply)
        for wrong in ("x" * 43, SECRET.decode()):
            sent = {"Authorization": f"Bearer {wrong}"}
            status, _ = await g.ask("nobody", "POST", "/v1/topics/partitions", grown, asked, sent)
            assert status == 401
        assert g.digests() == before


async def test_sealed_request_with_another_body_is_refused(tmp_path: Path) -> None:
    """Whoever sees one pass on the network cannot make it say something else."""
    async with guarded(tmp_path) as g:
        sent = {HOPS: "1", CLIENT: "10.1.1.1", PRINCIPAL: "User:root", IDENTITY: "token"}
        body = json.dumps({"topics": [{"name": "a", "count": 2}]}).encode()
        third = Seals(lambda: (SECRET,), 3, VOTERS, lambda: 0.0)
        sent["Authorization"] = third.seal("POST", "/v1/topics/partitions", sent, body)
        sent["Content-Type"] = "application/json"
        for data, status in ((body.replace(b"2", b"9"), 401), (body, 200)):
            url = g.stage.members[1].url + "/v1/topics/partitions"
            async with g.plain.post(url, data=data, headers=sent) as answer:
                assert answer.status == status


async def test_broker_lives_by_its_token_whichever_controller_it_asks(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        brokers = g.stage.members[1].controller.stable.cluster.brokers
        beat = HEARTBEAT | {"broker_epoch": brokers[11].epoch, "want_fence": False}
        for _ in range(3):
            for asked in (1, 2):
                status, reply = await g.ask("Broker:11", "POST", "/v1/broker-rpc/heartbeat", beat, asked)
                assert (status, reply["is_fenced"]) == (200, False)
        # One that changes nothing is answered before all that waits, and not to others either.
        for who in ("Broker:12", "User:ana"):
            url = g.stage.members[1].url + "/v1/broker-rpc/heartbeat"
            async with g.plain.post(url, json=beat, headers=bearer(who)) as answer:
                assert (answer.status, CLUSTER_HEADER in answer.headers) == (403, False), (
                    "who may not ask is told nothing"
                )
        asked_for = {"offset": 0, "epoch": 0, "broker_id": 11}
        url = g.stage.members[2].url + "/v1/metadata/batches"
        async with g.plain.get(url, params=asked_for, headers=bearer("Broker:11")) as answer:
            assert answer.status == 200


async def test_nodes_compare_their_states_by_what_they_are(tmp_path: Path) -> None:
    """A controller by its seal, which covers the query too; a broker by its token."""
    async with guarded(tmp_path) as g:
        url, state = g.stage.members[1].url, digest_image(g.stage.members[1].controller.stable)
        offset = g.stage.members[1].controller.applied_offset
        seal = Seals(lambda: (SECRET,), 2, VOTERS, lambda: 0.0).seal
        async with (
            ControllerClient([url], seal=seal) as controller,
            ControllerClient([url], shared_secret=token("Broker:11").encode()) as broker,
            ControllerClient([url], shared_secret=token("User:ana").encode()) as ana,
        ):
            for node in (controller, broker):
                assert await node.digest_of(url, offset, wait_ms=0, doubt="false") == state.text
            with pytest.raises(ApiError, match="User:ana needs DESCRIBE"):
                await ana.digest_of(url, offset)


async def test_token_that_was_taken_from_the_file_ends_on_connections_that_stand(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        brokers = g.stage.members[1].controller.stable.cluster.brokers
        beat = HEARTBEAT | {"broker_epoch": brokers[11].epoch, "want_fence": False}
        assert (await g.ask("Broker:11", "POST", "/v1/broker-rpc/heartbeat", beat))[0] == 200
        file = tmp_path / "tokens"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "Broker:11" not in line))

        async def is_refused() -> bool:
            return (await g.ask("Broker:11", "POST", "/v1/broker-rpc/heartbeat", beat))[0] == 401

        await eventually(is_refused, "the token is known no more")


async def test_probe_tells_why_to_who_may_describe_the_cluster_and_others_that_alone(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "DESCRIBE", "CLUSTER", "kafka-cluster")
        told = {"nobody": False, "User:ben": False, "Broker:11": False, "User:ana": True, "User:root": True}
        for who, is_told in told.items():
            status, reply = await g.ask(who, "GET", "/readyz")
            assert (status, reply["ok"], bool(reply["checks"])) == (200, True, is_told)
