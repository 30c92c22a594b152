"""`GET /v1/audit`: pages of what a controller wrote down, and who gets none."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.audit_log import AuditLog
from controller.origin import Origin
from controller.seams import DecidedWrite
from tests.integration.http_stage import Bad, stage

ANA = Origin("User:ana", "10.0.0.1", "a1")
BAD = [
    Bad("page of nothing", "GET", "/v1/audit?limit=0", None, 400, "INVALID_REQUEST", "limit"),
    Bad("page of everything", "GET", "/v1/audit?limit=10001", None, 400, "INVALID_REQUEST", "limit"),
    Bad("offset that is none", "GET", "/v1/audit?start_offset=-1", None, 400, "INVALID_REQUEST", "start_offset"),
    Bad("old state", "GET", "/v1/audit?at=3", None, 400, "INVALID_REQUEST", "at"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_wrong_range_is_refused(bad: Bad) -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, bad.method, bad.path)
        assert (status, reply["error"]) == (bad.status, bad.error)
        assert bad.says in reply["message"]


async def test_controller_that_writes_nothing_down_has_an_empty_page() -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, "GET", "/v1/audit")
        assert (status, reply) == (
            200, {"node_id": 1, "first_offset": None, "dropped": 0, "lines": [], "next_offset": None},
        )  # fmt: skip


async def test_lines_come_page_by_page(tmp_path: Path) -> None:
    async with stage(1) as s:
        log = AuditLog(tmp_path, lambda: 7)
        log.start()
        s.members[1].node.audit._lines = log
        for base in range(10, 30, 2):
            log.note(DecidedWrite("create_topics", ANA if base < 20 else None, base, base + 2, None))
        status, first, _ = await s.ask(1, "GET", "/v1/audit?start_offset=13&end_offset=25&limit=4")
        assert (status, first["node_id"], first["first_offset"], first["next_offset"]) == (200, 1, 10, 20)
        assert [line["base_offset"] for line in first["lines"]] == [12, 14, 16, 18]
        assert first["lines"][0] == {
            "epoch": 7, "base_offset": 12, "end_offset": 14, "event": "create_topics",
            "principal": "User:ana", "address": "10.0.0.1", "request_id": "a1",
        }  # fmt: skip
        last = (await s.ask(1, "GET", "/v1/audit?start_offset=20&end_offset=25&limit=4"))[1]
        assert ([line["base_offset"] for line in last["lines"]], last["next_offset"]) == ([20, 22, 24], None)
        assert {line["principal"] for line in last["lines"]} == {None}
        log.close()


async def test_whoever_lacks_the_secret_gets_nothing() -> None:
    async with stage(1, shared_secret=b"s" * 32) as s:
        status, reply, _ = await s.ask(1, "GET", "/v1/audit", headers={"Authorization": "Bearer wrong"})
        assert (status, "lines" in reply) == (401, False)
