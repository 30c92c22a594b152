"""Bad input: every refusal has the one shape, the right status, names value and rule; and nothing changes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgpack
import pytest

from quorate.controller.api.content import JSON, MSGPACK
from quorate.controller.api.models import ErrorReply
from quorate.controller.client.connection import body_to_send
from tests.integration.http_stage import Bad, Stage, stage

TOPICS = "/v1/topics"
PARTITIONS = "/v1/partitions"
MANY_STARS = ",".join(f"{letter}*" for letter in "abcdefghi")
REASSIGN = "/v1/partition-reassignments"
HEARTBEAT = "/v1/broker-rpc/heartbeat"
REGISTER = "/v1/broker-rpc/register"
ALTER = "/v1/broker-rpc/alter-partition"
COLUMNS = "/v1/broker-rpc/alter-partition-columns"
ASSIGN = "/v1/broker-rpc/assign-replicas-to-dirs"


def topic(**fields: Any) -> dict[str, Any]:
    return {"topics": [{"name": "foo", **fields}]}


def move(replicas: Any, name: str = "known", partition: Any = 0) -> dict[str, Any]:
    return {"topics": [{"name": name, "partitions": [{"partition_index": partition, "replicas": replicas}]}]}


def in_directory(partition: Any) -> dict[str, Any]:
    id_ = "A" * 21 + "Q"
    return {"id": id_, "topics": [{"topic_id": id_, "partitions": [{"partition_index": partition}]}]}


MANY = list(range(100_000))
CASES = [
    # --- form ---
    Bad("no JSON", "POST", TOPICS, b"{", 400, "INVALID_REQUEST", "Invalid JSON"),
    Bad("empty body", "POST", TOPICS, b"", 400, "INVALID_REQUEST", "Invalid JSON"),
    Bad("no UTF-8", "POST", TOPICS, b'{"topics": "\xff"}', 400, "INVALID_REQUEST", "Invalid JSON"),
    Bad("deep nesting", "POST", TOPICS, b"[" * 100_000, 400, "INVALID_REQUEST", "recursion limit"),
    Bad("list for an object", "POST", TOPICS, [], 400, "INVALID_REQUEST", "body: Input should be an object"),
    Bad("missing field", "POST", TOPICS, {}, 400, "INVALID_REQUEST", "body topics: must be given"),
    Bad("unknown field", "POST", TOPICS, topic(colour="red"), 400, "INVALID_REQUEST", "topics.0.colour: is not known"),
    Bad(
        "text for a number", "POST", TOPICS, topic(num_partitions="3"), 400, "INVALID_REQUEST", "valid integer, not '3'"
    ),
    Bad("number for text", "POST", TOPICS, {"topics": [{"name": 5}]}, 400, "INVALID_REQUEST", "valid string, not 5"),
    Bad("fraction", "POST", TOPICS, topic(num_partitions=1.5), 400, "INVALID_REQUEST", "topics.0.num_partitions"),
    Bad("truth for a number", "POST", TOPICS, topic(num_partitions=True), 400, "INVALID_REQUEST", "valid integer"),
    Bad("null", "POST", TOPICS, topic(num_partitions=None), 400, "INVALID_REQUEST", "not None"),
    Bad("huge number", "POST", TOPICS, topic(num_partitions=10**30), 400, "INVALID_REQUEST", "less than or equal"),
    Bad(
        "too many topics",
        "POST",
        TOPICS,
        {"topics": [{"name": f"t{n}"} for n in range(10_001)]},
        400,
        "INVALID_REQUEST",
        "at most 10000 items",
    ),
    Bad("body for a GET", "GET", TOPICS, {"a": 1}, 400, "INVALID_REQUEST", "takes no body"),
    Bad("body for a DELETE", "DELETE", f"{TOPICS}/known", {"a": 1}, 400, "INVALID_REQUEST", "takes no body"),
    # --- what it says ---
    Bad("name with a slash", "POST", TOPICS, {"topics": [{"name": "a/b"}]}, 422, "INVALID_TOPIC_EXCEPTION", "a/b"),
    Bad("empty name", "POST", TOPICS, {"topics": [{"name": ""}]}, 422, "INVALID_TOPIC_EXCEPTION", ""),
    Bad("dots as a name", "POST", TOPICS, {"topics": [{"name": ".."}]}, 422, "INVALID_TOPIC_EXCEPTION", ""),
    Bad("long name", "POST", TOPICS, {"topics": [{"name": "x" * 250}]}, 422, "INVALID_TOPIC_EXCEPTION", "249"),
    Bad("no partitions", "POST", TOPICS, topic(num_partitions=0), 422, "INVALID_PARTITIONS", ""),
    Bad("no replicas", "POST", TOPICS, topic(replication_factor=0), 422, "INVALID_REPLICATION_FACTOR", ""),
    Bad(
        "more replicas than brokers", "POST", TOPICS, topic(replication_factor=9), 422, "INVALID_REPLICATION_FACTOR", ""
    ),
    Bad("too many records", "POST", TOPICS, topic(num_partitions=20_000), 422, "POLICY_VIOLATION", ""),
    Bad("100,000 replicas", "POST", REASSIGN, move(MANY), 400, "INVALID_REQUEST", "at most 64 items"),
    Bad(
        "100,000 replicas of a new topic",
        "POST",
        TOPICS,
        topic(assignments=[{"partition_index": 0, "broker_ids": MANY}]),
        400,
        "INVALID_REQUEST",
        "at most 64 items",
    ),
    Bad("unknown broker", "POST", REASSIGN, move([99]), 422, "INVALID_REPLICA_ASSIGNMENT", "99"),
    Bad("repeated broker", "POST", REASSIGN, move([11, 11]), 422, "INVALID_REPLICA_ASSIGNMENT", ""),
    Bad("no broker", "POST", REASSIGN, move([]), 422, "INVALID_REPLICA_ASSIGNMENT", "empty"),
    Bad("unknown topic", "POST", REASSIGN, move([11], name="none"), 404, "UNKNOWN_TOPIC_OR_PARTITION", ""),
    Bad("unknown partition", "POST", REASSIGN, move([11], partition=77), 404, "UNKNOWN_TOPIC_OR_PARTITION", ""),
    Bad(
        "negative partition",
        "POST",
        REASSIGN,
        move([11], partition=-1),
        400,
        "INVALID_REQUEST",
        "greater than or equal",
    ),
    Bad("topic that is not there", "DELETE", f"{TOPICS}/none", None, 404, "UNKNOWN_TOPIC_OR_PARTITION", "none"),
    Bad("slash in the path's name", "GET", f"{TOPICS}/a%2Fb", None, 404, "UNKNOWN_TOPIC_OR_PARTITION", "a/b"),
    Bad("existing topic", "POST", TOPICS, {"topics": [{"name": "known"}]}, 409, "TOPIC_ALREADY_EXISTS", "known"),
    # --- brokers ---
    Bad(
        "stale broker epoch",
        "POST",
        HEARTBEAT,
        {"broker_id": 11, "broker_epoch": 10**9, "current_metadata_offset": 0},
        409,
        "STALE_BROKER_EPOCH",
        "",
    ),
    Bad(
        "unregistered broker",
        "POST",
        HEARTBEAT,
        {"broker_id": 99, "broker_epoch": 1, "current_metadata_offset": 0},
        409,
        "STALE_BROKER_EPOCH",
        "",
    ),
    Bad(
        "stale epoch in alter-partition",
        "POST",
        ALTER,
        {"broker_id": 11, "broker_epoch": 10**9, "topics": []},
        409,
        "STALE_BROKER_EPOCH",
        "",
    ),
    Bad(
        "stale epoch in assign-replicas-to-dirs",
        "POST",
        ASSIGN,
        {"broker_id": 11, "broker_epoch": 10**9, "directories": []},
        409,
        "STALE_BROKER_EPOCH",
        "",
    ),
    Bad(
        "directory that is no uuid",
        "POST",
        ASSIGN,
        {"broker_id": 11, "broker_epoch": 1, "directories": [{"id": "d", "topics": []}]},
        400,
        "INVALID_REQUEST",
        "directories.0.id: 'd' is no uuid",
    ),
    Bad(
        "negative partition in a directory",
        "POST",
        ASSIGN,
        {"broker_id": 11, "broker_epoch": 1, "directories": [in_directory(-1)]},
        400,
        "INVALID_REQUEST",
        "greater than or equal",
    ),
    Bad(
        "too many directories",
        "POST",
        ASSIGN,
        {"broker_id": 11, "broker_epoch": 1, "directories": [in_directory(0)] * 1_001},
        400,
        "INVALID_REQUEST",
        "1000",
    ),
    Bad(
        "cluster that is not ours",
        "POST",
        REGISTER,
        {"broker_id": 12, "cluster_id": "other", "incarnation_id": "A" * 21 + "Q"},
        409,
        "INCONSISTENT_CLUSTER_ID",
        "",
    ),
    Bad(
        "uuid that is none",
        "POST",
        REGISTER,
        {"broker_id": 12, "cluster_id": "c", "incarnation_id": "short"},
        400,
        "INVALID_REQUEST",
        "incarnation_id: 'short' is no uuid",
    ),
    Bad("broker id that is none", "GET", "/v1/brokers/eleven", None, 400, "INVALID_REQUEST", "parameter broker_id"),
    Bad("negative broker id", "DELETE", "/v1/brokers/-1", None, 400, "INVALID_REQUEST", "parameter broker_id"),
    # --- parameters ---
    Bad(
        "unknown parameter",
        "GET",
        f"{TOPICS}?colour=red",
        None,
        400,
        "INVALID_REQUEST",
        "parameter colour: is not known",
    ),
    Bad("repeated parameter", "GET", f"{TOPICS}?limit=1&limit=2", None, 400, "INVALID_REQUEST", "limit was given more"),
    Bad(
        "parameter in path and query", "GET", f"{TOPICS}/a?name=b", None, 400, "INVALID_REQUEST", "name was given more"
    ),
    Bad("wrong parameter", "GET", f"{TOPICS}?limit=many", None, 400, "INVALID_REQUEST", "not 'many'"),
    Bad(
        "parameter over its limit",
        "GET",
        f"{TOPICS}?limit=1001",
        None,
        400,
        "INVALID_REQUEST",
        "less than or equal to 1000",
    ),
    Bad("word that is none", "GET", f"{TOPICS}?consistency=strong", None, 400, "INVALID_REQUEST", "'linearizable'"),
    Bad("empty pattern", "GET", f"{TOPICS}?names=a,,b", None, 400, "INVALID_REQUEST", "1 to 249 characters"),
    Bad("pattern too long", "GET", f"{TOPICS}?names={'a' * 250}", None, 400, "INVALID_REQUEST", "1 to 249 characters"),
    Bad("patterns too long", "GET", f"{TOPICS}?names={'a' * 4097}", None, 400, "INVALID_REQUEST", "4096 characters"),
    Bad("too many stars", "GET", f"{TOPICS}?names=a*b*c*d*e*", None, 400, "INVALID_REQUEST", "more than 4 stars"),
    Bad("too many patterns", "GET", f"{TOPICS}?names={MANY_STARS}", None, 400, "INVALID_REQUEST", "8 patterns"),
    Bad("unknown condition", "GET", f"{PARTITIONS}?conditions=ill", None, 400, "INVALID_REQUEST", "conditions"),
    Bad("negative broker", "GET", f"{PARTITIONS}?broker=-1", None, 400, "INVALID_REQUEST", "parameter broker"),
    Bad("leader that is none", "GET", f"{PARTITIONS}?leader=x", None, 400, "INVALID_REQUEST", "parameter leader"),
    Bad("huge broker", "GET", f"{PARTITIONS}?broker={2**31}", None, 400, "INVALID_REQUEST", "parameter broker"),
    Bad("cursor that is none", "GET", f"{PARTITIONS}?after=orders", None, 400, "INVALID_REQUEST", "parameter after"),
    Bad("cursor without a topic", "GET", f"{PARTITIONS}?after=-1", None, 400, "INVALID_REQUEST", "parameter after"),
    Bad("no page", "GET", f"{PARTITIONS}?limit=0", None, 400, "INVALID_REQUEST", "parameter limit"),
    Bad("page too long", "GET", f"{PARTITIONS}?limit=1001", None, 400, "INVALID_REQUEST", "parameter limit"),
    Bad("negative offset", "GET", "/v1/metadata/batches?offset=-1", None, 400, "INVALID_REQUEST", "parameter offset"),
    Bad("no offset", "GET", "/v1/metadata/batches", None, 400, "INVALID_REQUEST", "parameter offset: must be given"),
    Bad("half a checkpoint", "GET", "/v1/metadata/checkpoint?epoch=1", None, 400, "INVALID_REQUEST", "together"),
    # --- places ---
    Bad("unknown path", "GET", "/v1/nothing", None, 404, "RESOURCE_NOT_FOUND", "/v1/nothing"),
    Bad("wrong method", "PUT", TOPICS, {}, 405, "INVALID_REQUEST", "takes GET, POST, not PUT"),
]


async def send(s: Stage, bad: Bad, node_id: int) -> tuple[int, ErrorReply]:
    data = bad.body if isinstance(bad.body, bytes) or bad.body is None else json.dumps(bad.body).encode()
    headers = {"Content-Type": JSON} if data is not None else {}
    url = s.members[node_id].url + bad.path
    async with s.session.request(bad.method, url, data=body_to_send(data), headers=headers) as answer:
        assert answer.content_type == JSON
        return answer.status, ErrorReply.model_validate_json(await answer.read())


async def test_bad_input_is_refused_in_one_shape_and_changes_nothing() -> None:
    """The whole table against the active controller and against a standby."""
    wrong = []
    async with stage(2) as s:
        await s.register(1, 11)
        await s.ask(1, "POST", TOPICS, {"topics": [{"name": "known"}]})
        end, image = s.quorum.log_end_offset, s.members[1].controller.stable
        for bad in CASES:
            for node_id in (1, 2):
                status, reply = await send(s, bad, node_id)
                if (status, reply.error) != (bad.status, bad.error) or bad.says not in reply.message:
                    wrong.append(f"{bad.name} at {node_id}: {status} {reply.error}: {reply.message[:200]}")
                if len(reply.model_dump_json()) > 4_000:
                    wrong.append(f"{bad.name} at {node_id}: an answer of {len(reply.model_dump_json())} bytes")
        assert (s.quorum.log_end_offset, s.members[1].controller.stable) == (end, image)
        assert s.members[1].faults.seen == []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", MSGPACK, ""])
async def test_body_of_another_content_type_is_refused(content_type: str) -> None:
    """Also what a web page may send without being asked for leave."""
    async with stage(1) as s:
        url = s.members[1].url + TOPICS
        async with s.session.post(url, data=b"{}", headers={"Content-Type": content_type}) as answer:
            assert (answer.status, (await answer.json())["error"]) == (415, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xc1", "no msgpack"),
        (b"", "no msgpack"),
        (msgpack.packb({1: 2}), "no msgpack"),
        (msgpack.packb([1]), "valid dictionary"),
        (msgpack.packb({"broker_id": 1}) + b"more", "no msgpack"),
        (b"\xdf\xff\xff\xff\xff", "no msgpack"),
        (b"\x91" * 5_000, "no msgpack"),
        (msgpack.packb({"broker_id": "11", "broker_epoch": 1, "current_metadata_offset": 0}), "valid integer"),
    ],
    ids=["reserved byte", "empty", "key that is no text", "list", "trailing bytes", "huge map", "deep nesting", "text"],
)
async def test_bad_msgpack_is_refused(data: bytes, says: str) -> None:
    async with stage(1) as s:
        url = s.members[1].url + HEARTBEAT
        async with s.session.post(url, data=data, headers={"Content-Type": MSGPACK}) as answer:
            reply = ErrorReply.model_validate_json(await answer.read())
        assert (answer.status, reply.error) == (400, "INVALID_REQUEST"), reply
        assert says in reply.message


async def test_columns_that_do_not_fit_each_other_are_refused() -> None:
    async with stage(1) as s:
        epoch = await s.register(1, 11)
        body = {
            "broker_id": 11,
            "broker_epoch": epoch,
            "count": 2,
            "width": 1,
            "topic_ids": bytes(32),
            "partition_ids": bytes(8),
            "leader_epochs": bytes(8),
            "partition_epochs": bytes(8),
            "leader_recovery_states": bytes(2),
            "new_isr": bytes(4),
            "new_isr_epochs": bytes(16),
        }
        url = s.members[1].url + COLUMNS
        async with s.session.post(url, data=msgpack.packb(body), headers={"Content-Type": MSGPACK}) as answer:
            reply = ErrorReply.model_validate_json(await answer.read())
        assert (answer.status, reply.message) == (400, "body new_isr: has 4 bytes, 8 are due for shape (2, 1)")


@pytest.mark.parametrize("header", ["soon", "0", "-5", "9999999999", "1.5"])
async def test_timeout_header_that_is_no_time_is_refused(header: str) -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, "GET", TOPICS, headers={"X-Quorate-Timeout-Ms": header})
        assert (status, reply["error"]) == (400, "INVALID_REQUEST")


async def test_bug_of_ours_is_500_with_an_incident_that_the_log_tells_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with stage(1) as s:

        def broken(*_: Any) -> None:
            raise RuntimeError("secret inner words")

        monkeypatch.setattr(s.members[1].soft, "faults", broken)
        status, reply, headers = await s.ask(1, "GET", "/v1/status", headers={"X-Request-Id": "mine-1"})
        assert (status, reply["error"], reply["retriable"]) == (500, "UNKNOWN_SERVER_ERROR", "no")
        assert "secret inner words" not in json.dumps(reply)
        assert (reply["request_id"], headers["X-Request-Id"]) == ("mine-1", "mine-1")
        logged = capsys.readouterr().out
        assert reply["incident_id"] in logged
        assert "secret inner words" in logged


async def test_request_id_that_is_odd_is_replaced() -> None:
    async with stage(1) as s:
        _, _, headers = await s.ask(1, "GET", TOPICS, headers={"X-Request-Id": "a b<script>"})
        assert len(headers["X-Request-Id"]) == 16


async def test_shared_secret_is_asked_of_all_but_probes() -> None:
    secret = b"0123456789abcdef" * 2
    async with stage(2, shared_secret=secret) as s:
        right = {"Authorization": f"Bearer {secret.decode()}"}
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": secret.decode()}):
            status, reply, _ = await s.ask(1, "GET", TOPICS, headers=given)
            assert (status, reply["error"]) == (401, "CLUSTER_AUTHORIZATION_FAILED")
        assert (await s.ask(1, "GET", "/readyz"))[0] == 200
        assert (await s.ask(2, "GET", f"{TOPICS}?consistency=linearizable", headers=right))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 403)]
)
async def test_request_under_a_foreign_name_is_refused_without_a_secret(host: str, status: int) -> None:
    """A web page whose name was pointed at this machine."""
    async with stage(1) as s:
        assert (await s.ask(1, "GET", TOPICS, headers={"Host": host}))[0] == status


@pytest.mark.parametrize("host", ["a b", "[::1", "127.0.0.1:port", "x@y/z", "%00"])
async def test_host_header_that_is_no_host_is_refused(host: str) -> None:
    async with stage(1) as s:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(s.urls[0].rpartition(":")[2]))
        writer.write(f"GET {TOPICS} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
        assert answer.split()[1] in ("400", "403"), answer
