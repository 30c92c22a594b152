"""The HTTP API over the production controller: what is asked for is done, on any node, and told apart from refusals."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import msgpack
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from quorate.controller.api.content import JSON, MSGPACK, json_in_pieces
from quorate.controller.api.models import ErrorReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.http import dispatch
from tests.default_parts import node_limits
from tests.integration.http_stage import CLUSTER_ID, Stage, stage


async def create(s: Stage, name: str, partitions: int = 4, node_id: int = 1) -> None:
    status, reply, _ = await s.ask(
        node_id, "POST", "/v1/topics", {"topics": [{"name": name, "num_partitions": partitions}]}
    )
    assert status == 200, reply


async def test_topic_is_created_described_and_deleted_through_any_controller() -> None:
    async with stage() as s:
        await s.register(2, 11)
        await create(s, "foo", node_id=3)
        status, reply, headers = await s.ask(2, "GET", "/v1/topics/foo")
        assert (status, headers["X-Quorate-Node"], headers["X-Quorate-Active"]) == (200, "2", "1")
        assert [p["leader_id"] for p in reply["topic"]["partitions"]] == [11] * 4
        status, reply, headers = await s.ask(2, "DELETE", "/v1/topics/foo")
        assert (status, headers["X-Quorate-Node"], reply["responses"][0]["name"]) == (200, "1", "foo"), reply
        status, reply, _ = await s.ask(3, "GET", "/v1/topics/foo")
        assert (status, reply["error"], reply["code"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION", 3)


async def test_description_of_a_large_topic_is_made_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made_on: list[threading.Thread] = []

    def noted(reply: BaseModel) -> bytearray:
        made_on.append(threading.current_thread())
        return json_in_pieces(reply)

    monkeypatch.setattr(dispatch, "json_in_pieces", noted)
    async with stage() as s:
        await s.register(1, 11)
        await create(s, "few", 2)
        await create(s, "many", 300)
        _, few, _ = await s.ask(1, "GET", "/v1/topics/few")
        assert (len(few["topic"]["partitions"]), made_on) == (2, [])
        status, many, _ = await s.ask(1, "GET", "/v1/topics/many")
    assert (status, [one["partition_index"] for one in many["topic"]["partitions"]]) == (200, list(range(300)))
    assert len(made_on) == 1
    assert made_on[0] is not threading.main_thread()


async def test_topics_of_which_some_fail_are_answered_one_by_one() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        await create(s, "foo")
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "foo"}, {"name": "bar"}]})
        assert (status, [topic["error_code"] for topic in reply["topics"]]) == (207, [36, 0])
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "foo"}]})
        assert (status, reply["error"], reply["retriable"]) == (409, "TOPIC_ALREADY_EXISTS", "no")


async def test_topics_are_listed_in_pages_by_name() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        for name in ("b-2", "a", "b-1", "b-3"):
            await create(s, name)
        _, reply, _ = await s.ask(1, "GET", "/v1/topics?names=b-*&limit=2")
        assert [topic["name"] for topic in reply["topics"]] == ["b-1", "b-2"]
        _, reply, _ = await s.ask(1, "GET", f"/v1/topics?names=b-*&limit=2&after={reply['next_after']}")
        assert ([topic["name"] for topic in reply["topics"]], reply["next_after"]) == (["b-3"], None)
        assert reply["topics"][0]["partitions"] == 4


async def test_reassignment_is_started_listed_and_cancelled() -> None:
    async with stage() as s:
        await s.register(1, 11)
        await s.register(1, 12)
        assignment = {"name": "foo", "assignments": [{"partition_index": 0, "broker_ids": [11]}]}
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [assignment]})
        assert status == 200, reply
        move = {"topics": [{"name": "foo", "partitions": [{"partition_index": 0, "replicas": [12]}]}]}
        status, reply, _ = await s.ask(2, "POST", "/v1/partition-reassignments", move)
        assert status == 200, reply
        _, reply, _ = await s.ask(3, "GET", "/v1/partition-reassignments")
        assert reply["topics"][0]["partitions"][0]["adding_replicas"] == [12]
        cancel = {"topics": [{"name": "foo", "partitions": [{"partition_index": 0, "replicas": None}]}]}
        status, reply, _ = await s.ask(2, "POST", "/v1/partition-reassignments", cancel)
        assert status == 200, reply
        status, reply, _ = await s.ask(2, "POST", "/v1/partition-reassignments", cancel)
        assert (status, reply["error"]) == (409, "NO_REASSIGNMENT_IN_PROGRESS")


async def test_linearizable_read_goes_to_the_active_controller() -> None:
    async with stage() as s:
        _, _, headers = await s.ask(2, "GET", "/v1/topics?consistency=linearizable")
        assert headers["X-Quorate-Node"] == "1"
        _, _, headers = await s.ask(2, "GET", "/v1/topics?consistency=committed")
        assert headers["X-Quorate-Node"] == "2"


async def test_status_is_the_same_from_every_node() -> None:
    async with stage() as s:
        await s.register(1, 11)
        await create(s, "foo")
        replies = [(await s.ask(node_id, "GET", "/v1/status"))[1] for node_id in (1, 2, 3)]
        for reply in replies:
            reply["brokers"][0]["last_heartbeat_ms"] = 0
        assert replies[0] == replies[1] == replies[2]
        status = replies[0]
        assert (status["verdict"], status["reasons"], status["cluster_id"]) == ("healthy", [], CLUSTER_ID)
        assert [voter["role"] for voter in status["quorum"]["voters"]] == ["active", "standby", "standby"]
        assert [(b["id"], b["state"], b["lag_records"] is None) for b in status["brokers"]] == [(11, "active", False)]
        assert (status["topics"], status["partitions"]["total"], status["partitions"]["offline"]) == (1, 4, 0)


async def test_status_says_what_a_node_sees_itself() -> None:
    async with stage() as s:
        await s.register(1, 11)
        s.members[1].soft.lost.add(3)
        _, reply, _ = await s.ask(2, "GET", "/v1/status")
        unreachable = "controller 3 is unreachable: 0 more can fail before writes stop"
        reason = {"code": "CONTROLLERS_UNREACHABLE", "message": unreachable, "nodes": [3], "partitions": 0}
        assert (reply["verdict"], reply["reasons"]) == ("degraded", [reason])
        _, reply, headers = await s.ask(2, "GET", "/v1/status?local=true")
        assert (headers["X-Quorate-Node"], reply["quorum"]["observed_by"], reply["quorum"]["is_active"]) == (
            "2",
            2,
            False,
        )
        assert [voter["role"] for voter in reply["quorum"]["voters"]] == ["active", "standby", "unknown"]
        assert reply["brokers"][0]["lag_records"] is None


async def test_digest_is_the_same_on_every_node_at_one_offset() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        await s.register(1, 11)
        before = s.quorum.committed
        await create(s, "foo")
        replies = [(await s.ask(n, "GET", f"/v1/image/digest?offset={s.quorum.committed}"))[1] for n in (1, 2, 3)]
        assert replies[0] == replies[1] == replies[2]
        assert (replies[0]["state_offset"], len(replies[0]["digest"])) == (s.quorum.committed, 64)
        assert await client.digest_of(s.urls[1], s.quorum.committed) == replies[0]["digest"]
        assert await client.digest_of(s.urls[1], before) != replies[0]["digest"]
        within, reply, _ = await s.ask(1, "GET", f"/v1/image/digest?offset={s.quorum.committed - 1}")
        assert (within, reply["state_offset"]) == (200, s.quorum.committed - 1), "inside a batch: rebuilt"
        status, reply, _ = await s.ask(1, "GET", "/v1/image/digest?offset=1")
        assert (status, reply["error"]) == (409, "OFFSET_OUT_OF_RANGE"), "before all that is kept"
        status, reply, _ = await s.ask(1, "GET", "/v1/image/digest?offset=1000000&wait_ms=1")
        assert (status, reply["error"], reply["retriable"]) == (503, "REQUEST_TIMED_OUT", "yes")


async def test_cluster_quorum_and_brokers_are_described() -> None:
    async with stage() as s:
        await s.register(1, 11, rack="a")
        _, cluster, _ = await s.ask(2, "GET", "/v1/cluster")
        assert (cluster["controllers"], cluster["brokers"], cluster["metadata_version"]) == ([1, 2, 3], [11], 30)
        _, quorum, _ = await s.ask(2, "GET", "/v1/quorum")
        assert (quorum["active_id"], quorum["is_active"], quorum["epoch"]) == (1, True, 1)
        _, brokers, _ = await s.ask(2, "GET", "/v1/brokers")
        assert [(b["id"], b["rack"], b["listeners"][0]["port"]) for b in brokers["brokers"]] == [(11, "a", 9011)]
        status, broker, _ = await s.ask(2, "GET", "/v1/brokers/11")
        assert (status, broker) == (200, brokers["brokers"][0] | {"last_heartbeat_ms": broker["last_heartbeat_ms"]})
        status, reply, _ = await s.ask(2, "GET", "/v1/brokers/99")
        assert (status, reply["error"]) == (404, "BROKER_ID_NOT_REGISTERED")
        status, reply, _ = await s.ask(2, "DELETE", "/v1/brokers/99")
        assert (status, reply["error"]) == (404, "BROKER_ID_NOT_REGISTERED")
        status, _, _ = await s.ask(2, "DELETE", "/v1/brokers/11")
        assert status == 200
        assert (await s.ask(3, "GET", "/v1/brokers"))[1] == {"brokers": []}


async def test_broker_rpc_is_spoken_in_msgpack() -> None:
    async with stage() as s:
        epoch = await s.register(1, 11)
        heartbeat = {"broker_id": 11, "broker_epoch": epoch, "current_metadata_offset": 5}
        async with s.session.post(
            f"{s.members[2].url}/v1/broker-rpc/heartbeat",
            data=msgpack.packb(heartbeat),
            headers={"Content-Type": MSGPACK},
        ) as answer:
            assert (answer.status, answer.content_type) == (200, MSGPACK)
            assert msgpack.unpackb(await answer.read())["is_fenced"] is False


async def test_probes_say_alive_and_ready_and_why_not() -> None:
    async with stage() as s:
        assert (await s.ask(2, "GET", "/livez"))[0] == 200
        status, reply, _ = await s.ask(2, "GET", "/readyz")
        assert (status, [check["ok"] for check in reply["checks"]]) == (200, [True] * 4)
        s.members[2].soft.is_voting = False
        status, reply, _ = await s.ask(2, "GET", "/readyz")
        assert (status, [check["name"] for check in reply["checks"] if not check["ok"]]) == (503, ["voter"])
        await s.elect(None)
        status, reply, _ = await s.ask(3, "GET", "/readyz")
        assert [check["message"] for check in reply["checks"] if not check["ok"]] == ["no active controller is known"]
        assert (status, (await s.ask(3, "GET", "/livez"))[0]) == (503, 200)


async def test_probes_take_head_which_has_the_status_and_no_body() -> None:
    """Load balancers and monitors ask so; what has a body that matters does not."""
    async with stage() as s:
        s.members[2].soft.is_voting = False
        for path, status in (("/livez", 200), ("/readyz", 503), ("/v1/status", 405)):
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(s.members[2].url).port)
            writer.write(f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), path
            assert answer.endswith(b"\r\n\r\n"), "there is a body"
            assert b"X-Quorate-Node: 2\r\n" in answer


async def test_ready_probe_tells_of_a_state_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits go on, one standby applies none of them."""
    async with stage() as s:
        monkeypatch.setattr(s.members[2].controller, "on_commit", lambda batches: None)
        await s.register(1, 11)
        s.members[2].soft.stalled = 5_000
        status, reply, _ = await s.ask(2, "GET", "/readyz")
        failed = [check for check in reply["checks"] if not check["ok"]]
        assert (status, [check["name"] for check in failed]) == (503, ["applied"])
        assert "standing still for 5000 ms" in failed[0]["message"]


