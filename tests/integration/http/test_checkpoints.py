"""Checkpoints over HTTP: each controller lists its own and takes one when it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.api import headers
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, manifest_name
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image_digest import digest_image
from tests.integration.http_stage import Bad, Stage, stage
from tests.log_support import DIRECTORY

PATH = "/v1/checkpoints"
BAD = [
    Bad("parameter of the list", "GET", f"{PATH}?limit=5", None, 400, "INVALID_REQUEST", "limit"),
    Bad("parameter of taking", "POST", f"{PATH}?force=true", None, 400, "INVALID_REQUEST", "force"),
    Bad("body for the list", "GET", PATH, {"a": 1}, 400, "INVALID_REQUEST", "takes no body"),
    Bad("body for taking", "POST", PATH, {"a": 1}, 400, "INVALID_REQUEST", "takes no body"),
    Bad("other method", "DELETE", PATH, None, 405, "INVALID_REQUEST", "DELETE"),
    Bad("time that is none", "POST", PATH, None, 400, "INVALID_REQUEST", "X-Quorate-Timeout-Ms"),
]


async def create(s: Stage, name: str) -> None:
    status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
    assert status == 200, reply


async def taken(s: Stage, node_id: int) -> dict[str, Any]:
    status, reply, _ = await s.ask(node_id, "POST", PATH)
    assert status == 200, reply
    found: dict[str, Any] = reply
    return found


@pytest.mark.parametrize("node_id", [1, 2])
async def test_controller_takes_a_checkpoint_of_its_own_state_active_or_not(node_id: int) -> None:
    async with stage(2) as s:
        await s.register(1, 11)
        await create(s, "orders")
        member = s.members[node_id]
        image = member.controller.stable
        reply = await taken(s, node_id)
        checkpoint = reply["checkpoint"]
        assert (reply["node_id"], reply["is_written"]) == (node_id, True)
        assert (checkpoint["end_offset"], checkpoint["epoch"]) == (image.provenance.end_offset, 1)
        assert (checkpoint["manifest"], checkpoint["digest"]) == ("whole", digest_image(image).text)
        assert checkpoint["last_record_ms"] == image.provenance.log_time_ms
        status, listed, headers = await s.ask(node_id, "GET", PATH)
        assert (status, headers["X-Quorate-Node"]) == (200, str(node_id))
        assert listed == {
            "node_id": node_id,
            "applied_offset": image.provenance.end_offset,
            "writing_offset": None,
            "checkpoints": [checkpoint],
        }
        assert (await s.ask(3 - node_id, "GET", PATH))[1]["checkpoints"] == []


async def test_checkpoint_that_covers_everything_is_not_written_again() -> None:
    async with stage(1) as s:
        first = await taken(s, 1)
        again = await taken(s, 1)
        assert (again["is_written"], again["checkpoint"]) == (False, first["checkpoint"])
        await s.register(1, 11)
        later = await taken(s, 1)
        assert later["is_written"] is True
        offsets = [one["end_offset"] for one in (await s.ask(1, "GET", PATH))[1]["checkpoints"]]
        assert offsets == [first["checkpoint"]["end_offset"], later["checkpoint"]["end_offset"]]


async def test_checkpoint_is_refused_before_anything_is_applied() -> None:
    async with stage(1, active=None) as s:
        status, reply, _ = await s.ask(1, "POST", PATH)
        assert (status, reply["error"], reply["retriable"]) == (409, "OPERATION_NOT_ATTEMPTED", "yes")
        assert reply["details"] == {"reason": "nothing-applied"}


async def test_second_checkpoint_is_refused_while_one_is_being_written() -> None:
    async with stage(1) as s, ControllerClient(s.urls) as client:
        writing = s.members[1].writing
        writing.is_held = True
        status, late, _ = await s.ask(1, "POST", PATH, headers={headers.TIMEOUT_MS: "300"})
        assert (status, late["error"]) == (503, "REQUEST_TIMED_OUT")
        assert "still being written after 270 ms" in late["message"]
        assert (await client.checkpoints.list(s.urls[0])).writing_offset is not None
        with pytest.raises(ApiError, match="one at a time") as refused:
            await client.checkpoints.take(s.urls[0])
        assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        writing.is_held = False
        writing.write_waiting()
        assert (await client.checkpoints.take(s.urls[0])).is_written is False
        assert (await client.checkpoints.list(s.urls[0])).writing_offset is None


async def test_checkpoint_without_a_sound_manifest_is_listed_as_that() -> None:
    async with stage(1) as s:
        member = s.members[1]
        member.add_checkpoint(100, 1)
        member.add_checkpoint(200, 1)
        member.disk.put(f"{DIRECTORY}/{manifest_name(CheckpointId(200, 1))}", b"no manifest at all")
        listed = (await s.ask(1, "GET", PATH))[1]["checkpoints"]
        found = [(one["end_offset"], one["manifest"], one["digest"]) for one in listed]
        assert found == [(100, "none", None), (200, "damaged", None)]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_bad_request_about_checkpoints_is_refused(bad: Bad) -> None:
    async with stage(1) as s:
        headers = {"X-Quorate-Timeout-Ms": "soon"} if "Timeout" in bad.says else {}
        status, reply, _ = await s.ask(1, bad.method, bad.path, bad.body, headers=headers)
        assert (status, reply["error"]) == (bad.status, bad.error), reply
        assert bad.says in reply["message"]
        assert (await s.ask(1, "GET", PATH))[1]["checkpoints"] == []
