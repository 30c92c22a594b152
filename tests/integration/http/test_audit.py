"""`GET /v1/audit`: pages of what a controller wrote down, and who gets none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.audit_log import AuditLog
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.integration.http_stage import Bad, stage

ANA = Origin("User:ana", "10.0.0.1", "a1")
WHAT = ("times", "request", "principal", "error")
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
            "proof": None, "proxy": None, "allowed_by": None,
        }  # fmt: skip
        last = (await s.ask(1, "GET", "/v1/audit?start_offset=20&end_offset=25&limit=4"))[1]
        assert ([line["base_offset"] for line in last["lines"]], last["next_offset"]) == ([20, 22, 24], None)
        assert {line["principal"] for line in last["lines"]} == {None}
        log.close()


async def test_what_is_refused_is_told_with_who_what_and_why(tmp_path: Path) -> None:
    """By the controller that refused it: the active one where a standby passed it on."""
    async with stage(2) as s:
        log = RefusalLog(tmp_path)
        s.members[1].node.refusals._lines = log
        await s.register(1, 11)
        ana = {"headers": {"X-Quorate-Principal": "User:ana", "X-Request-Id": "r1"}}
        two = {"topics": [{"name": "orders"}, {"name": "a b"}]}
        assert (await s.ask(2, "POST", "/v1/topics", two, **ana))[0] == 207
        assert (await s.ask(2, "DELETE", "/v1/topics/none", **ana))[0] == 404
        assert (await s.ask(1, "POST", "/v1/topics", {"topics": [{"nam": "x"}]}))[0] == 400
        assert (await s.ask(1, "GET", "/v1/topics/none"))[0] == 404
        assert (await s.ask(2, "GET", "/v1/audit/refusals"))[1] == {"node_id": 2, "refusals": []}
        status, reply, _ = await s.ask(1, "GET", "/v1/audit/refusals?limit=10")
        assert (status, reply["node_id"]) == (200, 1)
        assert [tuple(line[key] for key in WHAT) for line in reply["refusals"]] == [
            (1, "POST /v1/topics", "User:ana", "INVALID_TOPIC_EXCEPTION"),
            (1, "DELETE /v1/topics/{name}", "User:ana", "UNKNOWN_TOPIC_OR_PARTITION"),
            (1, "POST /v1/topics", "User:ANONYMOUS", "INVALID_REQUEST"),
        ]
        assert {(line["request_id"], line["address"]) for line in reply["refusals"][:2]} == {("r1", "127.0.0.1")}
        shown = await alone("refusals", "--controllers", s.urls[1])
        assert [cells[1:6] for cells in shown.cells[1:3]] == [
            ["1", "1", "POST", "/v1/topics", "User:ana"],
            ["1", "1", "DELETE", "/v1/topics/{name}", "User:ana"],
        ]
        files = await alone("refusals", "--from", str(tmp_path), "--limit", "1", "--json")
        assert json.loads(files.out)["error"] == "INVALID_REQUEST"
        assert (shown.err, files.err) == ("", "quorate: the last 1 are shown; --limit shows more\n")
        await s.members[1].stop_serving()
        silent = await alone("refusals", "--controllers", s.urls[1])
        assert (silent.code, "controller 1 does not say" in silent.err) == (exit_codes.UNREACHABLE, True)


async def test_what_the_active_controller_refuses_on_the_express_lane_is_told_too(tmp_path: Path) -> None:
    """Nothing but requests of the usual form: none that would make the connection the framework's."""
    async with stage(1) as s:
        log = RefusalLog(tmp_path)
        s.members[1].node.refusals._lines = log
        await s.register(1, 11)
        ana = {"headers": {"X-Quorate-Principal": "User:ana", "X-Request-Id": "r1"}}
        configs = [{"name": "retention.ms", "config_operation": "SET", "value": "-5"}]
        change = {"resources": [{"resource_type": "TOPIC", "resource_name": "orders", "configs": configs}]}
        two = {"topics": [{"name": "orders"}, {"name": "a b"}]}
        assert (await s.ask(1, "POST", "/v1/topics", two, **ana))[0] == 207
        assert (await s.ask(1, "POST", "/v1/configs", change, **ana))[0] == 422
        assert [(*line[1:6], line.error) for line in log.newest(10)] == [
            (1, "POST /v1/topics", "User:ana", "127.0.0.1", "r1", "INVALID_TOPIC_EXCEPTION"),
            (1, "POST /v1/configs", "User:ana", "127.0.0.1", "r1", "INVALID_CONFIG"),
        ]


async def test_whoever_lacks_the_secret_is_written_down(tmp_path: Path) -> None:
    async with stage(1, shared_secret=b"s" * 32) as s:
        log = RefusalLog(tmp_path)
        s.members[1].node.refusals._lines = log
        await s.ask(1, "GET", "/v1/topics")
        (line,) = log.newest(10)
        assert line[2:5] == ("GET /v1/topics", None, "127.0.0.1")
        assert line.error == "CLUSTER_AUTHORIZATION_FAILED"


async def test_whoever_lacks_the_secret_gets_nothing() -> None:
    async with stage(1, shared_secret=b"s" * 32) as s:
        status, reply, _ = await s.ask(1, "GET", "/v1/audit", headers={"Authorization": "Bearer wrong"})
        assert (status, "lines" in reply) == (401, False)