async def test_metrics_are_kafkas_in_prometheus_form() -> None:
    async with stage() as s:
        await s.register(1, 11)
        await create(s, "foo")
        async with s.session.get(f"{s.members[1].url}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=")
            families = list(text_string_to_metric_families(await answer.text()))
        values = {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}
        expected = {
            "quorate_active_controller_count": 1,
            "quorate_active_broker_count": 1,
            "quorate_fenced_broker_count": 0,
            "quorate_global_topic_count": 1,
            "quorate_global_partition_count": 4,
            "quorate_offline_partitions_count": 0,
            "quorate_preferred_replica_imbalance_count": 0,
            "quorate_current_controller_id": 1,
            "quorate_current_metadata_version": 30,
            "quorate_raft_current_epoch": 1,
            "quorate_last_applied_record_offset": s.quorum.committed - 1,
            "quorate_raft_high_watermark": s.quorum.committed,
            "quorate_last_applied_record_lag_seconds": 0,
        }
        assert {name: values.get(name) for name in expected} == expected
        answers = next(family for family in families if family.name == "quorate_http_answers")
        assert {(sample.labels["route"], sample.labels["status"]) for sample in answers.samples} >= {
            ("POST /v1/topics", "200"),
            ("POST /v1/broker-rpc/register", "200"),
        }
        assert all(family.documentation for family in families)


