"""What the audit says of a change, whichever controller is asked: proof, proxy, and what allowed it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.api.headers import PRINCIPAL
from quorate.controller.logs.audit_log import AuditLog
from quorate.controller.logs.read_log import ReadLog
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.audit.read_lines import read_reads
from quorate.metadata_log.ids import uuid_text
from tests.integration.access.test_permissions import EMPTY, bearer, guarded
from tests.integration.http_stage import Stage, stage

OF_ANA = "ALLOW ALL on TOPIC a to User:ana from *"


def grown(count: int) -> dict[str, Any]:
    return {"topics": [{"name": "a", "count": count}]}


@contextmanager
def audited(on: Stage, directory: Path) -> Iterator[AuditLog]:
    """What the active controller writes down from now on."""
    log = AuditLog(directory, lambda: 1)
    log.start()
    on.members[1].controller.on_decided = log.note
    yield log
    log.close()


def newest(log: AuditLog) -> AuditLine:
    return log.page(0, None, 1_000).lines[-1]


async def test_line_of_several_things_names_what_allowed_what_was_done(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "DESCRIBE", "TOPIC", "b")
        by_name = g.stage.members[1].controller.stable.topics.by_name
        ids = {"topic_ids": [uuid_text(by_name[name].id) for name in "ab"]}
        with audited(g.stage, tmp_path) as log:
            status, reply = await g.ask("User:ana", "POST", "/v1/topics/delete", ids)
            assert (status, [one["name"] for one in reply["responses"]]) == (207, ["a", "b"])
            assert newest(log).allowed_by == OF_ANA


@pytest.mark.parametrize("asked", [1, 2])
async def test_line_says_how_and_through_whom_and_by_which_acl(tmp_path: Path, asked: int) -> None:
    async with guarded(tmp_path) as g:
        with audited(g.stage, tmp_path) as log:
            asking = (("User:ana", EMPTY, None), ("User:gateway", {PRINCIPAL: "User:ana"}, "User:gateway"))
            for count, (who, more, proxy) in enumerate(asking, start=2):
                status, _ = await g.ask(who, "POST", "/v1/topics/partitions", grown(count), asked, more)
                line = newest(log)
                assert (status, line.event, line.principal) == (200, "create_partitions", "User:ana")
                assert (line.proof, line.proxy, line.allowed_by) == ("token", proxy, OF_ANA)


async def test_line_names_what_allowed_the_change_and_not_what_allowed_to_see_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        with audited(g.stage, tmp_path) as log:
            await g.allow("User:ben", "CREATE", "CLUSTER", "kafka-cluster")
            await g.allow("User:ben", "DESCRIBE_CONFIGS", "TOPIC", "c")
            created = {"topics": [{"name": "c", "num_partitions": 1, "replication_factor": 1}]}
            status, reply = await g.ask("User:ben", "POST", "/v1/topics", created)
            assert (status, reply["topics"][0]["topic_config_error_code"]) == (200, 0)
            assert newest(log).allowed_by == "ALLOW CREATE on CLUSTER kafka-cluster to User:ben from *"
            await g.ask("User:root", "POST", "/v1/topics/partitions", grown(2))
            assert newest(log).allowed_by == "access.super_users"


async def test_without_an_authorizer_the_line_says_so(tmp_path: Path) -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        created = {"topics": [{"name": "c", "num_partitions": 1, "replication_factor": 1}]}
        with audited(s, tmp_path) as log:
            assert (await s.ask(1, "POST", "/v1/topics", created))[0] == 200
            line = newest(log)
        assert (line.proof, line.proxy, line.allowed_by) == ("said", None, "no authorizer decides")


async def test_refusals_are_counted_by_error(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.ask("User:ben", "POST", "/v1/topics/partitions", grown(2))
        await g.ask("User:ben", "POST", "/v1/topics", {"topics": [{"name": "x"}, {"name": "y"}]})
        await g.ask("nobody", "GET", "/v1/status")
        counts = g.stage.members[1].node.refusals.counts
        assert (counts["TOPIC_AUTHORIZATION_FAILED"], counts["CLUSTER_AUTHORIZATION_FAILED"]) == (3, 1)


async def test_reads_that_are_answered_are_written_down_where_they_are_wanted(tmp_path: Path) -> None:
    """By the controller that answers, the feed among them; neither what was refused, nor changes, nor probes."""
    async with guarded(tmp_path) as g:
        log = g.stage.members[1].node.reads._lines = ReadLog(tmp_path)
        await g.ask("User:root", "GET", "/v1/users")
        await g.ask("User:ana", "GET", "/v1/topics", asked=2)
        await g.ask("User:ana", "GET", "/v1/topics", more={PRINCIPAL: "User:ana"})
        await g.ask("User:gateway", "GET", "/v1/topics", more={PRINCIPAL: "User:ben"})
        await g.ask("User:ben", "GET", "/v1/status")
        await g.ask("User:root", "POST", "/v1/topics/partitions", grown(2))
        feed = "/v1/metadata/batches"
        for path, who, status in (
            ("/livez", "User:root", 200),
            (f"{feed}?offset=0", "User:root", 200),
            (f"{feed}?offset=0&broker_id=12", "Broker:11", 403),
            ("/v1/metadata/checkpoint?end_offset=9&epoch=9", "User:root", 404),
        ):
            async with g.plain.get(g.stage.members[1].url + path, headers=bearer(who)) as answer:
                assert answer.status == status, await answer.text()
        log.flush()
        assert [line[2:7] for line in read_reads(tmp_path, 10)] == [
            ("GET /v1/users", "User:root", "127.0.0.1", "token", ""),
            ("GET /v1/topics", "User:ana", "127.0.0.1", "token", ""),
            ("GET /v1/topics", "User:ben", "127.0.0.1", "token", "User:gateway"),
            ("GET /v1/metadata/batches", "User:root", "127.0.0.1", "token", ""),
        ]


@pytest.mark.parametrize("asked", [1, 2])
async def test_refusal_names_the_proof_of_who_was_refused(tmp_path: Path, asked: int) -> None:
    async with guarded(tmp_path) as g:
        log = g.stage.members[1].node.refusals._lines = RefusalLog(tmp_path)
        await g.ask("User:ben", "POST", "/v1/topics/partitions", grown(2), asked)
        await g.ask("User:gateway", "POST", "/v1/topics", {"topics": [{"name": "x"}]}, asked)
        await g.ask("User:nobody's token", "GET", "/v1/status")
        told = [(line.principal, line.proof) for line in log.newest(10)]
        assert told == [("User:ben", "token"), ("User:gateway", "token"), (None, None)]
        page = (await g.ask("User:root", "GET", "/v1/audit/refusals"))[1]["refusals"]
        assert [line["proof"] for line in page] == ["token", "token", None]