async def test_openapi_document_is_served() -> None:
    async with stage(1) as s:
        status, document, _ = await s.ask(1, "GET", "/v1/openapi.json")
        assert (status, document["openapi"]) == (200, "3.1.0")
        assert "/v1/topics/{name}" in document["paths"]


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_oversized_body_is_refused_whether_it_says_its_size_or_not(is_chunked: bool) -> None:
    async with stage(1, limits=node_limits(body_bytes_max=1_000)) as s:
        body = json.dumps({"topics": [{"name": "x" * 2_000}]}).encode()

        async def pieces() -> Any:
            for at in range(0, len(body), 500):
                yield body[at : at + 500]

        url = s.members[1].url + "/v1/topics"
        data = pieces() if is_chunked else body
        async with s.session.post(url, data=data, headers={"Content-Type": JSON}) as answer:
            reply = ErrorReply.model_validate_json(await answer.read())
        assert (answer.status, reply.error, reply.details) == (413, "INVALID_REQUEST", {"bytes_max": 1_000})


async def test_body_about_one_thing_is_smaller_than_one_of_many() -> None:
    large = {"Content-Type": JSON}
    async with stage(1) as s:
        for path, status, most in (("/v1/features", 413, 65_536), ("/v1/topics", 400, None)):
            async with s.session.post(s.members[1].url + path, data=b" " * 65_537, headers=large) as answer:
                reply = ErrorReply.model_validate_json(await answer.read())
            assert (answer.status, (reply.details or {}).get("bytes_max")) == (status, most)
            assert most is None or f"{most} is the most" in reply.message
